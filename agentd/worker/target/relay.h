/* SPDX-License-Identifier: MIT */
#ifndef WORKER_TARGET_RELAY_H
#define WORKER_TARGET_RELAY_H

/**
 * @file relay.h
 * Look at many processes, some of which may never answer.
 *
 * Whoever reads /proc/PID/cmdline or environ (before Linux 6.17 also maps) waits until the process's
 * memory is not locked, which a call that hangs in a driver or a file system keeps locked for good.  So a
 * thread of its own looks at one process after the other.  If it does not come back from one, it is left
 * behind, and another thread goes on with the next.
 *
 * One thread looks at a time and holds a lock, but for the reads that may never end: what looks share needs
 * no other lock.  The thread that waits touches nothing that they share, apart from `lost`.
 *
 * Context: a process that has threads left behind ends by _exit() (relay_is_stuck()); the kernel ends them with it,
 * for they wait killably.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Most threads that are left behind with one budget: then nobody is asked any more. */
#define RELAY_STUCK_MAX 32u
/** So long is a read waited for that sleeps, until RELAY_WAIT_MS have been waited in all, */
#define RELAY_PATIENCE_MS 20u
#define RELAY_WAIT_MS	  200u
/** and so long from then on. */
#define RELAY_SHORT_MS 5u

/** What may be waited for, by all looks of a list together; zeros to begin with. */
struct relay_budget {
	uint64_t waited_ns; /**< For reads that did not end. */
	uint32_t stuck;	    /**< Threads left behind. */
	bool no_thread;	    /**< One could not be started, so that nobody was asked. */
};

/** The turn of a thread. */
struct relay_turn;

/** What is done. */
struct relay_work {
	void *ctx;
	/** Look at an entry. */
	void (*look)(void *ctx, struct relay_turn *turn, size_t i);
	/** Nothing is known of an entry.  @param asked  It did not answer; false: it was not asked. */
	void (*lost)(void *ctx, size_t i, bool asked);
};

/** Look at each entry below @p n, in ascending order, or say that it is lost. */
void relay_run(struct relay_budget *b, const struct relay_work *work, size_t n);
/** In a look: what follows may never end.  Until relay_enter() the look touches only what is its own. */
void relay_leave(struct relay_turn *turn);
/** In a look.  @return false: it took too long, and is lost.  The look ends, and touches only what is its own. */
bool relay_enter(struct relay_turn *turn);
/** @return whether a thread of this process is left behind and has not come back. */
bool relay_is_stuck(void);

#endif /* WORKER_TARGET_RELAY_H */
