archives += hook
hook_src := $(addprefix agentd/hook/,child.c file.c runner.c tree.c user.c)

programs += gpu-agent-hook
gpu-agent-hook_src := agentd/hook/main.c
gpu-agent-hook_libs := hook agentd base
gpu-agent-hook_ldlibs := -lcap

installs += 755:$(O)/bin/gpu-agent-hook:$(libexecdir)/gpu-agent/gpu-agent-hook
