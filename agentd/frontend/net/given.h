/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_NET_GIVEN_H
#define FRONTEND_NET_GIVEN_H

/**
 * @file given.h
 * Descriptors that clients were sent and have not received: the kernel counts them for the user who
 * sent them, and lets him send none to anybody once they are too many (ETOOMANYREFS, unix(7)).
 * So there is one for each connection, and few of a user on connections that were closed before he
 * read it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** What users have left unread on connections that are closed. */
struct given {
	struct given_left {
		uid_t uid;
		uint32_t n;
	} left[32];
};

/** Has this user left few enough? */
bool given_may(const struct given *g, uid_t uid);
/** Was everything received that was sent on this socket, a descriptor with it? */
bool given_is_read(int fd);
/** A connection of this user is closed with one that he has not received. */
void given_left(struct given *g, uid_t uid);

#endif /* FRONTEND_NET_GIVEN_H */
