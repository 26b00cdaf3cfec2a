/* SPDX-License-Identifier: MIT */
#ifndef CTL_MCP_ARGUMENTS_H
#define CTL_MCP_ARGUMENTS_H

/**
 * @file arguments.h
 * The arguments of a tool: a table describes them, from which the JSON schema is written and with which those of a call
 * are checked.  Pure functions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dap/json.h"

struct out;

enum mcp_arg_kind {
	MCP_ARG_UINT,	 /**< A whole number from min to max. */
	MCP_ARG_BOOL,
	MCP_ARG_TEXT,	 /**< At most max bytes, printable. */
	MCP_ARG_CHOICE,	 /**< One of the words in values. */
	MCP_ARG_ADDRESS, /**< A string such as "0x7f00". */
	MCP_ARG_PIDS,	 /**< An array of process ids, at most max. */
};

struct mcp_arg {
	const char *name; /**< NULL ends a table. */
	enum mcp_arg_kind kind;
	bool required;
	uint32_t min, max;
	uint32_t preset;    /**< Of a number; told in the schema unless it is 0. */
	const char *values; /**< Of a choice: words joined by "|". */
	const char *text;   /**< What it is, or NULL where the name says it. */
};

#define MCP_ARGS_MAX 10  /**< Most arguments of a tool, with those that every tool has. */
#define MCP_TEXT_MAX 200 /**< Bytes of the longest text. */
#define MCP_PIDS_MAX 64

/** One argument as it was given. */
struct mcp_value {
	bool given;
	uint64_t number; /**< 1 for true; a number that was not given has its preset. */
	char text[MCP_TEXT_MAX * 3 + 8]; /**< Of a text, choice or address; of pids with commas. */
};

/** Names of the arguments that every tool has, behind its own. */
#define MCP_ARG_CURSOR "cursor"
#define MCP_ARG_BYTES  "max_bytes"
#define MCP_BYTES_MIN	 1024
#define MCP_BYTES_MAX	 65536
#define MCP_BYTES_PRESET 8000

/** The arguments that every tool has. */
extern const struct mcp_arg mcp_args_common[];

/** Append the JSON schema of a table. */
void mcp_args_schema(struct out *o, const struct mcp_arg *args);
/**
 * Check what was given.
 * @param given   The object `arguments`; absent for none.
 * @param ret     In the order of the table, then of mcp_args_common.
 * @param why     Says what is wrong with which argument.
 * @return 0, -EINVAL with @p why.
 */
int mcp_args_read(const struct mcp_arg *args, struct dap_json given, struct mcp_value ret[MCP_ARGS_MAX],
		  struct out *why);
/** The value of a name that one of the two tables has. */
const struct mcp_value *mcp_arg_get(const struct mcp_arg *args, const struct mcp_value *values, const char *name);

#endif /* CTL_MCP_ARGUMENTS_H */
