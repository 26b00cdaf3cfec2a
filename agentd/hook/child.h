/* SPDX-License-Identifier: MIT */
#ifndef HOOK_CHILD_H
#define HOOK_CHILD_H

/**
 * @file child.h
 * What a fork of the runner does to become the hook: nothing of the agent may go along, neither
 * rights nor descriptors, signals or environment.
 */

#include <sys/resource.h>

#include "agentd/hook.h"
#include "agentd/hook/user.h"

/** What the child writes if the hook cannot be started; it writes nothing if the hook starts. */
struct hook_child_error {
	uint32_t end; /**< HOOK_END_REFUSED or HOOK_END_FAILED. */
	char why[HOOK_WHY_MAX];
};

/** What the child needs. */
struct hook_child {
	const struct hook_job *job;
	const struct hook_user *user;
	rlim_t processes; /**< Most processes of the user, with those that it has already. */
	pid_t runner;
	int output_fd; /**< Becomes standard output and error. */
	int error_fd;  /**< Takes a struct hook_child_error. */
};

/** Become the user, judge the file, and become the hook. */
_Noreturn void hook_child_run(const struct hook_child *c);
/** Become the user, judge the file, and always answer: HOOK_END_EXIT if it is in order. */
_Noreturn void hook_child_check(const struct hook_child *c);

#endif /* HOOK_CHILD_H */
