/* SPDX-License-Identifier: MIT */
#ifndef RULES_HOOK_RULE_H
#define RULES_HOOK_RULE_H

/** @file hook_rule.h  The hook of one watch rule, as agentd.conf has it. */

#include <stdbool.h>
#include <sys/types.h>

#include "agentd/hook.h"

/** Rules that have hooks. */
#define HOOKS_RULES_MAX 64

/** "" as path: it has none. */
struct hook_rule {
	char rule[HOOK_RULE_MAX];
	char path[HOOK_PATH_MAX];
	char user[HOOK_USER_MAX]; /**< "": the target's. */
	/* Whose processes the rule is for, as far as it says that. */
	bool has_target_uid;
	uid_t target_uid;     /**< One of them. */
	bool takes_root;      /**< Processes of root, too. */
	struct hook_limits limits;
};

void hook_rule_init(struct hook_rule *r, const char *rule);
/**
 * Take one key of a `[rule NAME]` section: hook, hook_user, hook_timeout, hook_memory, hook_output.
 * @param ret_wrong  NULL, or what is wrong with the value (static text).
 * @return false when the key is none of these.
 */
bool hook_rule_set(struct hook_rule *r, const char *key, const char *value, const char **ret_wrong);

#endif /* RULES_HOOK_RULE_H */
