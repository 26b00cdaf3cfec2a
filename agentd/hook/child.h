/* SPDX-License-Identifier: MIT */
#ifndef HOOK_CHILD_H
#define HOOK_CHILD_H

/** @file child.h  From a fork of the runner to the hook: nothing of the agent goes along. */

#include <sys/resource.h>

#include "agentd/hook.h"
#include "agentd/hook/user.h"

/** What the child tells when there will be no hook; nothing at all when there is one. */
struct hook_child_error {
	uint32_t end; /**< HOOK_END_REFUSED or HOOK_END_FAILED. */
	char why[HOOK_WHY_MAX];
};

struct hook_child {
	const struct hook_job *job;
	const struct hook_user *user;
	rlim_t processes; /**< Of the user, with those that he has already. */
	pid_t runner;
	int output_fd; /**< Standard output and error. */
	int error_fd;  /**< For struct hook_child_error. */
};

/** Become the user and the hook. */
_Noreturn void hook_child_run(const struct hook_child *c);
/** Become the user, look at the file, and always tell: HOOK_END_EXIT when it is all right. */
_Noreturn void hook_child_check(const struct hook_child *c);

#endif /* HOOK_CHILD_H */
