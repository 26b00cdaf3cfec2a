programs += gpu-agent-front
gpu-agent-front_src := $(addprefix agentd/front/,main.c adapters.c attach.c attachment.c calls.c closing.c conn.c cores.c given.c \
	handlers.c hooks.c lease.c listener.c net.c notices.c request.c rules.c session.c spawner.c start.c suspensions.c \
	watch.c worker.c)
gpu-agent-front_deps := $(protocol_gen)
gpu-agent-front_libs := agentd protocol base
gpu-agent-front_ldlibs := $(protocol_ldlibs) -levent_core -lseccomp -lcap

installs += 755:$(O)/bin/gpu-agent-front:$(libexecdir)/gpu-agent/gpu-agent-front
