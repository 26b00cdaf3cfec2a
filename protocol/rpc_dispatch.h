/* SPDX-License-Identifier: MIT */
#ifndef RPC_DISPATCH_H
#define RPC_DISPATCH_H

/**
 * @file rpc_dispatch.h
 * What the generated dispatchers share: parameters to a structure, the result to a reply.
 *
 * Programs call the generated dispatchers of rpc_gen.h instead.
 */

#include "rpc_gen.h"

/** One call under way.  The members up to err are the caller's and borrowed. */
struct rpc_dispatch {
	struct rpc_arena *arena;
	enum rpc_method method;
	const char *params_text;
	size_t params_size;
	struct out *reply;     /**< Gets the text of the result. */
	struct agent_err *err; /**< Not NULL. */
	void *params; /**< Decoded, in the arena. */
	void *result; /**< Zeroed, in the arena. */
};

/**
 * Decode the parameters and make room for the result.
 * @param handled  Whether this program has a handler for the method.
 * @return 0, -EOPNOTSUPP (it has none), or another negative value; always with d->err.
 */
int rpc_dispatch_begin(struct rpc_dispatch *d, bool handled);
/**
 * Encode the result when the handler returned 0; make sure that a failure has an error.
 * @param r  What the handler returned: 0, RPC_LATER (which is passed on), or negative.
 * @return @p r, or negative when the result cannot be encoded.
 */
int rpc_dispatch_end(struct rpc_dispatch *d, int r);

/** Append a whole notification message. */
void rpc_notification_encode(struct out *o, enum rpc_notification n,
			     const struct rpc_struct *structure, const void *params);

#endif /* RPC_DISPATCH_H */
