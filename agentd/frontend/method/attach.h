/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_METHOD_ATTACH_H
#define FRONTEND_METHOD_ATTACH_H

/** @file attach.h  session.attach: a place in the session of a target, which may have to be made. */

#include "agentd/frontend/rpc/request.h"

/** Answer session.attach, now or later.  @param r  Owned by this function. */
void attach_begin(struct request *r, const struct rpc_session_attach_params *params);

#endif /* FRONTEND_METHOD_ATTACH_H */
