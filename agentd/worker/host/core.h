/* SPDX-License-Identifier: MIT */
#ifndef WORKER_HOST_CORE_H
#define WORKER_HOST_CORE_H

/**
 * @file core.h
 * host.stacks of a core file: threads from its notes, their stacks from its memory.
 *
 * Nothing moves in a core.  One that was written while threads ran on, as the agent's own are, has of each thread
 * registers and the top of its stack of one moment, and other memory of a later one.
 */

#include "base/out.h"
#include "protocol/agent_err.h"
#include "protocol/rpc_arena.h"

/** A file; borrowed. */
struct core_source {
	const void *data;
	size_t size;
	const char *name; /**< For people. */
	uint64_t time_us; /**< When it was written. */
};

/**
 * Answer the call.
 * @param params  As JSON; of these `pid` and `children` do not count.
 * @return 0, negative with @p err.
 */
int core_stacks(const struct core_source *from, struct rpc_arena *a, const char *params, size_t size, struct out *reply,
		struct agent_err *err);

#endif /* WORKER_HOST_CORE_H */
