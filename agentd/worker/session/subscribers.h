/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SESSION_SUBSCRIBERS_H
#define WORKER_SESSION_SUBSCRIBERS_H

/**
 * @file subscribers.h
 * Which client of a session asked for which exceptions; the target is told the sum of it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct subscriber {
	uint32_t client;     /**< Its number on this session (ipc/link.h). */
	uint64_t exceptions; /**< As in target/target.h; 0: none. */
	uint32_t look_ms;    /**< Longest stop to see which waves a fault concerns; 0: no look. */
	bool hold;
};

struct subscribers {
	struct subscriber *list;
	size_t n, capacity;
};

/** Accepts a zeroed object. */
void subscribers_deinit(struct subscribers *s);
/** What @p who wants from now on; without exceptions it is forgotten.  @return 0, -ENOMEM. */
int subscribers_set(struct subscribers *s, const struct subscriber *who);
/** @return whether it had asked for anything. */
bool subscribers_remove(struct subscribers *s, uint32_t client);
/** Nobody holds exceptions back any more. */
void subscribers_release(struct subscribers *s);
/** All together: every exception, the longest look, hold if one holds. */
struct subscriber subscribers_sum(const struct subscribers *s);

#endif /* WORKER_SESSION_SUBSCRIBERS_H */
