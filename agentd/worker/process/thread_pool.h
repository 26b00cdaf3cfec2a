/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_THREAD_POOL_H
#define WORKER_PROCESS_THREAD_POOL_H

/**
 * @file thread_pool.h
 * A few threads that share the copying while queues stand still.
 *
 * A job may read a target's memory through descriptors that are open (memory.h) and work on memory
 * that was allocated before.  Everything that belongs to the session (KFD, ptrace, the driver,
 * events, the arena) stays with the one thread that opened it.
 *
 * Context: one thread makes, uses and ends a pool.  Its members sleep between two calls.
 */

#include <stddef.h>

struct thread_pool;

/**
 * Before the stop: starting threads takes time.
 * @param n_max  Threads at most, the caller included; never more than there are processors.
 * @return NULL if the caller is alone, for want of processors, memory or permission: all
 *         functions take it.  Otherwise thread_pool_destroy() it.
 */
struct thread_pool *thread_pool_create(size_t n_max);
/** Ends the threads and waits for it. */
void thread_pool_destroy(struct thread_pool *c);

/**
 * job(ctx, i) for each i below @p n, in ascending order but side by side: once each, on any of the
 * threads.  Returns when all are done.  A job takes the order of 0.1 ms, or handing it out counts.
 */
void thread_pool_run(struct thread_pool *c, void (*job)(void *ctx, size_t i), void *ctx, size_t n);

#endif /* WORKER_PROCESS_THREAD_POOL_H */
