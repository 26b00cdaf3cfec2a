/* SPDX-License-Identifier: MIT */
/* gpu-agentctl devices: the GPUs of a process. */
#include "ctl/ctl.h"

static int print(struct ctl *c, const struct rpc_gpu_devices_result *result)
{
	if (result->n_devices)
		return show_devices(c, result->devices, result->n_devices);
	ctl_note(c, "no GPUs");
	return 0;
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct rpc_gpu_devices_params p = { 0 };
	struct rpc_gpu_devices_result result;
	int r = ctl_attach(c, argv[0], false);

	if (r < 0)
		return r;
	p.session = c->session.session;
	r = ctl_called(c, rpc_client_gpu_devices(c->client, &p, &c->arena, &result, &c->err));
	if (r == 0)
		r = ctl_is_json(c) ? ctl_print_result(c)
				   : print(c, &result);
	ctl_detach(c);
	return r;
}

const struct ctl_verb ctl_verb_devices = {
	.name = "devices",
	.args = "PID",
	.summary = "Show the GPUs of a process",
	.min_args = 1,
	.max_args = 1,
	.takes_core = true,
	.run = run,
};
