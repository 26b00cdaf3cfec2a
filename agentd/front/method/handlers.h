/* SPDX-License-Identifier: MIT */
#ifndef FRONT_METHOD_HANDLERS_H
#define FRONT_METHOD_HANDLERS_H

/** @file handlers.h  Where a request goes: answered here, by a session's worker, or by an inspect worker. */

#include "agentd/front/rpc/request.h"

/** Takes the request over. */
void handlers_run(struct request *r, const char *params, size_t size);

#endif /* FRONT_METHOD_HANDLERS_H */
