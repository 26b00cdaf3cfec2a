/* SPDX-License-Identifier: MIT */
/* Tools that look at processes as a whole. */
#include <errno.h>

#include "base/out.h"
#include "ctl/mcp/stops.h"
#include "ctl/mcp/words.h"

/* ------------------------------------------------------------------ list --------------------- */

static const struct mcp_arg list_args[] = {
	{ "records", MCP_ARG_BOOL, .text = "instead, the newest stored snapshots and exceptions" },
	{ 0 },
};

static int build_list(const struct mcp_input *in, struct mcp_command *cmd, struct out *why)
{
	if (!input_number(in, "records")) {
		words_verb(in, cmd, "list");
		return 0;
	}
	words_verb(in, cmd, "cores");
	words_add(cmd, "--number=50");
	words_add(cmd, "--reverse");
	words_add(cmd, "list");
	return 0;
}

const struct mcp_tool mcp_tool_list = {
	.name = "list",
	.title = "List GPU processes",
	.text = "Touches nothing. The processes that use a GPU, with vendor, queues, and why one cannot be debugged. Begin here.",
	.args = list_args,
	.repeats_same = true,
	.build = build_list,
};

/* ------------------------------------------------------------------ doctor ------------------- */

static const struct mcp_arg doctor_args[] = { WORDS_PID(true), { 0 } };

static int build_doctor(const struct mcp_input *in, struct mcp_command *cmd, struct out *why)
{
	words_verb(in, cmd, "doctor");
	words_pid(in, cmd);
	return 0;
}

const struct mcp_tool mcp_tool_doctor = {
	.name = "doctor",
	.title = "Check whether a process can be debugged",
	.text = "Touches nothing. Every precondition of looking at a process: pass, fail or unknown, with the fix.",
	.args = doctor_args,
	.instead = "call list, which tells why a process cannot be debugged",
	.repeats_same = true,
	.build = build_doctor,
};

/* ------------------------------------------------------------------ snapshot ----------------- */

static const struct mcp_arg snapshot_args[] = {
	WORDS_PID(false),
	WORDS_MAX_STOP,
	{ "host", MCP_ARG_BOOL, .text = "also its threads on the processors" },
	{ "record", MCP_ARG_TEXT, .max = 80, .text = "instead of a pid: a record of list" },
	{ 0 },
};

static int build_snapshot(const struct mcp_input *in, struct mcp_command *cmd, struct out *why)
{
	if (input_has(in, "pid") == input_has(in, "record")) {
		out_str(why, "give either \"pid\" or \"record\"");
		return -EINVAL;
	}
	if (input_has(in, "record")) {
		words_verb(in, cmd, "cores");
		words_add(cmd, "--");
		words_add(cmd, "info");
		words_add(cmd, "%s", input_text(in, "record"));
		return 0;
	}
	words_verb(in, cmd, "snapshot");
	words_max_stop(in, cmd, 1);
	words_add(cmd, "--json=short");
	if (input_number(in, "host"))
		words_add(cmd, "--host");
	words_pid(in, cmd);
	cmd->document = true;
	return 0;
}

const struct mcp_tool mcp_tool_snapshot = {
	.name = "snapshot",
	.title = "What the waves of a process do",
	.text = "Pauses the GPU queues for at most max_stop_ms. What is wrong first, then groups of waves (warps) by kernel, line "
		"and reason, and queues. The answer names a snapshot, kept for ten minutes, for diff and as a resource.",
	.args = snapshot_args,
	.repeats_same = true,
	.build = build_snapshot,
};

/* ------------------------------------------------------------------ why ---------------------- */

static const struct mcp_arg why_args[] = {
	WORDS_PID(true),
	WORDS_MAX_STOP,
	{ "again_ms", MCP_ARG_UINT, .min = 100, .max = 10000, .text = "a second look so much later tells stuck from slow" },
	{ 0 },
};

static int build_why(const struct mcp_input *in, struct mcp_command *cmd, struct out *why)
{
	words_verb(in, cmd, "why");
	words_max_stop(in, cmd, input_has(in, "again_ms") ? 2 : 1);
	if (input_has(in, "again_ms"))
		words_add(cmd, "--twice=%u", input_number(in, "again_ms"));
	words_pid(in, cmd);
	return 0;
}

const struct mcp_tool mcp_tool_why = {
	.name = "why",
	.title = "Why a process hangs",
	.text = "Pauses the GPU queues for at most max_stop_ms. The first line is the cause and how sure it is; then what waits, for whom, and "
		"who does not come.",
	.args = why_args,
	.instead = "call diff, which tells what stands still, and stacks; doctor tells whether something is missing",
	.repeats_same = true,
	.build = build_why,
};

/* ------------------------------------------------------------------ stacks ------------------- */

