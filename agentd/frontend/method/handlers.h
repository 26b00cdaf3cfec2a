/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_METHOD_HANDLERS_H
#define FRONTEND_METHOD_HANDLERS_H

/** @file handlers.h  Where a request goes: answered here, by a session's worker, or by an inspect worker. */

#include "agentd/frontend/rpc/request.h"

/** Answer a request, now or later.  @param r  Owned by this function. */
void handlers_run(struct request *r, const char *params, size_t size);

#endif /* FRONTEND_METHOD_HANDLERS_H */
