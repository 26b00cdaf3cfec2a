/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentctl snapshot: process, groups of waves, devices and queues on one page; with --again two
 * of them, compared.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "ctl/compare_show.h"
#include "ctl/ctl.h"
#include "ctl/document/compare.h"
#include "ctl/document/host/host.h"
#include "ctl/snapshot_show.h"
#include "ctl/verbs/wait/page.h"
#include "ctl/verbs/wait/told.h"
#include "protocol/rpc_queue_place.h"

/* Bytes that a decoded reply may need: a flat list of all waves of a node with the largest GPUs. */
#define REPLY_MEMORY_MAX ((size_t)512 << 20)

#define AGAIN_MAX_MS	 3600000
#define TWICE_MS	 1000
#define TWICE_MAX_MS	 600000
#define DEADLINE_MAX_MS	 600000

static bool each_wave, queues_only, registers, arguments, why, ras, record, any_progress;
static const char *again, *host, *twice, *deadline;
static uint64_t deadline_ns;

static const struct argv_option options[] = {
	{ "waves", 0, ARGV_FLAG, &each_wave, NULL, "also one row for each wave", "warps" },
	{ "registers", 0, ARGV_FLAG, &registers, NULL, "also the registers of each group's example" },
	{ "arguments", 0, ARGV_FLAG, &arguments, NULL,
	  "the arguments of all kernels, not of faulted ones alone, with those that the compiler adds" },
	{ "why", 0, ARGV_FLAG, &why, NULL, "also what the waves wait for, and who does not come" },
	{ "twice", 0, ARGV_OPTIONAL, &twice, "MS",
	  "with --why: take two samples of that, so many milliseconds apart (default 1000): what has moved is accused of nothing" },
	{ "ras", 0, ARGV_FLAG, &ras, NULL, "with --why: also ask NCCL's own status socket what its ranks have launched" },
	{ "deadline", 0, ARGV_STRING, &deadline, "TIME", "with --ras: NCCL is asked for no longer than so long after the start" },
	{ "queues-only", 0, ARGV_FLAG, &queues_only, NULL, "do not stop queues to see their waves" },
	{ "record", 0, ARGV_FLAG, &record, NULL, "also let the agent keep it, for `cores`" },
	{ "host", 0, ARGV_OPTIONAL, &host, "stop",
	  "also what its threads do on the processors, read when the queues run again (stop: as with stacks --stop)" },
	{ "again", 0, ARGV_STRING, &again, "MS",
	  "take another one MS milliseconds later (500 at least) and compare: hung, slow or progressing?" },
	{ "any-progress", 0, ARGV_FLAG, &any_progress, NULL,
	  "with --again: call the process progressing when one queue is, whatever the others do" },
	{ 0 },
};

/* The exit status for a snapshot; what is missing is told as well. */
static int status_of(const struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	int status = ctl_status(s->complete, s->budget_exceeded);

	if (status == CTL_EXIT_BUDGET)
		ctl_note(c, "the stop budget was used up: waves are missing; the queues run again");
	else if (status)
		ctl_note(c, "the snapshot is not complete");
	return status;
}

/*
 * Add what the threads do.  The worker that has the queues never reads what a process wrote on its stacks: another
 * one does, after its answer, when the queues run.  Without threads the rest is still worth having.
 */
static int add_host(struct ctl *c, struct rpc_gpu_snapshot_result *s)
{
	/* A core has one process, and need not say which. */
	struct rpc_host_stacks_params p = { .pid = c->core ? 1 : s->process.pid };
	struct rpc_host_stacks_result stacks;
	int r = rpc_queue_places(&c->arena, s->queues, s->n_queues, &p);

	if (r < 0)
		return ctl_fail(c, -r, "asking for threads");
	args_stops(c, *host, &p);
	r = ctl_host_stacks(c, &p, &stacks);
	if (r == 0) {
		r = host_add(&c->arena, s, &stacks);
	} else {
		r = host_miss(&c->arena, s, "host", rpc_arena_strdup(&c->arena, c->err.message));
		ctl_note(c, "missing: host: %s", c->err.message);
		c->err = (struct agent_err){ 0 };
		out_reset(&c->err_json);
	}
	return r < 0 ? ctl_fail(c, -r, "joining threads and waves") : 0;
}

/*
 * Add what NCCL says of itself.  That it says nothing is missing of the snapshot, and not of what waits: who merges
 * that need not forget all else that is known of it.
 */
static int add_told(struct ctl *c, const struct told_by *t, struct rpc_gpu_snapshot_result *s)
{
	const char *missing = "it was not asked, as what waits on the GPUs could not be looked at";
	int r = s->has_why ? told_ask(c, t, &s->why, &missing) : 0;

	if (r == 0 && missing) {
		ctl_note(c, "missing: " TOLD_WHAT ": %s", missing);
		r = host_miss(&c->arena, s, TOLD_WHAT, missing);
		return r < 0 ? ctl_fail(c, -r, "the document") : 0;
	}
	return r;
}

/* Why there is no session, where the threads alone are shown; or NULL. */
static const char *without_gpu;

