/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_METHOD_METRICS_H
#define FRONTEND_METHOD_METRICS_H

/** @file metrics.h  agent.metrics: what the agent has counted. */

#include "agentd/frontend/rpc/request.h"

struct hook_info;

/** Answer agent.metrics: a handler as rpc_gen.h declares it. */
int metrics_agent(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		  const struct rpc_agent_metrics_params *params, struct rpc_agent_metrics_result *ret,
		  struct agent_err *err);
/** Answer it with what hooks did.  @param hooks  n_hooks of them, borrowed; none where that is not known. */
void metrics_answer(struct request *r, const struct hook_info *hooks, size_t n_hooks);

#endif /* FRONTEND_METHOD_METRICS_H */
