/* SPDX-License-Identifier: MIT */
#ifndef RPC_EDITOR_H
#define RPC_EDITOR_H

/**
 * @file rpc_editor.h
 * Tells requests of the Debug Adapter Protocol from those of JSON-RPC, so that an editor may
 * connect to the agent's own socket: an adapter is then started for its connection.
 */

#include <stdbool.h>
#include <stddef.h>

/** Pieces of a request's text, as JSON, that an answer to the request must repeat. */
struct rpc_editor_request {
	const char *seq, *command; /**< The number, and the string with its quotes; borrowed. */
	size_t seq_size, command_size;
};

/**
 * Whether a message is a request of the Debug Adapter Protocol: it has `type`, `seq` and `command`,
 * and no `jsonrpc`, which every message of JSON-RPC has.
 * @param ret  Points into @p text; untouched when the answer is false.
 */
bool rpc_editor_request_parse(const char *text, size_t size, struct rpc_editor_request *ret);

#endif /* RPC_EDITOR_H */
