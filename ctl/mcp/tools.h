/* SPDX-License-Identifier: MIT */
#ifndef CTL_MCP_TOOLS_H
#define CTL_MCP_TOOLS_H

/**
 * @file tools.h
 * The tools: what each says of itself, its arguments, and the command line of gpu-agentctl that it stands for.
 *
 * To add one: a table of arguments, a function that builds the command, and a row of the list in tools.c; its
 * annotations have to be true of every command that the function builds.
 */

#include "ctl/mcp/arguments.h"
#include "ctl/mcp/mcp.h"

struct mcp_tool;

/** Most words of a command, and bytes of all of them. */
#define MCP_ARGV_MAX   24
#define MCP_WORDS_SIZE 6144
/** Milliseconds that a call may take, unless its command says otherwise. */
#define MCP_DEADLINE_MS 20000
/** Most snapshots that a command reads. */
#define MCP_READS_MAX 2

/** What a call of a tool is to run. */
struct mcp_command {
	char words[MCP_WORDS_SIZE];
	size_t used;
	const char *argv[MCP_ARGV_MAX + 1]; /**< Of gpu-agentctl, NULL-terminated; points into words. */
	size_t n;
	bool too_long;
	uint32_t pid;	      /**< Whose queues it may stop; STOPS_ANY: of which, it finds out; 0: it stops none. */
	uint32_t stop_ms;     /**< For so long at most. */
	uint32_t pause_ms;    /**< For so long it only waits, between two stops. */
	uint32_t deadline_ms; /**< Of the call. */
	bool document;	      /**< It prints a snapshot, which is kept, and shown as `analyze` does. */
	bool holds;	      /**< It stays, with queues stopped, until its standard input ends. */
	const char *reads[MCP_READS_MAX]; /**< Names of snapshots that it reads from descriptors 3 and 4. */
};

/** What a command is built from. */
struct mcp_input {
	const struct mcp_tool *tool;
	const struct mcp_value *values;
	const struct mcp_options *options;
};

struct mcp_tool {
	const char *name, *title;
	const char *text; /**< What it does; the first sentence says what it does to the target. */
	const struct mcp_arg *args;
	bool control;	  /**< Offered only where control is allowed. */
	bool writes_file; /**< Offered only where there is a directory as well. */
	/* Annotations. */
	bool changes, destroys, repeats_same, open_world;
	const char *instead; /**< What to call where the process cannot be debugged so; NULL: doctor. */
	/** @return 0, -EINVAL with @p why. */
	int (*build)(const struct mcp_input *in, struct mcp_command *cmd, struct out *why);
};

/** Whether the server offers a tool. */
bool mcp_tool_is_offered(const struct mcp_tool *tool, const struct mcp_options *o);
/** The tool of that position in the list; NULL behind the last. */
const struct mcp_tool *mcp_tool_at(size_t i);
/** The tool of a name that is offered; NULL: there is none. */
const struct mcp_tool *mcp_tool_find(const char *name, const struct mcp_options *o);
/** Append an item of tools/list. */
void mcp_tool_describe(struct out *o, const struct mcp_tool *tool);
/**
 * Make the command of a call.
 * @param values  What mcp_args_read() has read.
 * @return 0, -EINVAL with @p why.
 */
int mcp_tool_build(const struct mcp_input *in, struct mcp_command *ret, struct out *why);
/** The command that shows a kept snapshot, which it reads from descriptor 3. */
void mcp_tool_build_show(const struct mcp_options *o, struct mcp_command *ret);

#endif /* CTL_MCP_TOOLS_H */
