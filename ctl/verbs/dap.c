/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentctl dap: a debug adapter for editors, on standard input and output.  The adapter itself
 * is in dap/; this gives it core files and the disassembler.
 */
#include <unistd.h>

#include "ctl/ctl.h"
#include "dap/dap.h"
#include "disasm/disasm.h"

/* The adapter asks for a core file through these three, so that it does not depend on ctl/. */
static int open_core(void *data, const char *path, struct rpc_client **ret, struct agent_err *err)
{
	struct source_core *s = data;
	int r = source_core_open(s, path, err);

	if (r == 0)
		*ret = s->client;
	return r;
}

static void close_core(void *data)
{
	source_core_close(data);
}

static void explain_core(void *data, struct agent_err *err)
{
	source_core_explain(data, err);
}

static int run(struct ctl *c, int argc, char **argv)
{
	const struct dap_core_source core = { open_core, close_core, explain_core, &c->source };
	char nvdisasm[PATH_MAX];
	const struct dap_options o = {
		.socket = c->socket,
		.timeout_ms = c->timeout_ms,
		.max_stop_ms = c->max_stop_ms,
		.in_fd = STDIN_FILENO,
		.out_fd = STDOUT_FILENO,
		.core = &core,
		.nvdisasm = disasm_find_nvdisasm(nvdisasm) ? nvdisasm : NULL,
	};

	return dap_run(&o, &c->err);
}

const struct ctl_verb ctl_verb_dap = {
	.name = "dap",
	.args = "",
	.summary = "Serve an editor as its debug adapter",
	.run = run,
};
