/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentctl mcp: a server of the Model Context Protocol for assistants, on standard input and output.  The server
 * itself is in ctl/mcp/.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "ctl/ctl.h"
#include "ctl/mcp/mcp.h"
#include "paths.h"

static bool allow_control;
static const char *directory;

static const struct argv_option options[] = {
	{ "allow-control", 0, ARGV_FLAG, &allow_control, NULL, "also offer tools that suspend and resume queues" },
	{ "directory", 0, ARGV_STRING, &directory, "PATH", "with --allow-control, also offer core files, which are written there" },
	{ 0 },
};

static int run(struct ctl *c, int argc, char **argv)
{
	char path[PATH_MAX];
	const struct mcp_options o = {
		/* The file of this process, also when another one has taken its place on the disk since. */
		.program = "/proc/self/exe",
		.socket = c->socket,
		.max_stop_ms = c->max_look_ms,
		.timeout_ms = c->timeout_option ? c->timeout_ms : 0,
		.allow_control = allow_control,
		.directory = directory ? path : NULL,
		.guide = SKILLDIR "/gpu-hang/SKILL.md",
		.in_fd = STDIN_FILENO,
		.out_fd = STDOUT_FILENO,
	};

	if (directory && !allow_control)
		return ctl_usage(c, "--directory needs --allow-control");
	if (directory && !realpath(directory, path))
		return ctl_fail(c, errno, directory);
	return mcp_run(&o, &c->err);
}

const struct ctl_verb ctl_verb_mcp = {
	.name = "mcp",
	.args = "",
	.summary = "Serve an assistant's tools by the Model Context Protocol",
	.options = options,
	.run = run,
};
