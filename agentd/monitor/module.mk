archives += monitor
monitor_src := $(addprefix agentd/monitor/,adapters.c authorise.c brokers.c monitor.c repairs.c requests.c rescues.c stores.c workers.c)

programs += gpu-agent-monitor
gpu-agent-monitor_src := agentd/monitor/main.c
gpu-agent-monitor_libs := monitor agentd base
gpu-agent-monitor_ldlibs := -lcap -lseccomp

installs += 755:$(O)/bin/gpu-agent-monitor:$(libexecdir)/gpu-agent/gpu-agent-monitor
