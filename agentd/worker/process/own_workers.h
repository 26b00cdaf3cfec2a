/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_OWN_WORKERS_H
#define WORKER_PROCESS_OWN_WORKERS_H

/**
 * @file own_workers.h
 * The session workers of this agent.  They trace processes and use devices themselves, so that the
 * inspecting workers have to tell them from strangers.
 */

#include <sys/types.h>

#include "protocol/rpc_arena.h"

/**
 * Find the session of the first of the monitor's children that is the process @p worker and serves the
 * process @p target; 0 stands for any process.  No other process can pass for a child of the monitor.
 * @return the session's id, in the arena; NULL: there is none.
 */
const char *own_workers_find(struct rpc_arena *a, pid_t worker, pid_t target);

#endif /* WORKER_PROCESS_OWN_WORKERS_H */
