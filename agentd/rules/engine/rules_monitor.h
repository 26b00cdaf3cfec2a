/* SPDX-License-Identifier: MIT */
#ifndef RULES_MONITOR_H
#define RULES_MONITOR_H

/**
 * @file rules_monitor.h
 * What rules ask of the privileged process.
 *
 * Rules need none of its rights themselves.  Each function is one question, and what it returns is the
 * answer; agentd/rules/host.c sends the question as a message.  What comes the other way is
 * watches_found(), watches_worker_ended(), watches_hint(), watches_release() and rule_hooks_run().
 */

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/ipc/monitor_rules.h"

/** A process, as far as rules ask. */
struct rules_process {
	uid_t uid;	    /**< The real one. */
	char exe[PATH_MAX]; /**< As /proc/PID/exe has it; "": could not be read. */
	char *cgroup;	    /**< Text of /proc/PID/cgroup, to be freed; NULL: could not be read. */
};

struct rules_monitor {
	/**
	 * Look for GPU processes: watches_found() for each, watches_worker_ended() behind the last.
	 * @return 0, -ESHUTDOWN (the agent stops), -errno.
	 */
	int (*look)(void *ctx, uint32_t *ret_worker);
	/** @param pidfd  Borrowed; what is read is about its process.  @return 0, -ESRCH, -errno. */
	int (*read)(void *ctx, pid_t pid, int pidfd, struct rules_process *ret);
	/**
	 * Let a rule watch the process: by the worker that it has, or a new one.  Clients hear of it.
	 * @param pidfd   Borrowed; holds the process.
	 * @param vendor  Of the process, to be remembered for a later rules process.
	 * @return 0, -EPERM, -EBUSY (being rescued), -EMFILE (too many sessions), -ESHUTDOWN (the agent
	 *         stops), -errno.
	 */
	int (*watch)(void *ctx, pid_t pid, int pidfd, enum ipc_vendor vendor,
		     const struct ipc_rule *rule, struct ipc_watch *ret);
	/** No rule watches any more: the session is left to its clients, and ends without one. */
	void (*let_go)(void *ctx, uint32_t worker);
};

#endif /* RULES_MONITOR_H */
