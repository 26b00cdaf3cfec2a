/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_OWN_WORKERS_H
#define WORKER_PROCESS_OWN_WORKERS_H

/** @file own_workers.h  Session workers of this agent: they trace processes and use devices, too. */

#include <sys/types.h>

#include "protocol/rpc_arena.h"

/**
 * The session of the first of spawn's children that is the process @p worker and serves the process
 * @p target; 0 stands for any.  Nobody else can pass for one of those.
 * @return the session's id, in the arena; NULL: there is none.
 */
const char *own_workers_find(struct rpc_arena *a, pid_t worker, pid_t target);

#endif /* WORKER_PROCESS_OWN_WORKERS_H */
