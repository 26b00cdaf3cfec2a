/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_METHOD_CORES_H
#define FRONTEND_METHOD_CORES_H

/**
 * @file cores.h
 * Calls to the record store: a process for each connection that makes some, started by the first one
 * and sent away when it has had nothing to do for a while.
 */

#include "agentd/frontend/rpc/request.h"

/**
 * Pass a request on to the connection's process, which is started if need be.
 * @return RPC_LATER: the request is answered later; or negative with @p err.
 */
int cores_call(struct request *r, const char *params, size_t size, struct agent_err *err);

#endif /* FRONTEND_METHOD_CORES_H */
