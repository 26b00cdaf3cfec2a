/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_DEADLINE_H
#define WORKER_PROCESS_DEADLINE_H

/**
 * @file deadline.h
 * The dead man's handle: the monitor kills a worker that does not disarm in time, and the kernel then
 * undoes what the worker did.  A worker arms the deadline before it does anything that may block.
 *
 * If the monitor is gone by then, SIGALRM kills the worker: the worker may not catch, ignore or block it.
 */

#include <stdint.h>

/** How a worker reaches the process that kills it. */
struct deadline {
	int fd; /**< Socket to the monitor, borrowed. */
};

/** Time for a call.  While a lease is open no call may move the deadline behind its end. */
#define DEADLINE_CALL_MS 10000
/**
 * Time for one undo, or for one answer that the target waits for.  The target is free within a
 * second, whether the worker frees it or the monitor kills the worker.
 */
#define DEADLINE_UNDO_MS 750
/** Time that a worker which has undone everything may take to exit. */
#define DEADLINE_LEAVE_MS       5000
/** Time from the end of a lease to the deadline. */
#define DEADLINE_LEASE_GRACE_MS 1000

/** Let the monitor kill this worker unless it disarms, or arms again, within @p ms. */
void deadline_arm(const struct deadline *g, uint32_t ms);
/** Take the deadline back. */
void deadline_disarm(const struct deadline *g);

#endif /* WORKER_PROCESS_DEADLINE_H */