static const struct mcp_arg stacks_args[] = {
	WORDS_PID(true),
	{ "tree", MCP_ARG_BOOL, .text = "also the processes that it has started" },
	{ "again_ms", MCP_ARG_UINT, .min = 100, .max = 10000, .text = "look twice: which threads have run" },
	{ 0 },
};

static int build_stacks(const struct mcp_input *in, struct mcp_command *cmd, struct out *why)
{
	words_verb(in, cmd, "stacks");
	if (input_number(in, "tree"))
		words_add(cmd, "--tree");
	if (input_has(in, "again_ms"))
		words_add(cmd, "--again=%u", input_number(in, "again_ms"));
	words_pid(in, cmd);
	return 0;
}

const struct mcp_tool mcp_tool_stacks = {
	.name = "stacks",
	.title = "What its threads do on the processors",
	.text = "Stops nothing. Python and native frames of the process's threads, in groups.",
	.args = stacks_args,
	.repeats_same = true,
	.build = build_stacks,
};

/* ------------------------------------------------------------------ diff --------------------- */

static const struct mcp_arg diff_args[] = {
	WORDS_PID(false),
	{ "again_ms", MCP_ARG_UINT, .min = 500, .max = 10000, .preset = 1000 },
	WORDS_MAX_STOP,
	{ "before", MCP_ARG_TEXT, .max = 20, .text = "a snapshot's name" },
	{ "after", MCP_ARG_TEXT, .max = 20, .text = "a later one's" },
	{ 0 },
};

static int build_diff(const struct mcp_input *in, struct mcp_command *cmd, struct out *why)
{
	bool pid = input_has(in, "pid"), before = input_has(in, "before"), after = input_has(in, "after");

	if (before != after || pid == before) {
		out_str(why, "give either \"pid\", or both \"before\" and \"after\"");
		return -EINVAL;
	}
	if (pid) {
		words_verb(in, cmd, "snapshot");
		words_max_stop(in, cmd, 2);
		words_add(cmd, "--again=%u", input_number(in, "again_ms"));
		words_pid(in, cmd);
		return 0;
	}
	words_verb(in, cmd, "diff");
	words_add(cmd, "/dev/fd/3");
	words_add(cmd, "/dev/fd/4");
	cmd->reads[0] = input_text(in, "before");
	cmd->reads[1] = input_text(in, "after");
	return 0;
}

const struct mcp_tool mcp_tool_diff = {
	.name = "diff",
	.title = "Hung, slow or progressing",
	.text = "With pid, pauses its GPU queues twice, for at most max_stop_ms each. Compares two snapshots: which queues and groups "
		"of waves have moved.",
	.args = diff_args,
	.repeats_same = true,
	.build = build_diff,
};

/* ------------------------------------------------------------------ job_report --------------- */

#define JOB_DEADLINE_MS 10000
#define JOB_MARGIN_MS	5000

static const struct mcp_arg job_args[] = {
	{ "pids", MCP_ARG_PIDS, .max = MCP_PIDS_MAX },
	{ "slurm", MCP_ARG_UINT, .min = 1, .max = UINT32_MAX, .text = "number of a job of Slurm" },
	{ "all", MCP_ARG_BOOL, .text = "all GPU processes of this machine that may be looked at" },
	{ "deadline_ms", MCP_ARG_UINT, .min = 1000, .max = 50000, .preset = JOB_DEADLINE_MS },
	WORDS_MAX_STOP,
	{ 0 },
};

static int build_job(const struct mcp_input *in, struct mcp_command *cmd, struct out *why)
{
	bool all = input_number(in, "all") != 0;

	if (input_has(in, "pids") + input_has(in, "slurm") + all != 1) {
		out_str(why, "give one of \"pids\", \"slurm\" and \"all\": true");
		return -EINVAL;
	}
	words_verb(in, cmd, "job");
	words_max_stop(in, cmd, 1);
	cmd->pid = STOPS_ANY;
	words_add(cmd, "--deadline=%ums", input_number(in, "deadline_ms"));
	if (input_has(in, "pids"))
		words_add(cmd, "--pids=%s", input_text(in, "pids"));
	else if (input_has(in, "slurm"))
		words_add(cmd, "--slurm=%u", input_number(in, "slurm"));
	else
		words_add(cmd, "--all");
	cmd->deadline_ms = input_number(in, "deadline_ms") + JOB_MARGIN_MS;
	return 0;
}

const struct mcp_tool mcp_tool_job_report = {
	.name = "job_report",
	.title = "All processes of a job at once",
	.text = "Pauses the GPU queues of each process for at most max_stop_ms. One tree of all ranks, the odd one out, and the ranks that could "
		"not be seen.",
	.args = job_args,
	.repeats_same = true,
	.open_world = true,
	.build = build_job,
};
