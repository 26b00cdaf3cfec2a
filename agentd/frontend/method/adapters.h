/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_METHOD_ADAPTERS_H
#define FRONTEND_METHOD_ADAPTERS_H

/**
 * @file adapters.h
 * Editors on the agent's own socket.
 *
 * A connection that begins with a request of the Debug Adapter Protocol is lent to an adapter, a
 * process of the editor's user (agentd/adapter), together with what was read from it.  The frontend keeps
 * the socket only for its credentials: the adapter's calls are judged as the editor's own.
 */

#include <stdbool.h>
#include <stddef.h>

struct conn;
struct frontend;

/**
 * Look at the first message of a connection, and lend the connection to an adapter if the message is
 * a request of that protocol.
 * @return false if it is none; else the connection is held until an adapter has it, or is closed if
 *         there is no adapter.
 */
bool adapters_begin(struct frontend *f, struct conn *c, const char *body, size_t size);

#endif /* FRONTEND_METHOD_ADAPTERS_H */
