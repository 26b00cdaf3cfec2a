# Rooms, from the lowest on.
archives += rules
rules_src := $(addprefix agentd/rules/hooks/,hook_requests.c hook_rule.c hook_rules.c hooks.c) \
	$(addprefix agentd/rules/engine/,check.c discover.c rule_hooks.c rules.c sound.c users.c watch.c) \
	$(addprefix agentd/rules/config/,config.c dump.c files.c keys.c parsed.c parser.c) \
	$(addprefix agentd/rules/,host.c saved.c service.c settings.c store_check.c)
rules_deps := $(protocol_gen) $(O)/gen/paths.h

programs += gpu-agent-rules
gpu-agent-rules_src := agentd/rules/main.c
gpu-agent-rules_deps := $(protocol_gen)
gpu-agent-rules_libs := rules agentd base
gpu-agent-rules_ldlibs := -linih -lcap -lseccomp

installs += 755:$(O)/bin/gpu-agent-rules:$(libexecdir)/gpu-agent/gpu-agent-rules
