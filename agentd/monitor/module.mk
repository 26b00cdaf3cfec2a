monitor_recovery_src := $(addprefix agentd/monitor/recovery/,recovery.c release.c rescue.c undo_record.c)

archives += monitor
monitor_src := $(monitor_recovery_src) \
	$(addprefix agentd/monitor/,adapters.c authorise.c broker/brokers.c front.c listen.c notify.c programs.c requests.c \
	rules_child.c monitor.c stores.c watchdog.c workers.c)

programs += gpu-agentd
gpu-agentd_src := agentd/monitor/main.c
gpu-agentd_libs := monitor agentd base
gpu-agentd_ldlibs := -lcap -lseccomp

# The programs of the daemon lie side by side; /usr/sbin has a link to the first.
installs += 755:$(O)/bin/gpu-agentd:$(libexecdir)/gpu-agent/gpu-agentd
installs += link:$(libexecdir)/gpu-agent/gpu-agentd:$(sbindir)/gpu-agentd
