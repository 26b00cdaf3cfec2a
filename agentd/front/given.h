/* SPDX-License-Identifier: MIT */
#ifndef FRONT_GIVEN_H
#define FRONT_GIVEN_H

/**
 * @file given.h
 * Descriptors that clients were sent and have not received: the kernel counts them for the user who
 * sent them, and lets him send none to anybody once they are too many (ETOOMANYREFS, unix(7)).
 * So there is one for each connection, and few of a user on connections that were closed before he
 * read it.
 */

#include "agentd/front/front.h"

/** Have few enough been left unread by this user? */
bool given_may(struct front *f, uid_t uid);
/** Was everything received that was sent on this socket, a descriptor with it? */
bool given_is_read(int fd);
/** A connection of this user is closed with one that he has not received. */
void given_left(struct front *f, uid_t uid);

#endif /* FRONT_GIVEN_H */
