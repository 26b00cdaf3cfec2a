/* SPDX-License-Identifier: MIT */
/* Tools that change something; they are offered only where control is allowed. */
#include <inttypes.h>

#include "base/clock.h"
#include "ctl/mcp/words.h"

#define LEASE_MAX_MS	 60000
#define DUMP_DEADLINE_MS 55000 /* Clients give up after a minute. */

/* ------------------------------------------------------------------ suspend ------------------ */

static const struct mcp_arg suspend_args[] = {
	WORDS_PID(true),
	{ "lease_ms", MCP_ARG_UINT, .required = true, .min = 1, .max = LEASE_MAX_MS, .text = "they run again after that at the latest" },
	{ 0 },
};

static int build_suspend(const struct mcp_input *in, struct mcp_command *cmd, struct out *why)
{
	words_verb(in, cmd, "suspend");
	words_add(cmd, "--json=short");
	words_add(cmd, "--until-eof");
	words_add(cmd, "--lease=%ums", input_number(in, "lease_ms"));
	words_pid(in, cmd);
	cmd->holds = true;
	return 0;
}

const struct mcp_tool mcp_tool_suspend = {
	.name = "suspend",
	.title = "Stop the GPU queues of a process",
	.text = "Stops the GPU queues of the process until resume, the end of the lease, or the end of this server.",
	.args = suspend_args,
	.control = true,
	.changes = true,
	.destroys = true,
	.build = build_suspend,
};

/* ------------------------------------------------------------------ resume ------------------- */

static const struct mcp_arg resume_args[] = { WORDS_PID(true), { 0 } };

static int build_resume(const struct mcp_input *in, struct mcp_command *cmd, struct out *why)
{
	words_verb(in, cmd, "resume");
	words_pid(in, cmd);
	return 0;
}

const struct mcp_tool mcp_tool_resume = {
	.name = "resume",
	.title = "Let suspended queues run",
	.text = "Lets the GPU queues run that suspend has stopped, or says who keeps them stopped.",
	.args = resume_args,
	.control = true,
	.changes = true,
	.destroys = true,
	.repeats_same = true,
	.build = build_resume,
};

/* ------------------------------------------------------------------ dump --------------------- */

static const struct mcp_arg dump_args[] = { WORDS_PID(true), { 0 } };

static int build_dump(const struct mcp_input *in, struct mcp_command *cmd, struct out *why)
{
	words_verb(in, cmd, "dump");
	words_add(cmd, "--light");
	words_add(cmd, "--output=%s/gpu-%u-%" PRIu64 ".core", in->options->directory, input_number(in, "pid"), clock_wall_us());
	words_pid(in, cmd);
	cmd->deadline_ms = DUMP_DEADLINE_MS;
	return 0;
}

const struct mcp_tool mcp_tool_dump = {
	.name = "dump",
	.title = "Write a core file",
	.text = "Pauses the GPU queues, and writes a light core file of the process into the directory of this server.",
	.args = dump_args,
	.control = true,
	.writes_file = true,
	.changes = true,
	.destroys = true,
	.build = build_dump,
};
