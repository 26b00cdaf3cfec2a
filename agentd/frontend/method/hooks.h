/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_METHOD_HOOKS_H
#define FRONTEND_METHOD_HOOKS_H

/** @file hooks.h  hooks.list and hooks.test: the monitor does what they ask for. */

#include "agentd/frontend/rpc/request.h"

struct frontend;

int hooks_list(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
	       const struct rpc_hooks_list_params *params, struct rpc_hooks_list_result *ret,
	       struct agent_err *err);
int hooks_test(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
	       const struct rpc_hooks_test_params *params, struct rpc_hooks_test_result *ret,
	       struct agent_err *err);

/** The monitor's answer. */
void hooks_answered(struct frontend *f, const struct ipc_hooked *m, int take_fd);

#endif /* FRONTEND_METHOD_HOOKS_H */
