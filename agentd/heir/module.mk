archives += heir
heir_src := $(addprefix agentd/heir/,recovery.c release.c rescue.c)

programs += gpu-agent-heir
gpu-agent-heir_src := agentd/heir/main.c
gpu-agent-heir_libs := heir agentd base
gpu-agent-heir_ldlibs := -lcap -lseccomp

installs += 755:$(O)/bin/gpu-agent-heir:$(libexecdir)/gpu-agent/gpu-agent-heir
