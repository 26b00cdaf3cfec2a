/* SPDX-License-Identifier: MIT */
#ifndef JUDGE_NAMES_H
#define JUDGE_NAMES_H

/**
 * @file names.h
 * Which clients have been let into which sessions, which stores serve whom, and who they were.
 *
 * A session may tell of a client when its connection is closed already, so that some of those that have
 * gone are still known, as long as their session goes on.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/ipc/monitor_frontend.h"

struct client;
struct clients;

/** So many that have gone are known; the latest. */
#define NAMES_GONE 256
/** And those of so many sessions that are over: the frontend may have spoken of one before it heard of its end. */
#define NAMES_ENDED 32

struct name {
	uint64_t client;
	uint32_t worker; /**< The monitor's number of the session's process, or of the store's. */
	pid_t pid;
	uid_t uid;
	uid_t charge;
	enum ipc_right rights; /**< On the target of the session, as judged last. */
	uint32_t session;
	pid_t target;
	uid_t target_uid;
	uint64_t ended; /**< The session was the so manieth that ended; 0: it goes on. */
};

struct names {
	struct name *list; /**< The oldest first. */
	size_t n, capacity;
	uint64_t n_ended; /**< Sessions and stores. */
};

/** Release memory; a zeroed object is accepted. */
void names_deinit(struct names *n);
/**
 * A client was let into a session, or has got a store.  Without memory nobody will know its name.
 * @param m       What the monitor has answered.
 * @param target  Of the session.
 */
void names_add(struct names *n, const struct clients *all, const struct client *k, const struct ipc_started *m,
	       pid_t target);
/** A client was judged anew: what it may do with that process. */
void names_judged(struct names *n, uint64_t client, pid_t target, enum ipc_right rights);
/** @return the name of a client in that session, or NULL: it has no part in it, or has long gone. */
const struct name *names_find(const struct names *n, uint64_t client, uint32_t worker);
/** @return the name of the client that a store serves, or NULL. */
const struct name *names_of_store(const struct names *n, uint32_t worker);
/** That session is over, or the store has ended. */
void names_worker_ended(struct names *n, uint32_t worker);

#endif /* JUDGE_NAMES_H */
