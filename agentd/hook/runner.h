/* SPDX-License-Identifier: MIT */
#ifndef HOOK_RUNNER_H
#define HOOK_RUNNER_H

/** @file runner.h  One run of one hook, from the fork to the death of the last thing it started. */

#include "agentd/hook.h"

/**
 * Run it.  Reports on HOOK_FD_LINK as soon as the outcome is known, and returns when no process is
 * left of it, which with one that even SIGKILL cannot end may be never.
 */
void runner_run(const struct hook_job *job);
/** Look at the files of all; one report each, in order.  Takes at most CHECK_MS. */
void runner_check(const struct hook_job *jobs, size_t n);

#endif /* HOOK_RUNNER_H */