/* A document about a process that has no GPU: what there is are its threads. */
static int take_threads(struct ctl *c, uint32_t pid, struct rpc_gpu_snapshot_result *ret)
{
	struct rpc_host_stacks_params p = { .pid = pid };
	struct rpc_host_stacks_result stacks;
	char name[256] = "";
	int r;

	args_stops(c, *host, &p);
	r = ctl_host_stacks(c, &p, &stacks);
	if (r < 0)
		return r;
	gethostname(name, sizeof(name) - 1);
	*ret = (struct rpc_gpu_snapshot_result){
		.schema = DOCUMENT_SNAPSHOT,
		.source = { .kind = "live", .host = rpc_arena_strdup(&c->arena, name), .agent = GPU_AGENT_VERSION },
		.time_us = stacks.time_us,
		.process = { .pid = pid, .uid = stacks.uid, .comm = stacks.comm, .vendor = RPC_VENDOR_NONE,
			     .reason = without_gpu },
		.interface_version = "",
		.complete = true,
	};
	r = host_miss(&c->arena, ret, "gpu", without_gpu);
	if (r == 0)
		r = host_add(&c->arena, ret, &stacks);
	return r < 0 ? ctl_fail(c, -r, "the document") : 0;
}

/* Where the agent allows no more sessions at once, as while others look at as many processes, this one has its turn. */
static int attach_in_turn(struct ctl *c, const char *pid_text)
{
	int r;

	do
		r = ctl_attach(c, pid_text, false);
	while (r < 0 && ctl_wait_for_turn(c));
	return r;
}

/* @return 0: there is a session, or the threads can be looked at without one. */
static int attach(struct ctl *c, const char *pid_text, uint32_t *ret_pid)
{
	int r = c->core ? 0 : args_pid(c, pid_text, ret_pid);

	if (r == 0)
		r = attach_in_turn(c, pid_text);
	if (r == 0 || c->core || c->err.code != RPC_ERROR_NOT_DEBUGGABLE)
		return r;
	without_gpu = rpc_arena_strdup(&c->arena, c->err.message);
	c->err = (struct agent_err){ 0 };
	out_reset(&c->err_json);
	return without_gpu ? 0 : ctl_fail(c, ENOMEM, "the document");
}

static uint32_t host_pid;

static int take(struct ctl *c, const struct rpc_gpu_snapshot_params *p,
		struct rpc_gpu_snapshot_result *ret)
{
	struct told_by told = { .proc_fd = -1 };
	int r;

	if (without_gpu) {
		r = take_threads(c, host_pid, ret);
		return r == 0 && ras ? add_told(c, &told, ret) : r;
	}
	if (ras && p->why)
		told_open(c, &told);
	told.deadline_ns = deadline_ns;
	r = ctl_called(c, rpc_client_gpu_snapshot(c->client, p, &c->arena, ret, &c->err));
	/* Threads are read soon after waves: NCCL may take its time. */
	if (r == 0 && host)
		r = add_host(c, ret);
	if (r == 0 && ras)
		r = add_told(c, &told, ret);
	told_close(&told);
	return r;
}

static int print_document(struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	auto_out struct out text = { 0 };

	if (!host && !ras)
		return ctl_print_result(c);
	rpc_gpu_snapshot_result_encode(&text, s);
	return ctl_print_json(c, &text);
}

/* What of a look at what waits no row of the tables has. */
static void show_rest(struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	if (ctl_is_json(c) || !s->has_why)
		return;
	told_show(c, &s->why);
	why_page_alone(c, &s->why);
}

static int take_one(struct ctl *c, const struct rpc_gpu_snapshot_params *p)
{
	struct rpc_gpu_snapshot_result result;
	const struct snapshot_page page = { .snapshot = &result, .queues_only = queues_only,
					    .arguments = arguments, .advise = true };
	int r = take(c, p, &result);

	if (r == 0)
		r = ctl_is_json(c) ? print_document(c, &result) : snapshot_show(c, &page);
	if (r == 0)
		show_rest(c, &result);
	return r < 0 ? r : status_of(c, &result);
}

/* The later snapshot as a document, which a comparison in JSON carries. */
static const char *snapshot_text(struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	auto_out struct out text = { 0 };

	rpc_gpu_snapshot_result_encode(&text, s);
	return out_error(&text) ? NULL : rpc_arena_strndup(&c->arena, text.data, text.size);
}

static int compare(struct ctl *c, const struct rpc_gpu_snapshot_result *before,
		   const struct rpc_gpu_snapshot_result *after)
{
	struct rpc_comparison cmp;
	int r = compare_snapshots(&c->arena, before, after, any_progress, &cmp);

	if (r < 0)
		return ctl_fail(c, -r, "comparing");
	if (ctl_is_json(c))
		cmp.snapshot = snapshot_text(c, after);
	return compare_show(c, &cmp, after, queues_only, arguments);
}

