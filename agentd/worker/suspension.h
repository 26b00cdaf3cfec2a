/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SUSPENSION_H
#define WORKER_SUSPENSION_H

/**
 * @file suspension.h
 * How often, how long and until when clients have queues of the target suspended; front is told each
 * time that this changes, and answers for it.
 */

#include <stddef.h>
#include <stdint.h>

struct session;

struct suspension {
	uint64_t count;
	uint64_t total_ns; /**< Of those that are over. */
	uint64_t since_ns; /**< Monotonic; 0: nothing is suspended. */
	/* As front was told: */
	size_t n;
	uint64_t lease_end_ns;
};

/** Look at the target, whatever may have happened to it; before clients are told the same. */
void suspension_sync(struct session *s);

#endif /* WORKER_SUSPENSION_H */
