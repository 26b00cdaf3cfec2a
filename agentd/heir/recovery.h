/* SPDX-License-Identifier: MIT */
#ifndef HEIR_RECOVERY_H
#define HEIR_RECOVERY_H

/**
 * @file recovery.h
 * Who looks after targets when the monitor itself dies.
 *
 * The heir sleeps until the monitor is gone: it gives the workers a moment to undo what they did, kills those
 * that do not (their undo records say which live), and rescues their targets.  Where a service manager kills
 * it as well, the next start of the agent does the same.
 */

#include <sys/types.h>

#include "agentd/heir/rescue.h"

/**
 * Do what an agent that was killed with that process left undone.  Blocks as long as that takes, half a minute
 * at most for each 32 targets.
 * @param monitor  Leave the records of other monitors alone; 0: all.
 */
void recovery_take_over(const struct rescue_host *h, pid_t monitor);

/**
 * Look after every GPU process that waits for a debugger and that nobody traces, record or not.  Each
 * has a child, for which this does not wait unless there are very many.
 */
void recovery_release_leftovers(const struct rescue_host *h);

#endif /* HEIR_RECOVERY_H */
