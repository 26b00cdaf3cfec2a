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
 * The first message of a connection.
 * @return false if it is no such request; else the connection is held until an adapter has it, or
 *         there is none, and it is closed.
 */
bool adapters_begin(struct frontend *f, struct conn *c, const char *body, size_t size);

#endif /* FRONTEND_METHOD_ADAPTERS_H */
