/* SPDX-License-Identifier: MIT */
/* Tools that look at one wave, at memory and at code. */
#include <errno.h>
#include <string.h>

#include "base/out.h"
#include "ctl/mcp/words.h"

#define LANE_MAX 63
#define WORDS_WAVE(is_required) \
	{ "wave", MCP_ARG_TEXT, .required = (is_required), .max = MCP_TEXT_MAX, .text = "row number (#) of snapshot, or QUEUE:UNIT:INDEX" }

/* ------------------------------------------------------------------ wave --------------------- */

static const struct mcp_arg wave_args[] = {
	WORDS_PID(true),
	WORDS_WAVE(true),
	{ "show", MCP_ARG_CHOICE, .values = "variables|registers|lanes" },
	{ "expression", MCP_ARG_TEXT, .max = MCP_TEXT_MAX, .text = "of the kernel's variables; instead of show" },
	{ "vectors", MCP_ARG_BOOL, .text = "vector registers too" },
	{ "lane", MCP_ARG_UINT, .max = LANE_MAX },
	WORDS_MAX_STOP,
	{ 0 },
};

static const char *wave_verb(const struct mcp_input *in)
{
	if (input_has(in, "expression"))
		return "print";
	return input_has(in, "show") ? input_text(in, "show") : "variables";
}

static int build_wave(const struct mcp_input *in, struct mcp_command *cmd, struct out *why)
{
	const char *verb = wave_verb(in);
	bool registers = !strcmp(verb, "registers");

	if (registers && input_has(in, "lane")) {
		out_str(why, "\"lane\" is for variables, lanes and expressions");
		return -EINVAL;
	}
	words_verb(in, cmd, verb);
	words_max_stop(in, cmd, 1);
	if (registers && !input_number(in, "vectors"))
		words_add(cmd, "--bank=special,scalar");
	if (input_has(in, "lane"))
		words_add(cmd, "--lane=%u", input_number(in, "lane"));
	words_pid(in, cmd);
	words_add(cmd, "%s", input_text(in, "wave"));
	if (input_has(in, "expression"))
		words_add(cmd, "%s", input_text(in, "expression"));
	return 0;
}

const struct mcp_tool mcp_tool_wave = {
	.name = "wave",
	.title = "One wave: variables, registers or lanes",
	.text = "Pauses the GPU queues for at most max_stop_ms. What one wave (warp) has: variables of its kernel, registers, what "
		"each lane (thread) works on, or the value of an expression.",
	.args = wave_args,
	.repeats_same = true,
	.build = build_wave,
};

/* ------------------------------------------------------------------ memory ------------------- */

#define MEMORY_MAX 1024

static const struct mcp_arg memory_args[] = {
	WORDS_PID(true),
	{ "address", MCP_ARG_ADDRESS, .required = true },
	{ "bytes", MCP_ARG_UINT, .min = 1, .max = MEMORY_MAX, .preset = 64 },
	{ "space", MCP_ARG_CHOICE, .values = "global|lds|scratch|generic|param|constant|code" },
	{ "wave", MCP_ARG_TEXT, .max = MCP_TEXT_MAX, .text = "whose, for all but global" },
	{ "lane", MCP_ARG_UINT, .max = LANE_MAX, .text = "whose scratch" },
	WORDS_MAX_STOP,
	{ 0 },
};

static int build_memory(const struct mcp_input *in, struct mcp_command *cmd, struct out *why)
{
	words_verb(in, cmd, "memory");
	words_max_stop(in, cmd, input_has(in, "wave") ? 1 : 0);
	if (input_has(in, "space"))
		words_add(cmd, "--space=%s", input_text(in, "space"));
	if (input_has(in, "wave"))
		words_add(cmd, "--wave=%s", input_text(in, "wave"));
	if (input_has(in, "lane"))
		words_add(cmd, "--lane=%u", input_number(in, "lane"));
	words_pid(in, cmd);
	words_add(cmd, "%s", input_text(in, "address"));
	words_add(cmd, "%u", input_number(in, "bytes"));
	return 0;
}

const struct mcp_tool mcp_tool_memory = {
	.name = "memory",
	.title = "Read memory of the GPUs",
	.text = "With a wave, pauses the GPU queues for at most max_stop_ms. Bytes as the GPUs of the process see them; what cannot be "
		"read is named.",
	.args = memory_args,
	.repeats_same = true,
	.build = build_memory,
};

/* ------------------------------------------------------------------ disassemble -------------- */

static const struct mcp_arg disassemble_args[] = {
	WORDS_PID(true),
	{ "wave", MCP_ARG_TEXT, .max = MCP_TEXT_MAX, .text = "around its program counter" },
	{ "address", MCP_ARG_ADDRESS, .text = "instead of a wave" },
	{ "count", MCP_ARG_UINT, .min = 1, .max = 40, .preset = 16 },
	WORDS_MAX_STOP,
	{ 0 },
};

static int build_disassemble(const struct mcp_input *in, struct mcp_command *cmd, struct out *why)
{
	if (input_has(in, "wave") == input_has(in, "address")) {
		out_str(why, "give either \"wave\" or \"address\"");
		return -EINVAL;
	}
	words_verb(in, cmd, "disassemble");
	words_max_stop(in, cmd, input_has(in, "wave") ? 1 : 0);
	words_add(cmd, "--count=%u", input_number(in, "count"));
	words_pid(in, cmd);
	words_add(cmd, "%s", input_text(in, input_has(in, "wave") ? "wave" : "address"));
	return 0;
}

const struct mcp_tool mcp_tool_disassemble = {
	.name = "disassemble",
	.title = "Instructions around a wave or an address",
	.text = "With a wave, pauses the GPU queues for at most max_stop_ms. Instructions, with the lines of the source.",
	.args = disassemble_args,
	.repeats_same = true,
	.build = build_disassemble,
};
