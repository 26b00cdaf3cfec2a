/* SPDX-License-Identifier: MIT */
#ifndef RPC_DISPATCH_H
#define RPC_DISPATCH_H

/** @file rpc_dispatch.h  What the generated dispatchers share; programs call those instead. */

#include "rpc_gen.h"

struct rpc_dispatch {
	struct rpc_arena *arena;
	enum rpc_method method;
	const char *params_text;
	size_t params_size;
	struct out *reply;
	struct agent_err *err;
	void *params; /**< Decoded, in the arena. */
	void *result; /**< Zeroed, in the arena. */
};

/** Decode the parameters, unless the method is not handled here. */
int rpc_dispatch_begin(struct rpc_dispatch *d, bool handled);
/** Encode the result when the handler returned 0; make sure that a failure has an error. */
int rpc_dispatch_end(struct rpc_dispatch *d, int r);

/** A whole notification message. */
void rpc_notification_encode(struct out *o, enum rpc_notification n,
			     const struct rpc_struct *structure, const void *params);

#endif /* RPC_DISPATCH_H */
