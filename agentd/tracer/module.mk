programs += gpu-agent-tracer
gpu-agent-tracer_src := $(addprefix agentd/tracer/,main.c sample.c threads.c)
gpu-agent-tracer_libs := agentd cudbgshim base
gpu-agent-tracer_ldlibs := -lseccomp -lcap

installs += 755:$(O)/bin/gpu-agent-tracer:$(libexecdir)/gpu-agent/gpu-agent-tracer
