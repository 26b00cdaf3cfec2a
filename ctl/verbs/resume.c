/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentctl resume: let queues run that a session has stopped.
 *
 * While the client that suspended them is connected, it holds the writer lease and the agent
 * answers "busy", unless the lease is broken with --force.  When that client has gone, the agent
 * has resumed them already.
 */
#include "ctl/ctl.h"

static const char *queues;
static bool force;

static const struct argv_option options[] = {
	{ "queues", 0, ARGV_STRING, &queues, "ID,ID", "only these queues (default all)", "contexts" },
	{ "force", 0, ARGV_FLAG, &force, NULL,
	  "take control from who stopped them: of your user, as an administrator from anybody" },
	{ 0 },
};

/*
 * Print the result in JSON with what breaking the lease did: that happened when the session was
 * joined, so that the agent's answer to gpu.resume does not say so.
 */
static int print_with_taken(struct ctl *c, struct rpc_gpu_resume_result *result)
{
	auto_out struct out doc = { 0 };

	result->has_taken = true;
	result->taken = c->session.taken;
	rpc_gpu_resume_result_encode(&doc, result);
	return ctl_print_json(c, &doc);
}

/* Print what became of the queues.  @return exit status. */
static int report(struct ctl *c, struct rpc_gpu_resume_result *result)
{
	int r;

	if (ctl_is_json(c) && c->session.has_taken)
		r = print_with_taken(c, result);
	else if (ctl_is_json(c))
		r = ctl_print_result(c);
	else if (result->n_queues)
		r = show_queue_results(c, result->queues, result->n_queues);
	else
		r = 0;
	if (r < 0)
		return r;
	if (!result->resumed && !c->session.has_taken)
		ctl_note(c, "nothing to resume: queues stay stopped only while the client that "
			    "suspended them is connected");
	for (size_t i = 0; i < result->n_queues; i++)
		if (result->queues[i].verdict != RPC_QUEUE_VERDICT_RESUMED)
			return CTL_EXIT_PARTIAL;
	return 0;
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct rpc_gpu_resume_params p = { .has_queues = queues };
	struct rpc_gpu_resume_result result;
	int r = queues ? args_u32_list(c, "--queues", queues, &p.queues, &p.n_queues) : 0;

	c->force = force;
	if (r == 0)
		r = ctl_attach(c, argv[0], true);
	if (r < 0)
		return r;
	p.session = c->session.session;
	r = ctl_called(c, rpc_client_gpu_resume(c->client, &p, &c->arena, &result, &c->err));
	if (r == 0)
		r = report(c, &result);
	ctl_detach(c);
	return r;
}

const struct ctl_verb ctl_verb_resume = {
	.name = "resume",
	.args = "PID",
	.summary = "Let suspended queues run, or say who keeps them stopped",
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
