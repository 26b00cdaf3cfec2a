/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentctl snapshot: process, groups of waves, devices and queues on one page; with --again two
 * of them, compared.
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "ctl/compare_show.h"
#include "ctl/ctl.h"
#include "ctl/document/compare.h"
#include "ctl/terminal/text.h"

/* Bytes that a decoded reply may need: a flat list of all waves of a node with the largest GPUs. */
#define REPLY_MEMORY_MAX ((size_t)512 << 20)
#define LANES_MAX	 64u

#define AGAIN_MAX_MS	 3600000

static bool each_wave, queues_only, registers, record, any_progress;
static const char *again;

static const struct argv_option options[] = {
	{ "waves", 0, ARGV_FLAG, &each_wave, NULL, "also one row for each wave", "warps" },
	{ "registers", 0, ARGV_FLAG, &registers, NULL, "also the registers of each group's example" },
	{ "queues-only", 0, ARGV_FLAG, &queues_only, NULL, "do not stop queues to see their waves" },
	{ "record", 0, ARGV_FLAG, &record, NULL, "also let the agent keep it, for `cores`" },
	{ "again", 0, ARGV_STRING, &again, "MS",
	  "take another one MS milliseconds later (500 at least) and compare: hung, slow or progressing?" },
	{ "any-progress", 0, ARGV_FLAG, &any_progress, NULL,
	  "with --again: call the process progressing when one queue is, whatever the others do" },
	{ 0 },
};

/* Begin a line `key   value`; the caller escapes what is in the value. */
static struct out *line(struct ctl *c, const char *key)
{
	bool color = c->output.color;

	out_fmt(&c->output.text, "%s%-9s%s ", color_begin(COLOR_HEADER, color), key,
		color_end(COLOR_HEADER, color));
	return &c->output.text;
}

static void print_process(struct ctl *c, const struct rpc_process *p)
{
	struct out *o = line(c, "process");

	/* Not every core file says which process it is of. */
	if (!p->pid) {
		out_str(o, "unknown\n");
		return;
	}
	out_fmt(o, "%u  ", p->pid);
	text_put(o, "", p->comm, "");
	if (p->exe)
		text_put(o, "  ", p->exe, "");
	text_put(o, "  user ", show_user(&c->arena, p->uid), "");
	if (p->has_ns_pid)
		out_fmt(o, "  (pid %u in its own namespace)", p->ns_pid);
	if (p->container)
		text_put(o, "  container ", p->container, "");
	out_char(o, '\n');
}

static void print_runtime(struct ctl *c, const struct rpc_runtime *r)
{
	struct out *o = line(c, "runtime");

	text_put(o, "", show_name(&c->arena, &rpc_runtime_state_enum, r->state), "");
	if (r->r_debug) {
		out_str(o, "  r_debug ");
		out_hex(o, r->r_debug);
	}
	if (r->has_r_version)
		out_fmt(o, "  version %u", r->r_version);
	if (r->ttmp_setup)
		out_str(o, "  waves carry their dispatch");
	out_char(o, '\n');
}

static void print_complete(struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	enum color_style style = s->complete ? COLOR_GOOD : COLOR_BAD;
	struct out *o = line(c, "complete");

	out_fmt(o, "%s%s%s\n", color_begin(style, c->output.color), s->complete ? "yes" : "no",
		color_end(style, c->output.color));
	for (size_t i = 0; i < s->n_missing; i++) {
		line(c, i ? "" : "missing");
		text_put(o, "", s->missing[i], "\n");
	}
}

/* Whether the snapshot is what a core file holds, which has a format. */
static bool is_of_core(const struct rpc_gpu_snapshot_result *s)
{
	return s->source.format != NULL;
}

static void print_core(struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	struct out *o = line(c, "core");
	time_t at = (time_t)(s->time_us / 1000000);
	char when[40] = "";
	struct tm tm;

	text_put(o, "", s->source.file ? s->source.file : "", "");
	text_put(o, "  ", s->source.format, "");
	if (gmtime_r(&at, &tm) && strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &tm))
		out_fmt(o, "  of %s", when);
	if (s->source.writer)
		text_put(o, "  written by ", s->source.writer, "");
	if (s->process.pid)
		text_put(o, "  on ", s->source.host, "");
	out_char(o, '\n');
}

/* Append the fault that made a watch rule keep the record. */
static void print_fault(struct ctl *c, const struct rpc_fault *f)
{
	struct out *o = line(c, "fault");

	for (size_t i = 0; i < f->n_exceptions; i++)
		out_fmt(o, "%s%s", i ? ", " : "", show_name(&c->arena, &rpc_exception_enum, f->exceptions[i]));
	if (f->has_queue_id)
		out_fmt(o, "  queue %u", f->queue_id);
	else if (f->has_gpu_id)
		out_fmt(o, "  device %u", f->gpu_id);
	if (f->has_address)
		out_fmt(o, "  address 0x%" PRIx64, f->address);
	if (f->count > 1)
		out_fmt(o, "  one of %" PRIu64, f->count);
	text_put(o, "  rule ", f->rule, "\n");
}

