/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_NET_GIVEN_H
#define FRONTEND_NET_GIVEN_H

/**
 * @file given.h
 * Descriptors that clients were sent and have not received: the kernel counts them for the user who
 * sent them, which is the agent's, and lets that user send none to anybody once they are too many
 * (ETOOMANYREFS, unix(7)).  So there is at most one for each connection, and few for each client's
 * user on connections that were closed before the descriptor was read.
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

/** @return whether this user has left few enough unread to be sent another one. */
bool given_may(const struct given *g, uid_t uid);
/** @return whether everything that was sent on this socket was received, a descriptor with it. */
bool given_is_read(int fd);
/** Note that a connection of this user is closed with a descriptor that was not received. */
void given_left(struct given *g, uid_t uid);

#endif /* FRONTEND_NET_GIVEN_H */
