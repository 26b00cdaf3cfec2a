programs += gpu-agent-connect
gpu-agent-connect_src := $(addprefix agentd/connect/,main.c broker.c sockets.c)
gpu-agent-connect_libs := agentd base
gpu-agent-connect_ldlibs := -lseccomp -lcap

installs += 755:$(O)/bin/gpu-agent-connect:$(libexecdir)/gpu-agent/gpu-agent-connect
