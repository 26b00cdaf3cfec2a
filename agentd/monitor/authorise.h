/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_AUTHORISE_H
#define MONITOR_AUTHORISE_H

/**
 * @file authorise.h
 * Whether there is a place for whom the judge has found to be allowed, and what only this process
 * knows to be against it.
 */

#include "agentd/ipc/monitor_judge.h"
#include "agentd/monitor/workers.h"

/**
 * Start what a client wants.
 * @param fds  What came with the message; -1: nothing, or it was lost.  What is left there is closed
 *             by the caller.
 * @param ret  For the frontend.
 * @param ret_channel  The same; untouched unless a child was made.
 */
void authorise_start(struct workers *w, const struct judge_start *m, int fds[2], struct ipc_started *ret,
		     int *ret_channel);

/**
 * Let a rule watch a process: by the worker that it has, or a new one.
 * @param m      What the judge says about the process.
 * @param pidfd  Borrowed; holds the process.
 * @param ret_channel  For the frontend, of a new worker; untouched otherwise.
 * @return 0, -EPERM, -EBUSY (being rescued), -EMFILE (too many sessions), -errno.
 */
int authorise_watch(struct workers *w, const struct judge_watch *m, int pidfd, struct ipc_watch *ret,
		    int *ret_channel);

#endif /* MONITOR_AUTHORISE_H */
