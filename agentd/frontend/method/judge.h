/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_METHOD_JUDGE_H
#define FRONTEND_METHOD_JUDGE_H

/**
 * @file judge.h
 * Whether a client may still do what it could when it attached.
 *
 * The monitor is asked again before a request is served, when its last answer is older than
 * JUDGE_MEMORY_MS, and JUDGE_STRICT_MS before the client takes control or begins a core.  So nothing wakes
 * up for it, and a client that has lost a right cannot use it any more.
 */

#include "agentd/frontend/rpc/request.h"
#include "agentd/frontend/session/attachment.h"

#define JUDGE_MEMORY_MS 10000
#define JUDGE_STRICT_MS 1000

/**
 * Have the client judged before @p r is served, where that is due.
 * @param params  Of the request; they are kept.
 * @return RPC_LATER: handlers_run() is called again for the request, or the request is refused; 0: it is not
 *         due; negative with @p err.
 */
int judge_first(struct request *r, const struct attachment *a, const char *params, size_t size,
		struct agent_err *err);

#endif /* FRONTEND_METHOD_JUDGE_H */
