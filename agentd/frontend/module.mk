# Rooms, from the lowest on: each may include those above it here.
front_net_src := $(addprefix agentd/frontend/net/,arrivals.c closing.c conn.c given.c net.c monitor_link.c)
front_rpc_src := $(addprefix agentd/frontend/rpc/,notices.c request.c start.c)
front_session_src := $(addprefix agentd/frontend/session/,attachment.c calls.c lease.c readers.c rules.c session.c suspensions.c \
	watch.c worker.c)
front_method_src := $(addprefix agentd/frontend/method/,adapters.c attach.c cores.c handlers.c hooks.c judge.c listing.c metric_list.c \
	metrics.c)

# An archive so that the unit tests link the same objects.
archives += front
front_src := $(front_net_src) $(front_rpc_src) $(front_session_src) $(front_method_src)
front_deps := $(protocol_gen)
front_libs := front agentd protocol base
front_ldlibs := $(protocol_ldlibs) -levent_core -lseccomp -lcap

programs += gpu-agent-front
gpu-agent-front_src := agentd/frontend/main.c
gpu-agent-front_deps := $(protocol_gen)
gpu-agent-front_libs := $(front_libs)
gpu-agent-front_ldlibs := $(front_ldlibs)

installs += 755:$(O)/bin/gpu-agent-front:$(libexecdir)/gpu-agent/gpu-agent-front
