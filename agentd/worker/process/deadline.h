/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_DEADLINE_H
#define WORKER_PROCESS_DEADLINE_H

/**
 * @file deadline.h
 * The dead man's handle: spawn kills a worker that does not disarm in time, and the kernel then
 * undoes what the worker did.  Arm before anything that may block.
 *
 * If spawn is gone by then, SIGALRM kills: nothing may catch, ignore or block it.
 */

#include <stdint.h>

struct deadline {
	int fd; /**< Socket to spawn, borrowed. */
};

/** While a lease is open a call may not push the deadline behind the end of the lease. */
#define DEADLINE_CALL_MS 10000
/** One undo, or one answer that the target waits for: it is free within a second, whoever sees to it. */
#define DEADLINE_UNDO_MS 750
/** What is left to do for a worker that has undone everything. */
#define DEADLINE_LEAVE_MS       5000
#define DEADLINE_LEASE_GRACE_MS 1000

void deadline_arm(const struct deadline *g, uint32_t ms);
void deadline_disarm(const struct deadline *g);

#endif /* WORKER_PROCESS_DEADLINE_H */
