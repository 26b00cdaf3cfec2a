/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_METHOD_HOOKS_H
#define FRONTEND_METHOD_HOOKS_H

/** @file hooks.h  hooks.list and hooks.test: the monitor does what they ask for. */

#include "agentd/frontend/rpc/request.h"

struct frontend;

/** Answer hooks.list: a handler as rpc_gen.h declares it. */
int hooks_list(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
	       const struct rpc_hooks_list_params *params, struct rpc_hooks_list_result *ret,
	       struct agent_err *err);
/** Answer hooks.test: a handler as rpc_gen.h declares it. */
int hooks_test(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
	       const struct rpc_hooks_test_params *params, struct rpc_hooks_test_result *ret,
	       struct agent_err *err);

/**
 * Ask what hooks have done, for agent.metrics: metrics_answer() gets it, or nothing after two seconds.
 * @return RPC_LATER, or negative: too many ask about hooks.
 */
int hooks_ask_counts(struct request *r);

/** Pass the monitor's answer on.  @param take_fd  Owned by this function; -1: none came. */
void hooks_answered(struct frontend *f, const struct ipc_hooked *m, int take_fd);

#endif /* FRONTEND_METHOD_HOOKS_H */