static void print_header(struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	struct out *o;

	if (is_of_core(s))
		print_core(c, s);
	print_process(c, &s->process);
	if (s->record)
		out_fmt(line(c, "record"), "%.40s\n", s->record);
	if (s->has_fault)
		print_fault(c, &s->fault);
	o = line(c, "vendor");
	text_put(o, "", show_name(&c->arena, &rpc_vendor_enum, s->process.vendor), "");
	text_put(o, "  interface ", s->interface_version, "");
	out_fmt(o, "  devices %zu  queues %zu", s->n_devices, s->n_queues);
	if (!queues_only)
		out_fmt(o, "  waves %u", s->wave_count);
	out_char(o, '\n');
	print_runtime(c, &s->runtime);
	if (!is_of_core(s))
		out_fmt(line(c, "stopped"), "%" PRIu64 " us\n", s->stopped_us);
	print_complete(c, s);
	for (size_t i = 0; i < s->n_exited; i++) {
		line(c, "exception");
		show_exited(c, &s->exited[i]);
	}
	if (is_of_core(s))
		return;
	o = line(c, "writer");
	text_put(o, "", s->has_holder_uid ? show_user(&c->arena, s->holder_uid) : "nobody", "\n");
}

int show_snapshot(struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	int r;

	ctl_name_gpus_of(c, s);
	print_header(c, s);
	out_char(&c->output.text, '\n');
	if (!queues_only) {
		r = show_groups(c, s->groups, s->n_groups);
		if (r < 0)
			return r;
		out_char(&c->output.text, '\n');
	}
	r = show_devices(c, s->devices, s->n_devices);
	out_char(&c->output.text, '\n');
	if (r == 0)
		r = show_queues(c, s->queues, s->n_queues);
	if (r == 0 && s->has_waves) {
		out_char(&c->output.text, '\n');
		r = show_snapshot_waves(c, s);
	}
	for (size_t i = 0; r == 0 && i < s->n_registers; i++) {
		out_char(&c->output.text, '\n');
		r = show_registers(c, &s->registers[i], 0, LANES_MAX - 1);
	}
	return r;
}

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

static int take(struct ctl *c, const struct rpc_gpu_snapshot_params *p,
		struct rpc_gpu_snapshot_result *ret)
{
	return ctl_called(c, rpc_client_gpu_snapshot(c->client, p, &c->arena, ret, &c->err));
}

static int take_one(struct ctl *c, const struct rpc_gpu_snapshot_params *p)
{
	struct rpc_gpu_snapshot_result result;
	int r = take(c, p, &result);

	if (r == 0)
		r = ctl_is_json(c) ? ctl_print_result(c) : show_snapshot(c, &result);
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
	r = compare_show(c, &cmp);
	if (r < 0 || ctl_is_json(c) || !after->n_groups)
		return r;
	out_char(&c->output.text, '\n');
	/* The comparison decides the exit status, unless the table fails. */
	return show_groups(c, after->groups, after->n_groups) < 0 ? -1 : r;
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
	first.has_record = first.record = false;
	r = take(c, &first, &before);
	if (r < 0)
		return r;
	ctl_note(c, "the second snapshot follows in %u ms", pause_ms);
	/* Signals that come meanwhile end the program, so that the sleep is never cut short. */
	nanosleep(&ts, NULL);
	r = take(c, p, &after);
	return r < 0 ? r : compare(c, &before, &after);
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct rpc_gpu_snapshot_params p = {
		.has_waves = each_wave,
		.waves = each_wave,
		.has_registers = registers,
		.registers = registers,
		.has_record = record,
		.record = record,
		.has_queues_only = queues_only,
		.queues_only = queues_only,
		.has_max_stop_ms = c->max_look_ms,
		.max_stop_ms = c->max_look_ms,
	};
	uint32_t pause_ms = 0;
	int r = 0;

	if (each_wave && queues_only)
		return ctl_usage(c, "--waves and --queues-only exclude each other");
	if (c->core && (again || record))
		return ctl_usage(c, "--again and --record need a process: a core does not change");
	if (any_progress && !again)
		return ctl_usage(c, "--any-progress needs --again");
	if (registers && queues_only)
		return ctl_usage(c, "--registers and --queues-only exclude each other");
	if (again)
		r = args_ms(c, "--again", again, AGAIN_MAX_MS, &pause_ms);
	c->arena.limit = REPLY_MEMORY_MAX;
	if (r == 0)
		r = ctl_attach(c, argv[0], false);
	if (r < 0)
		return r;
	p.session = c->session.session;
	r = again ? take_two(c, &p, pause_ms) : take_one(c, &p);
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
