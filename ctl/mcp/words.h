/* SPDX-License-Identifier: MIT */
#ifndef CTL_MCP_WORDS_H
#define CTL_MCP_WORDS_H

/**
 * @file words.h
 * How the tools make command lines.  Every word that an assistant has chosen stands behind "--", or behind "=" in a word
 * of ours, and so is never taken for an option.
 */

#include "ctl/mcp/tools.h"

extern const struct mcp_tool mcp_tool_list, mcp_tool_doctor, mcp_tool_snapshot, mcp_tool_why, mcp_tool_stacks,
	mcp_tool_diff, mcp_tool_wave, mcp_tool_memory, mcp_tool_disassemble, mcp_tool_job_report, mcp_tool_suspend,
	mcp_tool_resume, mcp_tool_dump;

/** Append a word. */
void words_add(struct mcp_command *cmd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** Begin with a verb and the options that all commands have. */
void words_verb(const struct mcp_input *in, struct mcp_command *cmd, const char *verb);
/** Append "--" and the argument pid. */
void words_pid(const struct mcp_input *in, struct mcp_command *cmd);
/** Append the longest stop, and note how many times the command may stop the queues of the argument pid; 0: never. */
void words_max_stop(const struct mcp_input *in, struct mcp_command *cmd, uint32_t times);

static inline const struct mcp_value *input_get(const struct mcp_input *in, const char *name)
{
	return mcp_arg_get(in->tool->args, in->values, name);
}
static inline bool input_has(const struct mcp_input *in, const char *name)
{
	return input_get(in, name)->given;
}
static inline uint32_t input_number(const struct mcp_input *in, const char *name)
{
	return (uint32_t)input_get(in, name)->number;
}
static inline const char *input_text(const struct mcp_input *in, const char *name)
{
	return input_get(in, name)->text;
}

/* Rows that several tables have. */
#define WORDS_PID_MAX 4194304
#define WORDS_PID(is_required) \
	{ "pid", MCP_ARG_UINT, .required = (is_required), .min = 1, .max = WORDS_PID_MAX }
#define WORDS_MAX_STOP \
	{ "max_stop_ms", MCP_ARG_UINT, .min = 1, .max = 7000, .preset = 100 }

#endif /* CTL_MCP_WORDS_H */
