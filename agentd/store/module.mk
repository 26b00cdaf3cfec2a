programs += gpu-agent-store
gpu-agent-store_src := $(addprefix agentd/store/,main.c client.c producer.c record_uses.c)
gpu-agent-store_deps := $(protocol_gen)
gpu-agent-store_libs := agentd protocol store base
gpu-agent-store_ldlibs := $(protocol_ldlibs) -lseccomp -lcap

installs += 755:$(O)/bin/gpu-agent-store:$(libexecdir)/gpu-agent/gpu-agent-store
