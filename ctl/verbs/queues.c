/* SPDX-License-Identifier: MIT */
/* gpu-agentctl queues: the queues of a process. */
#include <string.h>

#include "ctl/ctl.h"

static const char *gpu;

static const struct argv_option options[] = {
	{ "gpu", 0, ARGV_STRING, &gpu, "GPU", "only queues of this device: 0, 1, ... as devices shows them" },
	{ 0 },
};

/* Tell who keeps some of the queues stopped. */
static int note_suspension(struct ctl *c)
{
	struct rpc_session_list_result list;
	int r = ctl_called(c, rpc_client_session_list(c->client, NULL, &c->arena, &list, &c->err));

	for (size_t i = 0; r == 0 && i < list.n_sessions; i++) {
		const struct rpc_suspension *s = &list.sessions[i].suspension;

		if (!list.sessions[i].has_suspension ||
		    strcmp(list.sessions[i].session, c->session.session) != 0)
			continue;
		ctl_note(c, "suspended by process %u (%s): %s", s->holder_pid,
			 s->has_holder_uid ? show_user(&c->arena, s->holder_uid) : "?",
			 show_suspension(&c->arena, c->vendor, s));
	}
	return r;
}

static int print(struct ctl *c, const struct rpc_gpu_queues_result *result)
{
	if (result->n_queues)
		return show_queues(c, result->queues, result->n_queues);
	ctl_note(c, "no %s%s", vendor_word(c->vendor, "queues"), gpu ? " on that GPU" : "");
	return 0;
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct rpc_gpu_queues_params p = { .has_gpu_id = gpu };
	struct rpc_gpu_queues_result result;
	int r = ctl_attach(c, argv[0], false);

	if (r < 0)
		return r;
	p.session = c->session.session;
	ctl_name_gpus_for_text(c);
	r = gpu ? args_gpu(c, "--gpu", gpu, &p.gpu_id) : 0;
	if (r == 0)
		r = ctl_called(c, rpc_client_gpu_queues(c->client, &p, &c->arena, &result, &c->err));
	if (r == 0)
		r = ctl_is_json(c) ? ctl_print_result(c)
				   : print(c, &result);
	if (r == 0 && !ctl_is_json(c) && !c->core)
		r = note_suspension(c);
	ctl_detach(c);
	return r;
}

const struct ctl_verb ctl_verb_queues = {
	.name = "queues",
	.alias = "contexts",
	.args = "PID",
	.summary = "Show the queues of a process",
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.takes_core = true,
	.run = run,
};
