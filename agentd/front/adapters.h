/* SPDX-License-Identifier: MIT */
#ifndef FRONT_ADAPTERS_H
#define FRONT_ADAPTERS_H

/**
 * @file adapters.h
 * Editors on the agent's own socket.
 *
 * A connection that begins with a request of the Debug Adapter Protocol is lent to an adapter, a
 * process of the editor's user (agentd/adapter), together with what was read from it.  Front keeps
 * the socket only for its credentials: the adapter's calls are judged as the editor's own.
 */

#include "agentd/front/request.h"

/**
 * The first message of a connection.
 * @return false if it is no such request; else the connection is held until adapters_started(), or
 *         its request fails.
 */
bool adapters_begin(struct conn *c, const char *body, size_t size);
/** Spawn has started one.  @param take_channel  What the adapter calls the agent by. */
void adapters_started(struct request *r, int take_channel);
/** Why spawn has started none.  @return 0 if it has, negative with @p err. */
int adapters_refused(const struct ipc_started *m, struct agent_err *err);

#endif /* FRONT_ADAPTERS_H */
