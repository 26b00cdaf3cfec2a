/* SPDX-License-Identifier: MIT */
#ifndef WORKER_HOST_STOPS_H
#define WORKER_HOST_STOPS_H

/**
 * @file stops.h
 * Stopping threads, one at a time and for microseconds, for registers that the kernel does not tell otherwise.
 *
 * Only where a client asked for it, and only threads whose native frames are not known without.  Another process
 * stops them (gpu-agent-tracer): it lets a thread go before it answers, and ends by itself when that takes too long.
 * Threads that wait in a call which a stop would end with EINTR are left alone (signal(7), "Interruption of system
 * calls"), as are those in a wait that nothing interrupts.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/access.h"

#define STOPS_INTERRUPTED_MAX 8

struct reading;

/** A thread that was in a call by the time it was stopped. */
struct stops_interrupted {
	uint32_t tid;
	int64_t call;
};

struct stops {
	pid_t pid; /**< Of the tracer; 0: there is none, and no thread is stopped. */
	int sock;
	uint8_t *block;	    /**< malloc'ed, IPC_TRACER_SAMPLE_MAX bytes. */
	uint32_t budget_us; /**< All stops together take no longer, but for the last one. */
	/* Told; written under the mutex of the reading. */
	uint64_t stopped_us;
	uint32_t n;
	struct stops_interrupted interrupted[STOPS_INTERRUPTED_MAX];
	uint32_t n_interrupted; /**< More than that are counted. */
};

/**
 * Start what stops threads, with the rights that this process has.
 * @param facts  Of the process, which is still the one that they are of.
 * @return 0, -errno.
 */
int stops_open(struct stops *s, const struct access_target *facts);
void stops_close(struct stops *s);
/**
 * Read the native frames of threads that have too few.  What cannot be had is noted in the reading.
 * @return 0; what hoststack_read() returns if nothing more can be read; -ENOMEM.
 */
int stops_read(struct stops *s, struct reading *r);

#endif /* WORKER_HOST_STOPS_H */
