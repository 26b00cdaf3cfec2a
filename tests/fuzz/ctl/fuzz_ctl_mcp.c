/* SPDX-License-Identifier: MIT */
/*
 * A message of an assistant's client, and the arguments of a call: whatever they are, what is made of them is a command
 * whose options are ours, and what is read of the text stays within it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/out.h"
#include "ctl/mcp/message.h"
#include "ctl/mcp/page.h"
#include "ctl/mcp/tools.h"
#include "fuzzlib.h"

static void check_within(struct dap_json v, const char *text, size_t size)
{
	if (v.text && (v.text < text || v.text + v.size > text + size))
		abort();
}

/* What an assistant has chosen is never taken for an option: it stands behind "--", or behind "=". */
static void check_command(const struct mcp_command *cmd)
{
	bool over = false;

	if (cmd->n < 2 || cmd->argv[cmd->n] || strcmp(cmd->argv[0], "gpu-agentctl") != 0)
		abort();
	for (size_t i = 2; i < cmd->n; i++) {
		const char *word = cmd->argv[i];

		if (!over && word[0] == '-' && strcspn(word, "=") > strlen("--until-eof"))
			abort();
		if (!over && word[0] == '-' && word[1] != '-')
			abort();
		over = over || !strcmp(word, "--");
	}
}

static void check_page(const char *text, size_t size)
{
	auto_out struct out clean = { 0 }, json = { 0 };
	size_t at = 0, n = 0;

	page_clean(&clean, text, size);
	page_json(&json, text, size);
	if (json.size < size)
		abort();
	while (at < clean.size) {
		size_t end = page_end(clean.data, clean.size, at, 16);

		if (end <= at || end > clean.size || end - at > 16 || n++ > clean.size)
			abort();
		at = end;
	}
}

static void call_tool(const struct mcp_tool *tool, struct dap_json arguments)
{
	static const struct mcp_options o = { .socket = "/s", .directory = "/d", .allow_control = true };
	static struct mcp_value values[MCP_ARGS_MAX];
	static struct mcp_command cmd;
	const struct mcp_input in = { tool, values, &o };
	auto_out struct out why = { 0 };

	if (mcp_args_read(tool->args, arguments, values, &why) < 0) {
		if (!why.size)
			abort();
		return;
	}
	if (mcp_arg_get(tool->args, values, MCP_ARG_CURSOR)->given)
		return;
	if (mcp_tool_build(&in, &cmd, &why) == 0)
		check_command(&cmd);
	else if (!why.size)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct mcp_problem problem = { 0 };
	struct mcp_message m;
	const struct mcp_tool *tool;

	check_page(text, size);
	if (mcp_message_parse(text, size, &m, &problem) < 0) {
		if (!problem.code || !problem.text[0])
			abort();
		return 0;
	}
	check_within(m.params, text, size);
	if ((m.kind == MCP_REQUEST) != (m.id[0] != '\0') && m.kind != MCP_RESPONSE)
		abort();
	for (size_t i = 0; (tool = mcp_tool_at(i)); i++)
		call_tool(tool, dap_json_get(m.params, "arguments"));
	return 0;
}
