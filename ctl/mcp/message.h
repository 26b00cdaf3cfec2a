/* SPDX-License-Identifier: MIT */
#ifndef CTL_MCP_MESSAGE_H
#define CTL_MCP_MESSAGE_H

/**
 * @file message.h
 * Takes a message of a client apart: JSON-RPC 2.0 as the Model Context Protocol narrows it, which has no batches and no
 * id that is null.  A pure function of the text.
 */

#include <stdbool.h>
#include <stddef.h>

#include "dap/json.h"

#define MCP_ID_SIZE	256 /**< Room for the JSON text of an id. */
#define MCP_METHOD_SIZE 64

/** Codes of JSON-RPC, and of the protocol's own. */
#define MCP_PARSE_ERROR		-32700
#define MCP_INVALID_REQUEST	-32600
#define MCP_METHOD_NOT_FOUND	-32601
#define MCP_INVALID_PARAMS	-32602
#define MCP_RESOURCE_NOT_FOUND	-32002 /**< Before 2026-07-28, which has MCP_INVALID_PARAMS for it. */
#define MCP_UNSUPPORTED_VERSION -32022

enum mcp_kind { MCP_REQUEST, MCP_NOTIFICATION, MCP_RESPONSE };

struct mcp_message {
	enum mcp_kind kind;
	char id[MCP_ID_SIZE]; /**< JSON text of the id; "" if it is not known. */
	char method[MCP_METHOD_SIZE];
	struct dap_json params; /**< An object of the text, or absent. */
};

struct mcp_problem {
	int code;
	char text[200];
};

/**
 * Read a message.
 * @param text  Borrowed by @p ret.
 * @param ret   Of a message that is wrong the id is set nevertheless, where it can be read.
 * @return 0, -EINVAL with @p problem.
 */
int mcp_message_parse(const char *text, size_t size, struct mcp_message *ret, struct mcp_problem *problem);

#endif /* CTL_MCP_MESSAGE_H */
