/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_AUTHORISE_H
#define MONITOR_AUTHORISE_H

/**
 * @file authorise.h
 * Who may have a worker, and on which process: clients by their own rights, rules by the agent's.
 */

#include "agentd/monitor/clients/clients.h"
#include "agentd/monitor/clients/refusals.h"
#include "agentd/monitor/workers.h"

struct candidate;

struct authorise {
	struct workers *workers;
	struct candidate *first; /**< Clients about whom the kernel is being asked, the oldest first. */
	struct refusals refusals;
	/** For the frontend.  @param channel  To the worker, or -1; borrowed. */
	void (*answer)(void *ctx, const struct ipc_started *m, int channel);
	/** For the frontend: a client was refused so often that its connection is to be closed. */
	void (*over)(void *ctx, const struct client *client);
	/** For the frontend: a client is no administrator any more. */
	void (*changed)(void *ctx, const struct ipc_client *m);
	void *ctx;
};

/**
 * Answer one request of the frontend, now or when the kernel has said whether the client may.
 * @param take_sock  For an adapter, else -1; left alone unless the adapter has it.
 * @param early_fd   The same, but borrowed.
 * @return 0, -EPROTO: the frontend asks for more than it may.
 */
int authorise_start(struct authorise *a, const struct ipc_start *start, struct client *client, int *take_sock,
		    int early_fd);
/** A child was reaped.  @return false when it was none that asks the kernel. */
bool authorise_reaped(struct authorise *a, pid_t pid, int wait_status);
/**
 * Do not wait longer for the kernel than allowed, and tell of refusals.
 * @return next deadline (monotonic ns), 0: none.
 */
uint64_t authorise_deadlines(struct authorise *a);
/** The agent stops: nobody is answered any more. */
void authorise_cancel(struct authorise *a);

/**
 * Let @p rule watch a process: by the worker that it has, or a new one.
 * @param pidfd  Borrowed; holds the process.
 * @param vendor  Of the process, to be remembered.
 * @param ret_channel  For the frontend, of a new worker; untouched otherwise.
 * @return 0, -EPERM, -EBUSY (being rescued), -EMFILE (too many sessions), -errno.
 */
int authorise_watch(struct workers *w, const struct ipc_rule *rule, pid_t pid, int pidfd,
		    enum ipc_vendor vendor, struct ipc_watch *ret, int *ret_channel);

#endif /* MONITOR_AUTHORISE_H */
