/* SPDX-License-Identifier: MIT */
#ifndef RPC_EDITOR_H
#define RPC_EDITOR_H

/**
 * @file rpc_editor.h
 * Requests of the Debug Adapter Protocol, told from those of JSON-RPC.
 */

#include <stdbool.h>
#include <stddef.h>

/** What an answer to such a request repeats: pieces of its text, which stand there as JSON. */
struct rpc_editor_request {
	const char *seq, *command; /**< A number, a string with its quotes. */
	size_t seq_size, command_size;
};

/** @return whether it is one: JSON-RPC has `jsonrpc` in each message, and none of the members of these. */
bool rpc_editor_request_parse(const char *text, size_t size, struct rpc_editor_request *ret);

#endif /* RPC_EDITOR_H */
