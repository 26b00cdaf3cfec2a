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
	uint64_t client;     /**< The number of its connection (ipc/link.h). */
	uint64_t exceptions; /**< As in target/target.h; 0: none. */
	uint32_t look_ms;    /**< Longest stop to see which waves a fault concerns; 0: no look. */
	bool hold;
};

struct subscribers {
	struct subscriber *list;
	size_t n, capacity;
};

/** Release memory; a zeroed object is accepted. */
void subscribers_deinit(struct subscribers *s);
/**
 * Set what a client wants from now on; a client that wants no exceptions is forgotten.
 * @return 0, -ENOMEM.
 */
int subscribers_set(struct subscribers *s, const struct subscriber *who);
/** @return what a client wants; no exceptions where it has asked for none. */
struct subscriber subscribers_get(const struct subscribers *s, uint64_t client);
/** Forget a client.  @return whether it had asked for anything. */
bool subscribers_remove(struct subscribers *s, uint64_t client);
/** Let no client hold exceptions back any more. */
void subscribers_release(struct subscribers *s);
/** @return what all want together: every exception, the longest look, hold if one holds. */
struct subscriber subscribers_sum(const struct subscribers *s);

#endif /* WORKER_SESSION_SUBSCRIBERS_H */
