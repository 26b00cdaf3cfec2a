archives += manager
manager_src := $(addprefix agentd/manager/,front.c heirs.c listen.c manager.c monitor_child.c notify.c requests.c rules_child.c watchdog.c)

programs += gpu-agentd
gpu-agentd_src := agentd/manager/main.c
gpu-agentd_libs := manager agentd base
gpu-agentd_ldlibs := -lcap -lseccomp

# The programs of the daemon lie side by side; /usr/sbin has a link to the first.
installs += 755:$(O)/bin/gpu-agentd:$(libexecdir)/gpu-agent/gpu-agentd
installs += link:$(libexecdir)/gpu-agent/gpu-agentd:$(sbindir)/gpu-agentd
