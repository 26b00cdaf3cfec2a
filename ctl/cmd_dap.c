/* SPDX-License-Identifier: MIT */
/* gpu-agentctl dap: a debug adapter for editors, on standard input and output. */
#include <unistd.h>

#include "ctl/ctl.h"
#include "dap/dap.h"

static int run(struct ctl *c, int argc, char **argv)
{
	const struct dap_options o = {
		.socket = c->socket,
		.timeout_ms = c->timeout_ms,
		.max_stop_ms = c->max_stop_ms,
		.in_fd = STDIN_FILENO,
		.out_fd = STDOUT_FILENO,
	};

	return dap_run(&o, &c->err);
}

const struct ctl_verb ctl_verb_dap = {
	.name = "dap",
	.args = "",
	.summary = "Serve an editor as its debug adapter",
	.run = run,
};
