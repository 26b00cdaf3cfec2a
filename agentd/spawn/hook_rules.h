/* SPDX-License-Identifier: MIT */
#ifndef SPAWN_HOOK_RULES_H
#define SPAWN_HOOK_RULES_H

/** @file hook_rules.h  What is known about the hooks of all rules; for hooks.c. */

#include "agentd/spawn/hooks.h"

/** @return NULL when there is no such rule, or it has no hook. */
struct hook_entry *hook_rules_find(struct hooks *h, const char *rule);
/**
 * What a runner is told.
 * @return 0, -EINVAL (a field's name), -E2BIG (too many fields).
 */
int hook_rules_job(const struct hook_rule *rule, const struct hook_event *e, struct hook_job *ret);
/** Add a run to the counts of its rule, which may be gone from the configuration by now. */
void hook_rules_count(struct hooks *h, const char *rule, const struct hook_report *report);
/** One journal record for one run. */
void hook_rules_log(const struct hook_job *job, const char *rule, pid_t target,
		    const struct hook_report *report);

#endif /* SPAWN_HOOK_RULES_H */
