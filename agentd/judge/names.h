/* SPDX-License-Identifier: MIT */
#ifndef JUDGE_NAMES_H
#define JUDGE_NAMES_H

/**
 * @file names.h
 * Which clients have been let into which sessions, and who they were.
 *
 * A session may tell of a client when its connection is closed already, so that some of those that have
 * gone are still known, as long as their session goes on.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct client;
struct clients;

/** So many that have gone are known; the latest. */
#define NAMES_GONE 256

struct name {
	uint64_t client;
	uint32_t worker; /**< The monitor's number of the session's process. */
	pid_t pid;
	uid_t uid;
	uid_t charge;
};

struct names {
	struct name *list; /**< The oldest first. */
	size_t n, capacity;
};

/** Release memory; a zeroed object is accepted. */
void names_deinit(struct names *n);
/** A client was let in.  Without memory nobody will know its name. */
void names_add(struct names *n, const struct clients *all, const struct client *k, uint32_t worker);
/** @return the name of a client in that session, or NULL: it has no part in it, or has long gone. */
const struct name *names_find(const struct names *n, uint64_t client, uint32_t worker);
/** That session is over. */
void names_worker_ended(struct names *n, uint32_t worker);

#endif /* JUDGE_NAMES_H */
