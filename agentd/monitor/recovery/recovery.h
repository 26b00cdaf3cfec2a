/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_RECOVERY_H
#define MONITOR_RECOVERY_H

/**
 * @file recovery.h
 * Who looks after targets when the monitor itself dies.
 *
 * The recovery process (gpu-agent-heir) is a child of the monitor that sleeps until the monitor is gone: it gives the
 * workers a moment to undo what they did, kills those that do not (their undo records say which live), and
 * rescues their targets.  Where a service manager kills it as well, the next start of the agent does the
 * same.
 */

#include <sys/types.h>

#include "agentd/monitor/recovery/rescue.h"

/**
 * Do what an agent that was killed with that process left undone.  Blocks as long as that takes, half a minute
 * at most for each 32 targets.
 */
void recovery_take_over(const struct rescue_host *h);

/**
 * Look after every GPU process that waits for a debugger and that nobody traces, record or not.  Each
 * has a child, for which this does not wait unless there are very many.
 */
void recovery_release_leftovers(const struct rescue_host *h, const char *kfd_sysfs);

/**
 * Fork the recovery process of the calling one.
 * @return its pid; 0: there is none, and the next start does its work.
 */
pid_t recovery_start(const struct rescue_host *h);

/**
 * End the recovery process of an agent that stops and has left nothing to recover: a service manager would kill
 * it, and report that.
 * @param pid  As recovery_start() returned it, not reaped yet; 0: none.
 */
void recovery_end(pid_t pid);

#endif /* MONITOR_RECOVERY_H */