static int take_two(struct ctl *c, const struct rpc_gpu_snapshot_params *p, uint32_t pause_ms)
{
	struct timespec ts = { pause_ms / 1000, pause_ms % 1000 * 1000000L };
	struct rpc_gpu_snapshot_params first = *p;
	struct rpc_gpu_snapshot_result before, after;
	int r;

	/* The first snapshot serves the comparison only: lists would make its stop longer. */
	first.has_waves = first.waves = false;
	first.has_registers = first.registers = false;
	first.has_why = first.why = false;
	first.has_record = first.record = false;
	r = take(c, &first, &before);
	if (r < 0)
		return r;
	ctl_note(c, "the second snapshot follows in %u ms", pause_ms);
	/* Signals that come meanwhile end the program, so that the sleep is never cut short. */
	nanosleep(&ts, NULL);
	c->turn_end_ns = 0;
	r = take(c, p, &after);
	if (r < 0)
		return r;
	r = compare(c, &before, &after);
	if (r >= 0)
		show_rest(c, &after);
	return r;
}

/* The first sample of what waits: it serves the second one only. */
static int take_sample(struct ctl *c, struct rpc_gpu_snapshot_params *p, uint32_t pause_ms)
{
	const struct timespec ts = { pause_ms / 1000, pause_ms % 1000 * 1000000L };
	const struct rpc_why_get_params first = { .session = p->session,
						  .has_max_stop_ms = p->has_max_stop_ms,
						  .max_stop_ms = p->max_stop_ms };
	struct rpc_why_get_result result;
	int r;

	if (without_gpu)
		return 0;
	r = ctl_called(c, rpc_client_why_get(c->client, &first, &c->arena, &result, &c->err));
	if (r < 0)
		return r;
	ctl_note(c, "the second sample follows in %u ms", pause_ms);
	nanosleep(&ts, NULL);
	c->turn_end_ns = 0;
	p->has_since = true;
	p->since = result.sample;
	return 0;
}

static int check_options(struct ctl *c, uint32_t *ret_again_ms, uint32_t *ret_twice_ms)
{
	if (host && *host && (strcmp(host, "stop") || c->core))
		return ctl_usage(c, c->core ? "--host=stop needs a process: threads of a core stand still" :
					      "--host takes no value, or `stop`");
	if (each_wave && queues_only)
		return ctl_usage(c, "--waves and --queues-only exclude each other");
	if (c->core && (again || record || twice))
		return ctl_usage(c, "--again, --record and --twice need a process: a core does not change");
	if (any_progress && !again)
		return ctl_usage(c, "--any-progress needs --again");
	if (registers && queues_only)
		return ctl_usage(c, "--registers and --queues-only exclude each other");
	if (arguments && queues_only)
		return ctl_usage(c, "--arguments and --queues-only exclude each other");
	if (why && queues_only)
		return ctl_usage(c, "--why and --queues-only exclude each other");
	if (ras && (!why || c->core))
		return ctl_usage(c, c->core ? "--ras needs a process: nobody answers for a core" : "--ras needs --why");
	if (ras && again)
		return ctl_usage(c, "--ras and --again exclude each other");
	if (deadline && !ras)
		return ctl_usage(c, "--deadline needs --ras");
	if (deadline) {
		uint32_t ms;
		int r = args_duration(c, "--deadline", deadline, DEADLINE_MAX_MS, &ms);

		if (r < 0)
			return r;
		deadline_ns = clock_deadline_ms(ms);
	}
	if (twice && (!why || again))
		return ctl_usage(c, "--twice needs --why, and excludes --again");
	if (twice && *twice) {
		int r = args_ms(c, "--twice", twice, TWICE_MAX_MS, ret_twice_ms);

		if (r < 0)
			return r;
	}
	return again ? args_ms(c, "--again", again, AGAIN_MAX_MS, ret_again_ms) : 0;
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct rpc_gpu_snapshot_params p = {
		.has_waves = each_wave,
		.waves = each_wave,
		.has_registers = registers,
		.registers = registers,
		.has_arguments = arguments,
		.arguments = arguments,
		.has_why = why,
		.why = why,
		.has_record = record,
		.record = record,
		.has_queues_only = queues_only,
		.queues_only = queues_only,
		.has_max_stop_ms = c->max_look_ms,
		.max_stop_ms = c->max_look_ms,
	};
	uint32_t again_ms = 0, twice_ms = TWICE_MS;
	int r = check_options(c, &again_ms, &twice_ms);

	c->arena.limit = REPLY_MEMORY_MAX;
	if (r == 0)
		r = host ? attach(c, argv[0], &host_pid) : ctl_attach(c, argv[0], false);
	if (r < 0)
		return r;
	p.session = c->session.session;
	if (twice)
		r = take_sample(c, &p, twice_ms);
	if (r == 0)
		r = again ? take_two(c, &p, again_ms) : take_one(c, &p);
	ctl_detach(c);
	return r;
}

const struct ctl_verb ctl_verb_snapshot = {
	.name = "snapshot",
	.args = "PID",
	.summary = "Show what the waves of a process do, its devices and queues on one page",
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.takes_core = true,
	.run = run,
};
