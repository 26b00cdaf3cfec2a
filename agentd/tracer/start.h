/* SPDX-License-Identifier: MIT */
#ifndef TRACER_START_H
#define TRACER_START_H

/** @file start.h  Starting gpu-agent-tracer, for workers; what they say to it is in agentd/ipc/worker_tracer.h. */

#include <stdint.h>
#include <sys/types.h>

#include "agentd/access.h"

/**
 * Start a tracer, with the rights that this process has.  It ends when its socket does.
 * @param facts        Of the target, as it was allowed to be traced.
 * @param start_ticks  Field 22 of /proc/PID/stat.
 * @param proc_fd      The directory /proc/PID.
 * @param pidfd        Of the target.
 * @param ret_pid      Of the tracer; for tracer_reap().
 * @param ret_sock     Owned by the caller.
 * @return 0, -errno.
 */
int tracer_start(const struct access_target *facts, uint64_t start_ticks, int proc_fd, int pidfd, pid_t *ret_pid,
		 int *ret_sock);
/**
 * Take the status of a tracer whose socket was closed, if it has ended: it is nobody's to wait for.
 * @param pid  0: there is none.
 */
void tracer_reap(pid_t pid);

#endif /* TRACER_START_H */
