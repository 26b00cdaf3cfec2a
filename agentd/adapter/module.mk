programs += gpu-agent-adapter
gpu-agent-adapter_src := agentd/adapter/main.c
gpu-agent-adapter_deps := $(protocol_gen)
gpu-agent-adapter_libs := agentd dap disasm protocol base
gpu-agent-adapter_ldlibs := $(protocol_ldlibs) $(disasm_ldlibs) -lseccomp -lcap

installs += 755:$(O)/bin/gpu-agent-adapter:$(libexecdir)/gpu-agent/gpu-agent-adapter
