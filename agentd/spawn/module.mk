archives += spawn
spawn_src := agentd/spawn/adapters.c agentd/spawn/authorise.c agentd/spawn/check.c agentd/spawn/closers.c agentd/spawn/config.c agentd/spawn/discover.c agentd/spawn/recovery.c agentd/spawn/hook_requests.c agentd/spawn/hook_rule.c agentd/spawn/hook_rules.c agentd/spawn/hooks.c agentd/spawn/listen.c agentd/spawn/notify.c \
	agentd/spawn/release.c agentd/spawn/rescue.c agentd/spawn/rule_hooks.c agentd/spawn/rules.c agentd/spawn/rules_service.c agentd/spawn/stores.c agentd/spawn/undo_record.c agentd/spawn/watch.c agentd/spawn/watchdog.c \
	agentd/spawn/worker_env.c agentd/spawn/workers.c
spawn_deps := $(protocol_gen) $(O)/gen/paths.h

programs += gpu-agentd
gpu-agentd_src := agentd/spawn/main.c
gpu-agentd_libs := spawn agentd base
gpu-agentd_ldlibs := -linih -lcap

# The programs of the daemon lie side by side; /usr/sbin has a link to the first.
installs += 755:$(O)/bin/gpu-agentd:$(libexecdir)/gpu-agent/gpu-agentd
installs += link:$(libexecdir)/gpu-agent/gpu-agentd:$(sbindir)/gpu-agentd
