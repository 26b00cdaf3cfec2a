/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_UNDO_H
#define WORKER_PROCESS_UNDO_H

/**
 * @file undo.h
 * What has been changed in a target, as a stack of ways to change it back.
 *
 * Push the entry *before* the change: then neither a failed allocation nor a failure half-way
 * leaves a change that nobody remembers.  An entry must therefore cope with a change that did not
 * happen.  Every way out of a session runs the same stack in reverse and keeps going on errors; the
 * first error is the one reported.
 *
 * An entry that fails is tried again a moment later, a few times (undo_again()).  The stack forgets
 * an entry when it has succeeded, not before: a change that could not be undone stays on the stack,
 * and in the state of the module that pushed it, until the end of the session undoes it
 * (target_undo()).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/agent_err.h"

#define UNDO_NONE UINT32_C(0)

/**
 * Change something back.  The function is called again after a failure, so it should keep the state
 * of what is still to be undone, and only that.
 * @return 0, or negative with @p err filled in.
 */
typedef int (*undo_fn)(void *ctx, uint64_t arg, struct agent_err *err);

/** One change and the way back. */
struct undo_entry {
	uint32_t ticket;
	const char *what; /**< Static text for messages. */
	undo_fn fn;
	void *ctx;
	uint64_t arg;
	bool stays; /**< undo_keep() */
};

/** The stack of all changes, the newest last. */
struct undo {
	struct undo_entry *entries;
	size_t n, capacity;
	uint32_t last_ticket; /**< Tickets ascend, and are never used again. */
};

#define UNDO_NULL { 0 }

/** Free the stack without running it. */
void undo_deinit(struct undo *u);

/**
 * Push an entry.
 * @param what        Names the change in messages; static.
 * @param ret_ticket  Names the entry; never UNDO_NONE.
 * @return 0, or negative with @p err: there is no memory, and the change must not be made.
 */
int undo_push(struct undo *u, const char *what, undo_fn fn, void *ctx, uint64_t arg,
	      uint32_t *ret_ticket, struct agent_err *err);
/** Let undo_run() with a mark leave an entry alone: what it undoes is not one client's alone. */
void undo_keep(struct undo *u, uint32_t ticket);
/** Forget an entry without running it; unknown tickets and UNDO_NONE are ignored. */
void undo_drop(struct undo *u, uint32_t ticket);
/** Run one entry; forget it if it succeeds.  @return its result; 0 if there is no such entry. */
int undo_run_one(struct undo *u, uint32_t ticket, struct agent_err *err);

/**
 * Pause before another try to undo something; all pauses together are a small part of
 * DEADLINE_UNDO_MS.
 * @param tries  Number of pauses so far; starts at 0.
 * @return true after a pause; false, at once, if there were tries enough.
 */
bool undo_again(unsigned *tries);

/** @return a mark with which undo_run() leaves all entries alone that were pushed so far. */
static inline uint32_t undo_mark(const struct undo *u)
{
	return u->last_ticket;
}
/**
 * Run all entries pushed after @p mark, newest first; forget those that succeed.
 * @param mark  From undo_mark(); 0: run all, also those of undo_keep().
 * @return 0 or the first error, with @p err about it.
 */
int undo_run(struct undo *u, uint32_t mark, struct agent_err *err);

#endif /* WORKER_PROCESS_UNDO_H */
