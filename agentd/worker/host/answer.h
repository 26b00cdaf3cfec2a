/* SPDX-License-Identifier: MIT */
#ifndef WORKER_HOST_ANSWER_H
#define WORKER_HOST_ANSWER_H

/** @file answer.h  The result of host.stacks: threads that do the same, together. */

#include "agentd/worker/host/reading.h"
#include "protocol/rpc_arena.h"
#include "rpc_gen.h"

/**
 * Fill in python, groups, threads, running, complete and missing.
 * @param a  Holds the result, but for names of functions and files, which are those of the reading.
 */
void answer_fill(struct rpc_arena *a, struct reading *r, pid_t pid, struct rpc_host_stacks_result *ret);

#endif /* WORKER_HOST_ANSWER_H */
