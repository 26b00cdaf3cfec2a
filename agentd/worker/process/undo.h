/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_UNDO_H
#define WORKER_PROCESS_UNDO_H

/**
 * @file undo.h
 * What has been changed in a target, as a stack of ways to change it back.
 *
 * Push *before* the change: then neither a failed allocation nor a failure half-way leaves a change
 * that nobody remembers.  An entry must therefore cope with a change that did not happen.  Every
 * way out of a session runs the same stack in reverse and keeps going on errors; the first error
 * is the one reported.
 *
 * An entry that fails is tried again a moment later, a few times (undo_again()).  It is forgotten
 * when it has succeeded, not before: what could not be undone stays on the list, and in the state
 * of whoever pushed it, until the end of the session undoes it (target_undo()).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/agent_err.h"

#define UNDO_NONE UINT32_C(0)

/**
 * Called again after a failure, so that it may keep only the state of what is still to be undone.
 * @return 0, or negative with @p err filled in.
 */
typedef int (*undo_fn)(void *ctx, uint64_t arg, struct agent_err *err);

struct undo_entry {
	uint32_t ticket;
	const char *what; /**< Static text for messages. */
	undo_fn fn;
	void *ctx;
	uint64_t arg;
};

struct undo {
	struct undo_entry *entries;
	size_t n, capacity;
	uint32_t last_ticket;
};

#define UNDO_NULL { 0 }

/** Frees the list; does not run it. */
void undo_deinit(struct undo *u);

/**
 * @param ret_ticket  Names the entry; never UNDO_NONE.
 * @return 0, -ENOMEM (with @p err).
 */
int undo_push(struct undo *u, const char *what, undo_fn fn, void *ctx, uint64_t arg,
	      uint32_t *ret_ticket, struct agent_err *err);
/** Forget an entry without running it; unknown tickets and UNDO_NONE are ignored. */
void undo_drop(struct undo *u, uint32_t ticket);
/** Run one entry; forget it if it succeeds.  @return its result; 0 when there is no such entry. */
int undo_run_one(struct undo *u, uint32_t ticket, struct agent_err *err);

/**
 * Another try of what undoes something, after a pause; all pauses together are a small part of
 * DEADLINE_UNDO_MS.
 * @param tries  Starts at 0.
 * @return false when it was tried often enough.
 */
bool undo_again(unsigned *tries);

/** What undo_run() is to leave alone: everything pushed so far. */
static inline uint32_t undo_mark(const struct undo *u)
{
	return u->last_ticket;
}
/**
 * Run, newest first, everything pushed after @p mark (0: everything); forget what succeeds.
 * @return 0 or the first error.
 */
int undo_run(struct undo *u, uint32_t mark, struct agent_err *err);

#endif /* WORKER_PROCESS_UNDO_H */
