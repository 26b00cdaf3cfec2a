/* SPDX-License-Identifier: MIT */
#ifndef FRONT_METHOD_HOOKS_H
#define FRONT_METHOD_HOOKS_H

/** @file hooks.h  hooks.list and hooks.test: spawn does what they ask for. */

#include "agentd/front/rpc/request.h"

struct front;

int hooks_list(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
	       const struct rpc_hooks_list_params *params, struct rpc_hooks_list_result *ret,
	       struct agent_err *err);
int hooks_test(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
	       const struct rpc_hooks_test_params *params, struct rpc_hooks_test_result *ret,
	       struct agent_err *err);

/** spawn's answer. */
void hooks_answered(struct front *f, const struct ipc_hooked *m, int take_fd);

#endif /* FRONT_METHOD_HOOKS_H */
