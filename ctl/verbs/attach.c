/* SPDX-License-Identifier: MIT */
/* gpu-agentctl attach: keep a session open, or hand the process over to the vendor's debugger. */
#include <stdio.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/stream.h"
#include "ctl/terminal/text.h"

/* Values of the options. */
static const char *for_text;
static bool control, take, force, hand_over, until_eof;

static const struct argv_option options[] = {
	{ "control", 0, ARGV_FLAG, &control, NULL, "also take the writer lease" },
	{ "take", 0, ARGV_FLAG, &take, NULL, "the same, also from a holder who has been silent" },
	{ "force", 0, ARGV_FLAG, &force, NULL,
	  "with --take: from any holder of your user, as an administrator from anybody" },
	{ "hand-over", 0, ARGV_FLAG, &hand_over, NULL,
	  "release the process and print the command that starts the vendor's debugger" },
	STREAM_OPTIONS(for_text, until_eof),
	{ 0 },
};

/*
 * End the session.  The vendor's debugger can only come when no agent holds the process any more.
 */
static int release(struct ctl *c)
{
	struct rpc_session_detach_params p = { .session = c->session.session,
					       .has_release = true,
					       .release = true };
	struct rpc_session_detach_result result;
	int r;

	r = ctl_called(c, rpc_client_session_detach(c->client, &p, &c->arena, &result, &c->err));
	if (r < 0)
		return r;
	c->attached = false;
	if (!result.ended)
		return agent_err_set(&c->err, RPC_ERROR_BUSY, 0, "hand over",
				     "`gpu-agentctl status` shows who; they have to detach first",
				     "process %u is still held by other clients of the agent",
				     c->session.pid);
	return 0;
}

/* Let go of the process and print the command that starts the vendor's debugger. */
static int run_hand_over(struct ctl *c)
{
	const char *debugger = c->session.vendor == RPC_VENDOR_NVIDIA ? "cuda-gdb" : "rocgdb";
	uint32_t pid = c->session.pid;
	struct out *o = &c->output.text;
	auto_out struct out doc = { 0 };
	int r;

	r = release(c);
	if (r < 0)
		return r;
	if (!ctl_is_json(c)) {
		out_fmt(o, "%s -p %u\n", debugger, pid);
		return 0;
	}
	out_json_fmt(&doc, "{'pid':%u,'command':[%s,'-p','%u']}", pid, debugger, pid);
	return ctl_print_json(c, &doc);
}

/* Print the session's id, which scripts may want, and prepare the notice for people. */
static int print_session(struct ctl *c, struct stream *s)
{
	const char *id = c->session.session;

	snprintf(s->notice, sizeof(s->notice), "%s process %u; Ctrl-C lets go",
		 c->session.joined ? "joined the session of" : "attached to", c->session.pid);
	if (ctl_is_json(c))
		return ctl_print_result(c);
	text_put(&c->output.text, "", id, "\n");
	return 0;
}

static int run(struct ctl *c, int argc, char **argv)
{
	enum stream_end end;
	struct stream s;
	int r;

	if (force && !take)
		return ctl_usage(c, "--force goes with --take");
	c->take = take;
	c->force = force;
	control = control || take;
	if (hand_over && (for_text || until_eof))
		return ctl_usage(c, "--hand-over lets go at once: no --for or --until-eof with it");
	if (hand_over) {
		r = ctl_attach(c, argv[0], control);
		return r < 0 ? r : run_hand_over(c);
	}
	r = stream_begin(c, &s, for_text, until_eof);
	if (r == 0)
		r = ctl_attach(c, argv[0], control);
	if (r == 0)
		r = print_session(c, &s);
	if (r == 0)
		ctl_name_gpus_for_text(c);
	if (r == 0)
		r = stream_run(c, &s, &end);
	ctl_detach(c);
	return r < 0 ? r : stream_status(c, &s, end);
}

const struct ctl_verb ctl_verb_attach = {
	.name = "attach",
	.args = "PID",
	.summary = "Keep a session on a process open and print what happens in it",
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
