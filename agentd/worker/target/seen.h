/* SPDX-License-Identifier: MIT */
#ifndef WORKER_TARGET_SEEN_H
#define WORKER_TARGET_SEEN_H

/**
 * @file seen.h
 * Limits of a look at every process of the machine, and what one look leaves for the next.
 *
 * Whoever lists processes reads what strangers have mapped, which the strangers choose.  So no more than
 * SEEN_OTHERS_MAX is read of a process of another user, and beyond SEEN_FREE of each no more than SEEN_LOOK_MAX
 * of all of them together.  What took more than SEEN_FREE to find out is remembered for SEEN_KEEP_MS, as long as
 * the process executes the same file and has no more or less code loaded.  A process that looks is gone after one look;
 * the frontend, which cannot read this, keeps it for lists of clients with the same rights.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/ipc/frontend_worker.h"
#include "agentd/worker/target/relay.h"

#define SEEN_FREE	((size_t)128 << 10)
#define SEEN_OTHERS_MAX ((size_t)1 << 20)
#define SEEN_LOOK_MAX	((uint64_t)64 << 20)
#define SEEN_KEEP_MS	60000
/** Processes of another user that may not answer before no more of his are asked. */
#define SEEN_LOST_MAX	2u

/** Does a process use the devices? */
enum seen_what {
	SEEN_NO,
	SEEN_YES,
	SEEN_CUT, /**< Not in what was read. */
};

/** A process that did not tell in time what it has mapped. */
struct seen_lost {
	pid_t pid;
	uid_t uid;
};

/** A look. */
struct seen {
	uid_t own; /**< Of its client. */
	uint64_t left; /**< Of SEEN_LOOK_MAX. */
	uint32_t n_cut; /**< Processes of which not all was read. */
	struct relay_budget budget; /**< Of waiting for those that do not answer. */
	struct seen_lost lost[RELAY_STUCK_MAX];
	uint32_t n_lost;
	uint32_t n_unasked; /**< Processes that were not asked, because others did not answer. */
	struct ipc_looked *known; /**< Of earlier looks. */
	size_t n_known;
	struct ipc_looked *list; /**< For the next one. */
	size_t n, capacity;
};

/** Begin a look that knows nothing of earlier ones. */
void seen_init(struct seen *s, uid_t own);
void seen_deinit(struct seen *s);
/** Learn what an earlier look has left.  @param data  Any bytes. */
void seen_learn(struct seen *s, const void *data, size_t size);

/** @return how many bytes of a process of that user may be read. */
size_t seen_allows(const struct seen *s, uid_t uid);
/** @return whether an earlier look has told @p ret, and it is still true. */
bool seen_find(struct seen *s, pid_t pid, enum seen_what *ret);
/**
 * Whoever locks his processes' memory keeps nobody from seeing those of others.
 * @return whether a process of that user may be asked.
 */
bool seen_may_ask(const struct seen *s, uid_t uid);
/** Note a process that was not seen.  @param asked  It did not answer. */
void seen_lose(struct seen *s, pid_t pid, uid_t uid, bool asked);
/** Note what was found in so many bytes. */
void seen_note(struct seen *s, pid_t pid, uid_t uid, size_t bytes, enum seen_what what);

#endif /* WORKER_TARGET_SEEN_H */
