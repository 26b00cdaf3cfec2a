/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentctl suspend: take queues off the hardware for a while.
 *
 * The connection that suspended them is what keeps them stopped, so this program stays until the
 * lease ends or it is told to let go; with --hold it renews the lease until it is told.
 */
#include <stdio.h>

#include "base/clock.h"
#include "ctl/ctl.h"
#include "ctl/stream.h"

/*
 * The longest lease that the agent grants, the one asked for by default, and the most thousand GPU
 * clocks that waves may get to finish.
 */
#define LEASE_MAX_MS     60000
#define LEASE_DEFAULT_MS 5000
#define GRACE_MAX        255
/*
 * Milliseconds behind the lease's end.  The agent ends the lease; the margin is for an agent that
 * does not.
 */
#define LEASE_MARGIN_MS 2000

static const char *queues, *lease, *grace;
static bool until_eof, keep;

static const struct argv_option options[] = {
	{ "queues", 0, ARGV_STRING, &queues, "ID,ID", "only these queues (default all)", "contexts" },
	{ "lease", 0, ARGV_STRING, &lease, "TIME", "resume after TIME at the latest (default 5s)" },
	{ "grace", 0, ARGV_STRING, &grace, "N", "let waves finish for N thousand GPU clocks" },
	{ "hold", 0, ARGV_FLAG, &keep, NULL, "renew the lease until Ctrl-C" },
	{ "until-eof", 0, ARGV_FLAG, &until_eof, NULL, "resume when standard input ends" },
	{ 0 },
};

/*
 * Read the options.
 * @param ret_cut  Whether --max-stop is shorter than the lease asked for.
 */
static int parse(struct ctl *c, struct rpc_gpu_suspend_params *p, bool *ret_cut)
{
	int r = 0;

	p->has_queues = queues;
	p->has_lease_ms = true;
	p->lease_ms = LEASE_DEFAULT_MS;
	p->has_grace = grace;
	if (queues)
		r = args_u32_list(c, "--queues", queues, &p->queues, &p->n_queues);
	if (r == 0 && lease)
		r = args_duration(c, "--lease", lease, LEASE_MAX_MS, &p->lease_ms);
	if (r == 0 && grace)
		r = args_u32(c, "--grace", grace, 0, GRACE_MAX, &p->grace);
	*ret_cut = c->max_stop_ms && c->max_stop_ms < p->lease_ms;
	if (*ret_cut)
		p->lease_ms = c->max_stop_ms;
	return r;
}

static bool has_failed_queue(const struct rpc_gpu_suspend_result *result)
{
	for (size_t i = 0; i < result->n_queues; i++)
		if (result->queues[i].verdict != RPC_QUEUE_VERDICT_SUSPENDED)
			return true;
	return false;
}

/* Let the queues run before the lease ends. */
static int resume(struct ctl *c)
{
	struct rpc_gpu_resume_params p = { .session = c->session.session };
	struct rpc_gpu_resume_result result;
	int r = ctl_called(c, rpc_client_gpu_resume(c->client, &p, &c->arena, &result, &c->err));

	if (r < 0)
		return r;
	ctl_note(c, "%u %s resumed after %llu us", result.resumed,
		 vendor_word(c->vendor, result.resumed == 1 ? "queue" : "queues"),
		 (unsigned long long)result.stopped_us);
	return ctl_is_json(c) ? ctl_print_result(c) : 0;
}

/* Renew the lease.  @return 1 (done), 0 (it had run out), or negative with ctl.err. */
static int renew(struct ctl *c, uint32_t lease_ms)
{
	struct rpc_gpu_renew_params p = { .session = c->session.session,
					  .has_lease_ms = true,
					  .lease_ms = lease_ms };
	struct rpc_gpu_renew_result result;
	int r = ctl_called(c, rpc_client_gpu_renew(c->client, &p, &c->arena, &result, &c->err));

	return r < 0 ? r : result.suspended != 0;
}

/*
 * Print notifications until something ends the stream.  With --hold the lease is renewed when half
 * of it is over.
 * @param stop_at  Monotonic time at which --max-stop ends everything; 0 for none.
 */
static int wait_end(struct ctl *c, struct stream *s, uint32_t lease_ms, uint64_t stop_at,
		    enum stream_end *ret_end)
{
	int r = 1;

