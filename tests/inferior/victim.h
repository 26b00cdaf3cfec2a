/* SPDX-License-Identifier: MIT */
#ifndef INFERIOR_VICTIM_H
#define INFERIOR_VICTIM_H

/**
 * @file victim.h
 * What the victim of inferior calls writes about itself, in memory shared with its test.
 */

#include <pthread.h>
#include <stdint.h>

#define VICTIM_FD     3 /* shared memory, inherited */
#define VICTIM_KINDS  19

enum victim_function { VICTIM_WORK, VICTIM_HELD, VICTIM_STUCK, VICTIM_CRASH, VICTIM_EXIT, VICTIM_EXEC,
		       VICTIM_N_FUNCTIONS };

struct victim {
	volatile uint32_t ready;
	volatile uint32_t errors;
	volatile char first_error[128];
	volatile uint64_t beats[VICTIM_KINDS]; /* rounds that each kind of thread has completed */
	volatile uint64_t entered, completed;  /* calls of the functions below */
	volatile uint64_t argument;
	volatile uint64_t interrupted; /* sleep, poll, epoll_wait: EINTR, which a killed caller may cause */
	volatile uint64_t unclean; /* calls that found another state of floating point than functions begin with */
	volatile uint64_t signals;
	volatile uint32_t released;    /* by the test: the function that is held returns */
	volatile uint32_t has_matrices, lacks_matrices; /* registers that no call could put back: set; none */
	pthread_spinlock_t spin; /* held from the start, for the kind of that name; whoever looks lets it go */
	volatile uint64_t function[VICTIM_N_FUNCTIONS];
};

#endif /* INFERIOR_VICTIM_H */
