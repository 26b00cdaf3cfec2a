/* SPDX-License-Identifier: MIT */
#ifndef WORKER_HOST_ASYNCIO_H
#define WORKER_HOST_ASYNCIO_H

/**
 * @file asyncio.h
 * Tasks of asyncio: those that wait are on no thread's stack, and only they know what an idle server waits for.
 */

#include "hoststack/asyncio.h"
#include "protocol/rpc_arena.h"
#include "rpc_gen.h"

struct reading;

/** One task that was read. */
struct reading_task {
	struct hoststack_task task; /**< Owned. */
	uint32_t tid;		    /**< Of the thread whose loop it belongs to. */
	bool is_certain;
};

/** Those of all threads. */
struct reading_tasks {
	struct reading_task *list; /**< malloc'ed. */
	size_t n, capacity;
};

/**
 * Read the tasks of an interpreter's threads, and publish them with what is missing.
 * @param base  Where the interpreter's own file is mapped.
 * @return 0, or why nothing more can be read.
 */
int asyncio_read(struct reading *r, size_t python, uint64_t base, const struct hoststack_threads *t);
/** Those that wait at the same place for the same, together. */
void asyncio_fill(struct rpc_arena *a, const struct reading_tasks *t, struct rpc_host_stacks_result *ret);
void asyncio_free(struct reading_tasks *t);

#endif /* WORKER_HOST_ASYNCIO_H */
