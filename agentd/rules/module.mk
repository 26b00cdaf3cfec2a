# Rooms, from the lowest on.
archives += rules
rules_src := $(addprefix agentd/rules/hooks/,hook_requests.c hook_rule.c hook_rules.c hooks.c) \
	$(addprefix agentd/rules/engine/,check.c discover.c rule_hooks.c rules.c watch.c) \
	agentd/rules/config/config.c
rules_deps := $(protocol_gen) $(O)/gen/paths.h
