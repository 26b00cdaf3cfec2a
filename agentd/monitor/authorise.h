/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_AUTHORISE_H
#define MONITOR_AUTHORISE_H

/**
 * @file authorise.h
 * Who may have a worker, and on which process: clients by their own rights, rules by the agent's.
 */

#include "agentd/monitor/workers.h"

/**
 * Answer one request of front.
 * @param rules        Groups that may do more than owners.
 * @param client_sock  Borrowed, as is @p early_fd (of an adapter; else -1).
 * @param ret_channel  For the frontend, or -1.
 */
void authorise_start(struct workers *w, const struct access_rules *rules, const struct ipc_start *start,
		     int client_sock, int early_fd, struct ipc_started *ret, int *ret_channel);

/** Answer that there will be no worker.  @param status -errno. */
void authorise_refuse(const struct ipc_start *start, int status, struct ipc_started *ret);

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
