/* SPDX-License-Identifier: MIT */
#ifndef RULES_HOOK_RULES_H
#define RULES_HOOK_RULES_H

/** @file hook_rules.h  What is known about the hooks of all rules, and what their runners are told. */

#include <stddef.h>
#include <sys/types.h>

#include "agentd/hook.h"
#include "agentd/rules/hooks/hook_rule.h"
#include "base/log.h"

struct hook_entry {
	struct hook_rule rule;
	struct hook_info info; /**< Counts and the last run. */
};

struct hook_rules {
	struct hook_entry *entries;
	size_t n;
};

/** As hooks_configure(). */
int hook_rules_configure(struct hook_rules *h, const struct hook_rule *rules, size_t n);
void hook_rules_deinit(struct hook_rules *h);
/** @return NULL when there is no such rule, or it has no hook. */
struct hook_entry *hook_rules_find(const struct hook_rules *h, const char *rule);

/** What a hook is about. */
struct hook_event {
	const char *rule;
	pid_t pid; /**< The target; 0: none, a sample. */
	uid_t uid; /**< Its real user and group: the hook's, unless the rule says another. */
	gid_t gid;
	/** Names begin GPU_AGENT_; those ending RULE, PID, UID and HOOK come by themselves, from above. */
	const struct log_field *fields;
	int document_fd; /**< A sealed memfd (base/fd.h) with the JSON, or -1: nothing on stdin. */
};

/**
 * What a runner is told.
 * @return 0, -EINVAL (a field's name), -E2BIG (too many fields).
 */
int hook_rules_job(const struct hook_rule *rule, const struct hook_event *e, struct hook_job *ret);
/** Add a run to the counts of its rule, which may be gone from the configuration by now. */
void hook_rules_count(struct hook_rules *h, const char *rule, const struct hook_report *report);
/** One journal record for one run. */
void hook_rules_log(const struct hook_job *job, const char *rule, pid_t target,
		    const struct hook_report *report);

#endif /* RULES_HOOK_RULES_H */
