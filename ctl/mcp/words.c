/* SPDX-License-Identifier: MIT */
#include "ctl/mcp/words.h"

#include <stdarg.h>
#include <stdio.h>

void words_add(struct mcp_command *cmd, const char *fmt, ...)
{
	size_t left = sizeof(cmd->words) - cmd->used;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(cmd->words + cmd->used, left, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= left || cmd->n >= MCP_ARGV_MAX) {
		cmd->too_long = true;
		return;
	}
	cmd->argv[cmd->n++] = cmd->words + cmd->used;
	cmd->used += (size_t)n + 1;
}

void words_verb(const struct mcp_input *in, struct mcp_command *cmd, const char *verb)
{
	words_add(cmd, "gpu-agentctl");
	words_add(cmd, "%s", verb);
	words_add(cmd, "--socket=%s", in->options->socket);
	words_add(cmd, "--timeout=%ums", in->options->timeout_ms ? in->options->timeout_ms : MCP_TIMEOUT_MS);
	words_add(cmd, "--no-pager");
	words_add(cmd, "--color=never");
}

void words_pid(const struct mcp_input *in, struct mcp_command *cmd)
{
	words_add(cmd, "--");
	words_add(cmd, "%u", input_number(in, "pid"));
}

void words_max_stop(const struct mcp_input *in, struct mcp_command *cmd, uint32_t times)
{
	uint32_t limit = in->options->max_stop_ms ? in->options->max_stop_ms : MCP_STOP_MAX_MS;
	uint32_t asked = input_number(in, "max_stop_ms");

	if (asked > limit)
		asked = limit;
	words_add(cmd, "--max-stop=%ums", asked);
	cmd->pid = times ? input_number(in, "pid") : 0;
	cmd->stop_ms = asked * times;
	cmd->pause_ms = times > 1 ? input_number(in, "again_ms") : 0;
}
