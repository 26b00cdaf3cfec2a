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
 * Context: one thread makes, uses and ends a pool.  The pool's threads sleep between two calls.
 */

#include <stddef.h>

struct thread_pool;

/**
 * Start the threads.  Call it before the queues are stopped, because starting threads takes time.
 * @param n_max  Most threads, the caller included; there are never more than processors.
 * @return a pool for thread_pool_destroy(); NULL if the caller is alone, for want of processors or
 *         memory: all functions accept NULL.
 */
struct thread_pool *thread_pool_create(size_t n_max);
/** End the threads and wait for their end. */
void thread_pool_destroy(struct thread_pool *c);

/**
 * Call job(ctx, i) once for each i below @p n, on any of the threads.  The calls begin in ascending
 * order, but run side by side; the function returns when all are done.  A job should take 0.1 ms or
 * more, or the cost of handing it out counts.
 */
void thread_pool_run(struct thread_pool *c, void (*job)(void *ctx, size_t i), void *ctx, size_t n);

#endif /* WORKER_PROCESS_THREAD_POOL_H */
