/* SPDX-License-Identifier: MIT */
#ifndef MANAGER_REQUESTS_H
#define MANAGER_REQUESTS_H

/** @file requests.h  What each process may ask of the manager, or have it pass on: tables, in requests.c. */

#include "agentd/manager/manager.h"

/**
 * Take one message of the judge, which may be the frontend's, and do what it asks for.
 * @return 0, -EAGAIN, -EPIPE, -EPROTO: it may not ask for that; other -errno.
 */
int requests_read_judge(struct manager *s);
/** The same of the monitor, which has news for the rules process, too. */
int requests_read_monitor(struct manager *s);
/** The same of the rules process. */
int requests_read_rules(struct manager *s);

#endif /* MANAGER_REQUESTS_H */
