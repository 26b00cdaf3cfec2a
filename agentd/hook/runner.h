/* SPDX-License-Identifier: MIT */
#ifndef HOOK_RUNNER_H
#define HOOK_RUNNER_H

/** @file runner.h  One run of one hook, from the fork to the end of the last process it started. */

#include "agentd/hook.h"

/**
 * Run a hook.  The report goes out on HOOK_FD_LINK as soon as the outcome is known.  The function
 * returns when no process of the hook is left; if even SIGKILL cannot end one, that may be never.
 */
void runner_run(const struct hook_job *job);
/** Check the files of all jobs; send one report for each, in order.  It takes CHECK_MS at most. */
void runner_check(const struct hook_job *jobs, size_t n);

#endif /* HOOK_RUNNER_H */