	if (!keep) {
		s->deadline_ns = clock_deadline_ms((uint64_t)lease_ms + LEASE_MARGIN_MS);
		return stream_run(c, s, ret_end);
	}
	while (r > 0) {
		uint32_t left = stop_at ? (uint32_t)clock_left_ms(stop_at) : lease_ms;

		if (left < lease_ms)
			lease_ms = left;
		s->deadline_ns = clock_deadline_ms(lease_ms / 2);
		r = stream_run(c, s, ret_end);
		if (r < 0 || *ret_end != STREAM_END_TIME || (stop_at && clock_left_ms(stop_at) < 2))
			return r;
		r = renew(c, lease_ms);
	}
	/* The lease had run out: the agent has said so, or does so in a moment. */
	s->deadline_ns = clock_deadline_ms(LEASE_MARGIN_MS);
	return r < 0 ? r : stream_run(c, s, ret_end);
}

/*
 * The queues are stopped: wait for the end of the lease, or end it.
 * @return exit status, or negative with ctl.err.
 */
static int hold(struct ctl *c, struct stream *s, uint32_t lease_ms, uint64_t stop_at, bool cut)
{
	const char *words = vendor_word(c->vendor, "queues");
	enum stream_end end;
	int r;

	s->until_resumed = true;
	if (keep)
		snprintf(s->notice, sizeof(s->notice), "%s stay stopped until Ctrl-C", words);
	else
		snprintf(s->notice, sizeof(s->notice),
			 "%s stay stopped for %u ms at most; Ctrl-C resumes them now", words,
			 lease_ms);
	r = wait_end(c, s, lease_ms, stop_at, &end);
	if (r < 0)
		return r;
	if (end == STREAM_END_SESSION)
		return agent_err_set(&c->err, RPC_ERROR_SESSION_ENDED, 0, "suspend", NULL,
				     "the session ended before the lease did");
	if (end != STREAM_END_RESUMED) {
		r = resume(c);
		if (r == 0 && keep && end == STREAM_END_TIME)
			return CTL_EXIT_BUDGET;
		return r < 0 ? r : stream_status(c, s, end);
	}
	if (s->reason == RPC_RESUME_REASON_CONTROL_TAKEN)
		return agent_err_set(&c->err, RPC_ERROR_BUSY, 0, "suspend",
				     "`gpu-agentctl status` shows who",
				     "somebody else took control of process %u, and its queues run again",
				     c->session.pid);
	if (s->reason == RPC_RESUME_REASON_LIMIT) {
		ctl_note(c, "queues were suspended for the longest time that the agent allows");
		return CTL_EXIT_BUDGET;
	}
	if (keep && s->reason == RPC_RESUME_REASON_LEASE_EXPIRED)
		ctl_note(c, "the lease ran out before it was renewed");
	return (cut || keep) && s->reason == RPC_RESUME_REASON_LEASE_EXPIRED ? CTL_EXIT_BUDGET : 0;
}

static int suspend(struct ctl *c, struct stream *s, struct rpc_gpu_suspend_params *p, bool cut)
{
	/*
	 * The clock of --max-stop starts before the request: the queues may stand still from here
	 * on.
	 */
	uint64_t stop_at = c->max_stop_ms ? clock_deadline_ms(c->max_stop_ms) : 0;
	struct rpc_gpu_suspend_result result;
	int status = 0, r;

	p->session = c->session.session;
	r = queues ? args_check_queues(c, p->queues, p->n_queues) : 0;
	if (r == 0)
		r = ctl_called(c, rpc_client_gpu_suspend(c->client, p, &c->arena, &result, &c->err));
	if (r == 0)
		r = ctl_is_json(c) ? ctl_print_result(c)
				   : show_queue_results(c, result.queues, result.n_queues);
	if (r < 0)
		return r;
	if (result.suspended)
		status = hold(c, s, result.lease_ms, stop_at, cut);
	else
		ctl_note(c, "no %s was suspended", vendor_word(c->vendor, "queue"));
	return status ? status : ctl_status(!has_failed_queue(&result), false);
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct rpc_gpu_suspend_params p = { 0 };
	struct stream s;
	bool cut;
	int r = parse(c, &p, &cut);

	if (r == 0)
		r = stream_begin(c, &s, NULL, until_eof);
	if (r == 0)
		r = ctl_attach(c, argv[0], true);
	if (r == 0)
		r = suspend(c, &s, &p, cut);
	ctl_detach(c);
	return r;
}

const struct ctl_verb ctl_verb_suspend = {
	.name = "suspend",
	.args = "PID",
	.summary = "Take queues off the hardware until a lease ends or Ctrl-C",
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
