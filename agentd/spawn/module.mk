# Rooms, from the lowest on; the first three are policy, and know nothing of what is in no room.
spawn_hooks_src := $(addprefix agentd/spawn/hooks/,hook_requests.c hook_rule.c hook_rules.c hooks.c)
spawn_rules_src := $(addprefix agentd/spawn/rules/,check.c discover.c rule_hooks.c rules.c watch.c)
spawn_config_src := agentd/spawn/config/config.c
spawn_recovery_src := $(addprefix agentd/spawn/recovery/,recovery.c release.c rescue.c undo_record.c)

archives += spawn
spawn_src := $(spawn_hooks_src) $(spawn_rules_src) $(spawn_config_src) $(spawn_recovery_src) \
	$(addprefix agentd/spawn/,adapters.c authorise.c closers.c front.c listen.c notify.c requests.c \
	rules_service.c settings.c spawn.c stores.c watchdog.c workers.c)
spawn_deps := $(protocol_gen) $(O)/gen/paths.h

programs += gpu-agentd
gpu-agentd_src := agentd/spawn/main.c
gpu-agentd_libs := spawn agentd base
gpu-agentd_ldlibs := -linih -lcap

# The programs of the daemon lie side by side; /usr/sbin has a link to the first.
installs += 755:$(O)/bin/gpu-agentd:$(libexecdir)/gpu-agent/gpu-agentd
installs += link:$(libexecdir)/gpu-agent/gpu-agentd:$(sbindir)/gpu-agentd
