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

#include "agentd/front/conn.h"

/** May this client be sent another?  @return 0, or negative with @p err. */
int given_check(const struct conn *c, const char *method, struct agent_err *err);
/** It was sent one. */
void given_sent(struct conn *c);
/** It is about to be closed. */
void given_leave(const struct conn *c);

#endif /* FRONT_GIVEN_H */
