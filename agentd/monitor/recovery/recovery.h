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

#include "agentd/monitor/recovery/rescue.h"

/** Do what an agent that was killed with that process left undone.  Blocks as long as that takes. */
void recovery_take_over(const struct rescue_host *h);

/**
 * Look after every GPU process that waits for a debugger and that nobody traces, record or not.  Each
 * has a child, for which this does not wait unless there are very many.
 */
void recovery_release_leftovers(const struct rescue_host *h, const char *kfd_sysfs);

/** Fork the recovery process of the calling one.  Without one, the next start does its work. */
void recovery_start(const struct rescue_host *h);

#endif /* MONITOR_RECOVERY_H */
