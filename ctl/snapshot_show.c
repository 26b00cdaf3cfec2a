/* SPDX-License-Identifier: MIT */
/*
 * The page of a snapshot.  What a target process may have chosen goes through table cells or
 * text_escape().
 */
#include "ctl/snapshot_show.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "ctl/cli_words.h"
#include "ctl/ctl.h"
#include "ctl/document/headline.h"
#include "ctl/document/place.h"
#include "ctl/group_rows.h"
#include "ctl/host_show.h"
#include "ctl/nccl/awaited.h"
#include "ctl/terminal/text.h"
#include "protocol/stop_reason.h"

/* Columns of what stands in front of a line of the headline. */
#define TAG_WIDTH 7
/* Most GPUs that a note names one by one. */
#define GPUS_NAMED 4

/* Lines of the header go on below their beginning. */
static void put_line(struct ctl *c, const struct out *line, size_t indent)
{
	if (out_error(line))
		c->output.text.error = out_error(line);
	/* Without a legend it is for a script, which reads lines. */
	text_wrap(&c->output.text, line->data ? line->data : "", line->size,
		  c->output.legend ? c->output.width : 0, indent);
}

/* A name that a stranger chose, made safe; "?" where memory is out. */
static const char *escaped(struct ctl *c, const char *name)
{
	auto_out struct out o = { 0 };
	const char *copy;

	text_put(&o, "", name, "");
	copy = out_error(&o) ? NULL : rpc_arena_strdup(&c->arena, o.data ? o.data : "");
	return copy ? copy : "?";
}

static const char *word(const struct ctl *c, const char *neutral)
{
	return vendor_word(c->vendor, neutral);
}

/* ------------------------------------------------------------------ headline ----------------- */

static enum color_style style_of(enum headline_kind kind)
{
	switch (kind) {
	case HEADLINE_FAULT:
	case HEADLINE_CAUSE:
	case HEADLINE_ALSO:
	case HEADLINE_HUNG:
		return COLOR_BAD;
	case HEADLINE_HELD:
	case HEADLINE_UNSURE:
	case HEADLINE_SLOW:
		return COLOR_WARN;
	case HEADLINE_WAITS:
		return COLOR_PLAIN;
	case HEADLINE_FINE:
		break;
	}
	return COLOR_GOOD;
}

/* @param complete  Everything was seen: only then no news is good news. */
static void print_headline_line(struct ctl *c, const struct headline_line *l, bool complete)
{
	enum color_style style = l->kind == HEADLINE_FINE && !complete ? COLOR_WARN : style_of(l->kind);
	const char *tag = headline_tag(l->kind);
	auto_out struct out line = { 0 };

	out_str(&c->output.text, color_begin(style, c->output.color));
	if (l->kind != HEADLINE_FINE)
		out_fmt(&line, "%-*s", TAG_WIDTH, tag);
	text_put(&line, "", l->text, "");
	put_line(c, &line, l->kind == HEADLINE_FINE ? 2 : TAG_WIDTH);
	/* The colour ends in front of the line break, which is the last character. */
	if (style != COLOR_PLAIN && c->output.color && c->output.text.size) {
		c->output.text.size--;
		out_fmt(&c->output.text, "%s\n", color_end(style, true));
	}
}

/* @param text  NULL: there is none. */
static void print_more_causes(struct ctl *c, const char *text)
{
	auto_out struct out line = { 0 };

	if (!text)
		return;
	out_fmt(&line, "%*s%s", TAG_WIDTH, "", text);
	put_line(c, &line, TAG_WIDTH);
}

/* What a single snapshot of a process that is there cannot tell, another one can. */
static void print_advice(struct ctl *c, const struct snapshot_page *page, const struct headline *h)
{
	if (!page->advise || c->core || !c->output.legend)
		return;
	for (size_t i = 0; i < h->n; i++)
		if (h->lines[i].kind == HEADLINE_WAITS) {
			out_fmt(&c->output.text, "%*ssnapshot --again 2000 tells whether the %s move\n",
				TAG_WIDTH, "", word(c, "queues"));
			return;
		}
}

int snapshot_show_headline(struct ctl *c, const struct snapshot_page *page)
{
	const struct headline_input in = { page->snapshot, page->comparison, page->still_us,
					   page->queues_only, page->faulted };
	struct headline h;
	int r = headline_make(&c->arena, &in, &c->gpus, &h);

	if (r < 0)
		return ctl_fail(c, -r, "writing the headline");
	for (size_t i = 0; i < h.n; i++)
		print_headline_line(c, &h.lines[i],
				    page->comparison ? page->comparison->complete : page->snapshot->complete);
	print_more_causes(c, headline_more_causes(&c->arena, &h));
	if (h.more)
		out_fmt(&c->output.text, "%*s%zu more; see the tables\n", TAG_WIDTH, "", h.more);
	print_advice(c, page, &h);
	return 0;
}

/* ------------------------------------------------------------------ header ------------------- */

/* Append a time as `2026-11-21 09:17:33 UTC`; nothing for one that is unknown. */
static void put_utc(struct out *o, uint64_t us)
{
	time_t at = (time_t)(us / 1000000);
	char when[40];
	struct tm tm;

	if (us && gmtime_r(&at, &tm) && strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &tm))
		out_fmt(o, "  %s", when);
}

static bool is_of_core(const struct rpc_gpu_snapshot_result *s)
{
	return s->source.format != NULL;
}

static void print_process(struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	const struct rpc_process *p = &s->process;
	auto_out struct out o = { 0 };

	/* Not every core file says which process it is of. */
	if (p->pid) {
		text_put(&o, "", p->comm, "");
		out_fmt(&o, "  pid %u", p->pid);
		if (p->has_ns_pid)
			out_fmt(&o, " (%u in its own namespace)", p->ns_pid);
		text_put(&o, "  user ", show_user(&c->arena, p->uid), "");
		if (p->container)
			text_put(&o, "  container ", p->container, "");
		text_put(&o, "  host ", s->source.host, "");
	} else {
		out_str(&o, "unknown process");
	}
	put_utc(&o, s->time_us);
	put_line(c, &o, 2);
	if (c->verbose && p->pid && p->exe) {
		out_reset(&o);
		text_put(&o, "program  ", p->exe, "");
		put_line(c, &o, 2);
	}
}

static void print_core(struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	auto_out struct out o = { 0 };

	text_put(&o, "core ", s->source.file ? s->source.file : "", "");
	text_put(&o, " (", s->source.format, "");
	if (s->source.writer)
		text_put(&o, ", written by ", s->source.writer, "");
	out_char(&o, ')');
	put_line(c, &o, 2);
}

/* Append a time that queues stood still, to a tenth: `85 us`, `1.9 ms`, `1.2 s`. */
static void put_stopped(struct out *o, uint64_t us)
{
	if (us < 1000)
		out_fmt(o, "%" PRIu64 " us", us);
	else if (us < 1000000)
		out_fmt(o, "%" PRIu64 ".%" PRIu64 " ms", us / 1000, us % 1000 / 100);
	else
		text_duration(o, us / 1000);
}

/* Append how much was seen, for how long the queues stood still, and who else has a say. */
static void print_taking(struct ctl *c, const struct snapshot_page *page)
{
	const struct rpc_gpu_snapshot_result *s = page->snapshot;
	const struct rpc_comparison *cmp = page->comparison;
	bool complete = cmp ? cmp->complete : s->complete;
	auto_out struct out o = { 0 };

	if (!page->queues_only)
		out_fmt(&o, "%u %s", s->wave_count, word(c, s->wave_count == 1 ? "wave" : "waves"));
	if (cmp && cmp->before.wave_count != s->wave_count)
		out_fmt(&o, " (%u before)", cmp->before.wave_count);
	if (!page->queues_only && s->has_diverged_waves && s->diverged_waves)
		out_fmt(&o, ", %u diverged", s->diverged_waves);
	if (cmp) {
		out_str(&o, page->queues_only ? "" : ", ");
		text_duration(&o, cmp->interval_us / 1000);
		out_str(&o, " apart");
	}
	out_str(&o, o.size ? ", " : "");
	if (!is_of_core(s) && !page->queues_only) {
		out_str(&o, "stopped ");
		put_stopped(&o, s->stopped_us + page->faulted_stopped_us);
		out_str(&o, ", ");
	}
	out_str(&o, complete ? "complete" : "NOT COMPLETE");
	if (s->record)
		text_put(&o, ", record ", s->record, "");
	if (!is_of_core(s) && s->has_holder_uid)
		text_put(&o, ", controlled by ", show_user(&c->arena, s->holder_uid), "");
	else if (!is_of_core(s))
		out_str(&o, ", nobody else controls it");
	put_line(c, &o, 2);
}

static void print_missing(struct ctl *c, const struct snapshot_page *page)
{
	const struct rpc_comparison *cmp = page->comparison;
	size_t n = cmp ? cmp->n_missing : page->snapshot->n_missing;

	for (size_t i = 0; i < n; i++) {
		auto_out struct out o = { 0 };

		text_put(&o, "missing  ", cli_words(c, cmp ? cmp->missing[i] : page->snapshot->missing[i]), "");
		put_line(c, &o, 9);
	}
}

/* Append what is of no use at 3 a.m. */
static void print_interface(struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	const struct rpc_runtime *r = &s->runtime;
	auto_out struct out o = { 0 };

	if (s->process.vendor != RPC_VENDOR_NONE)
		text_put(&o, "", show_name(&c->arena, &rpc_vendor_enum, s->process.vendor), "");
	text_put(&o, "  interface ", s->interface_version, "");
	text_put(&o, "  runtime ", show_name(&c->arena, &rpc_runtime_state_enum, r->state), "");
	if (r->r_debug) {
		out_str(&o, "  r_debug ");
		out_hex(&o, r->r_debug);
	}
	if (r->has_r_version)
		out_fmt(&o, "  version %u", r->r_version);
	if (r->ttmp_setup)
		out_fmt(&o, "  %s carry their %s", word(c, "waves"), word(c, "dispatch"));
	put_line(c, &o, 2);
}

void snapshot_show_header(struct ctl *c, const struct snapshot_page *page)
{
	print_process(c, page->snapshot);
	if (is_of_core(page->snapshot))
		print_core(c, page->snapshot);
	print_taking(c, page);
	if (c->verbose)
		print_interface(c, page->snapshot);
	print_missing(c, page);
}

/* ------------------------------------------------------------------ groups ------------------- */

/* Note the names of several GPUs below the table; a single one is told there with its number. */
static void note_gpus(struct ctl *c, const struct group_rows *rows, struct table *t)
{
	const struct gpu_names *g = &c->gpus;
	bool several = false, alike = true;

	for (size_t i = 1; i < rows->n; i++)
		several = several || rows->list[i].group->gpu_id != rows->list[0].group->gpu_id;
	for (size_t i = 1; i < g->n; i++)
		alike = alike && !strcmp(g->gpus[i].name, g->gpus[0].name);
	if (several && alike && g->n)
		table_note(t, "GPUs: %s", escaped(c, g->gpus[0].name));
	for (size_t i = 0; several && !alike && i < g->n && g->n <= GPUS_NAMED; i++)
		table_note(t, "GPU %zu: %s", i, escaped(c, g->gpus[i].name));
}

/* Waves of some devices, gfx90a for one, say of which dispatch they are only if AMD's runtime asked for that. */
static void note_dispatches(const struct rpc_gpu_snapshot_result *s, struct table *t)
{
	bool carried = !s->runtime.has_ttmp_setup || s->runtime.ttmp_setup;

	for (size_t i = 0; !carried && i < s->n_groups; i++) {
		if (s->groups[i].representative.has_dispatch)
			continue;
		table_note(t, "dispatches unknown: start the program with HSA_ENABLE_DEBUG=1 to see them");
		return;
	}
}

int snapshot_show_groups(struct ctl *c, const struct snapshot_page *page, const struct group_rows *rows)
{
	const struct group_rows_view view = { c->vendor, &c->gpus, c->verbose || page->arguments,
					      c->verbose, c->output.legend };
	auto_table struct table t = { 0 };
	int r;

	if (!rows->n) {
		if (c->output.legend)
			out_fmt(&c->output.text, "no %s\n", word(c, "waves"));
		return 0;
	}
	r = group_rows_table(&c->arena, rows, &view, &t);
	if (r < 0)
		return ctl_fail(c, -r, "writing the table");
	note_gpus(c, rows, &t);
	note_dispatches(page->snapshot, &t);
	if (!c->verbose)
		table_note(&t, "details: -v");
	return ctl_print_table(c, &t);
}

static int print_groups(struct ctl *c, const struct snapshot_page *page)
{
	struct group_rows rows;
	int r = page->comparison ? group_rows_of_comparison(&c->arena, page->snapshot, page->comparison,
							    page->still_us, &rows)
				 : group_rows_of_snapshot(&c->arena, page->snapshot, &rows);

	return r < 0 ? ctl_fail(c, -r, "writing the table") : snapshot_show_groups(c, page, &rows);
}

/* ------------------------------------------------------------------ waits -------------------- */

static void print_wait(struct ctl *c, const char *head, const char *text, enum rpc_confidence confidence)
{
	auto_out struct out o = { 0 };

	out_fmt(&o, "%-*s", TAG_WIDTH, head ? head : "?");
	text_put(&o, "", text ? text : "", "");
	out_fmt(&o, "  [%s]", show_name(&c->arena, &rpc_confidence_enum, confidence));
	put_line(c, &o, TAG_WIDTH);
}

/* Of how many waves of a group it is known that they wait, where that is not all of them. */
static const char *waiting(struct ctl *c, const struct rpc_group *g, const struct rpc_wait *w)
{
	if (g->waiting >= g->waves)
		return w->text;
	return rpc_arena_printf(&c->arena, "%u of %u %s: %s", g->waiting, g->waves, word(c, "waves"), w->text);
}

/* A line for each row of the waves that wait, and for each queue that does.  The headline has who keeps them. */
static void print_waits(struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	const struct rpc_why_get_result *y = &s->why;

	for (size_t i = 0; i < s->n_groups; i++) {
		const struct rpc_group *g = &s->groups[i];

		if (g->has_wait && g->wait < y->n_waits)
			print_wait(c, rpc_arena_printf(&c->arena, "%zu", i + 1), waiting(c, g, &y->waits[g->wait]),
				   y->waits[g->wait].confidence);
	}
	for (size_t i = 0; i < y->n_waits; i++)
		if (y->waits[i].kind == RPC_WAIT_KIND_QUEUE)
			print_wait(c, word(c, "queue"), y->waits[i].text, y->waits[i].confidence);
	for (size_t i = 0; i < y->n_collectives; i++)
		print_wait(c, "RANK", awaited_rank_text(&c->arena, y, &y->collectives[i]),
			   y->collectives[i].confidence);
	if (!y->n_waits && c->output.legend && !awaited_text(&c->arena, y))
		out_fmt(&c->output.text, "no %s is known to wait\n", word(c, "wave"));
}

/* ------------------------------------------------------------------ queues ------------------- */

/* What of a queue's ring is done; other queues than AQL ones count words or bytes. */
static const char *packets(struct rpc_arena *a, const struct rpc_queue *q)
{
	if (!q->has_read_index || !q->has_write_index)
		return NULL;
	if (q->type != RPC_QUEUE_TYPE_COMPUTE_AQL)
		return rpc_arena_printf(a, "at %" PRIu64 " of %" PRIu64, q->read_index, q->write_index);
	if (q->read_index >= q->write_index)
		return rpc_arena_printf(a, "all %" PRIu64 " taken", q->write_index);
	return rpc_arena_printf(a, "%" PRIu64 " of %" PRIu64 " taken", q->read_index, q->write_index);
}

/* What happened to a queue between the snapshots, and so what to think of it. */
static const char *verdict(struct rpc_arena *a, const struct rpc_queue_change *q, bool aql)
{
	uint64_t taken = q->read_after - q->read_before;

	if (!q->has_verdict)
		return q->change == RPC_CHANGE_REMOVED ? "gone" : NULL;
	switch (q->verdict) {
	case RPC_PROGRESS_HUNG:
		return q->faulting_waves ? "faulted: hung" : "none: hung";
	case RPC_PROGRESS_SLOW:
		return "none: slow";
	case RPC_PROGRESS_PROGRESSING:
		if (!aql || !q->has_read_before || !q->has_read_after || !taken || q->read_after < q->read_before)
			return "moved on";
		return rpc_arena_printf(a, "%" PRIu64 " packet%s", taken, taken == 1 ? "" : "s");
	case RPC_PROGRESS_IDLE:
		return "idle";
	case RPC_PROGRESS_UNKNOWN:
		break;
	}
	return "unknown";
}

static enum color_style verdict_style(const struct rpc_queue_change *q)
{
	if (!q->has_verdict)
		return COLOR_PLAIN;
	if (q->verdict == RPC_PROGRESS_HUNG)
		return COLOR_BAD;
	return q->verdict == RPC_PROGRESS_SLOW || q->verdict == RPC_PROGRESS_UNKNOWN ? COLOR_WARN : COLOR_PLAIN;
}

/* What is special about a queue: exceptions, faulted waves, a lease, why it was not stopped. */
static const char *queue_state(struct ctl *c, const struct rpc_queue *q)
{
	auto_out struct out o = { 0 };

	for (size_t i = 0; i < q->n_exceptions; i++) {
		const char *name = show_name(&c->arena, &rpc_exception_enum, q->exceptions[i]);
		const char *words = name ? place_words(&c->arena, name) : NULL;

		out_fmt(&o, "%s%s", o.size ? ", " : "", words ? words : "?");
	}
	if (q->faulting_waves)
		out_fmt(&o, "%s%u faulted", o.size ? ", " : "", q->faulting_waves);
	if (q->suspended)
		out_fmt(&o, "%ssuspended", o.size ? ", " : "");
	if (q->has_not_stopped) {
		const char *name = show_name(&c->arena, &rpc_not_stopped_enum, q->not_stopped);
		const char *words = name ? place_words(&c->arena, name) : NULL;

		out_fmt(&o, "%snot stopped: %s", o.size ? ", " : "", words ? words : "?");
	}
	return o.size ? rpc_arena_strdup(&c->arena, o.data) : NULL;
}

enum { QUEUE_COLUMNS = 8 };

static const struct table_column *queue_columns(struct ctl *c, const struct snapshot_page *page)
{
	static const struct table_column all[QUEUE_COLUMNS] = {
		{ .title = "QUEUE", .right = true },
		{ .title = "GPU", .right = true, .same = "all on GPU" },
		{ .title = "TYPE", .importance = 1, .min = 4, .optional = true },
		{ .title = "WAVES", .right = true, .optional = true },
		{ .title = "PACKETS", .importance = 2, .min = 10, .optional = true },
		{ .title = "LAST", .importance = 3, .min = 12, .optional = true },
		{ .title = "ADDRESS", .optional = true },
		{ .title = "STATE", .importance = 4, .min = 12, .wrap = true, .optional = true },
	};
	struct table_column *columns = rpc_arena_array(&c->arena, QUEUE_COLUMNS, sizeof(*columns));
	auto_out struct out last = { 0 };

	if (!columns)
		return NULL;
	for (size_t i = 0; i < QUEUE_COLUMNS; i++) {
		columns[i] = all[i];
		columns[i].title = word(c, all[i].title);
	}
	if (page->comparison) {
		out_str(&last, "LAST ");
		text_duration(&last, page->comparison->interval_us / 1000);
		columns[5].title = rpc_arena_strdup(&c->arena, last.data ? last.data : "");
	}
	return rpc_arena_error(&c->arena) ? NULL : columns;
}

static void add_queue(struct ctl *c, struct table *t, const struct rpc_queue *q, const struct rpc_queue_change *change)
{
	const char *gpu = gpu_names_text(&c->gpus, &c->arena, q->gpu_id);
	const char *state = queue_state(c, q);

	table_u64(t, q->queue_id);
	table_str(t, gpu);
	table_str(t, show_queue_type(&c->arena, q));
	table_u64_if(t, q->has_waves, q->waves);
	table_str(t, packets(&c->arena, q));
	table_style(t, change ? verdict_style(change) : COLOR_PLAIN,
		    change ? verdict(&c->arena, change, q->type == RPC_QUEUE_TYPE_COMPUTE_AQL) : NULL);
	/* An AMD queue is known by its ring, an NVIDIA one by its context. */
	table_hex_if(t, c->verbose && (q->has_ring_base || q->has_context),
		     q->has_ring_base ? q->ring_base : q->context);
	table_style(t, q->n_exceptions || q->faulting_waves ? COLOR_BAD : q->suspended ? COLOR_WARN : COLOR_PLAIN,
		    state);
}

/* Queues that are gone are known from the comparison alone. */
static int print_queues(struct ctl *c, const struct snapshot_page *page)
{
	const struct rpc_comparison *cmp = page->comparison;
	const struct rpc_gpu_snapshot_result *s = page->snapshot;
	size_t n = cmp ? cmp->n_queues : s->n_queues;
	auto_table struct table t;
	const struct table_column *columns = queue_columns(c, page);

	table_init(&t, columns, QUEUE_COLUMNS);
	if (!columns)
		return ctl_fail(c, -rpc_arena_error(&c->arena), "writing the table");
	for (size_t i = 0; i < n; i++) {
		struct rpc_queue gone = { 0 };

		if (i >= s->n_queues) {
			gone.queue_id = cmp->queues[i].queue_id;
			gone.gpu_id = cmp->queues[i].gpu_id;
			gone.type = RPC_QUEUE_TYPE_UNKNOWN;
		}
		add_queue(c, &t, i < s->n_queues ? &s->queues[i] : &gone, cmp ? &cmp->queues[i] : NULL);
	}
	if (!n && c->output.legend)
		out_fmt(&c->output.text, "no %s\n", word(c, "queues"));
	return n ? ctl_print_table(c, &t) : 0;
}

/* ------------------------------------------------------------------ page --------------------- */

static void blank(struct ctl *c)
{
	out_char(&c->output.text, '\n');
}

/* Append what was asked for besides: devices, waves one by one, registers. */
static int print_more(struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	int r = 0;

	if (c->verbose) {
		blank(c);
		r = show_devices(c, s->devices, s->n_devices);
	}
	if (r == 0 && s->has_waves) {
		blank(c);
		r = show_snapshot_waves(c, s);
	}
	for (size_t i = 0; r == 0 && i < s->n_registers; i++) {
		blank(c);
		r = show_registers(c, &s->registers[i], UINT64_MAX);
	}
	return r;
}

/*
 * Ask for the lanes of the first faulting group's example, where lanes have exceptions of their own.
 * A warp that a fault has stopped does not move on meanwhile; without an answer the page is as good.
 * @return false when there is nothing to be told.
 */
static bool ask_lanes(struct ctl *c, const struct rpc_gpu_snapshot_result *s,
		      struct rpc_wave_registers_result *ret)
{
	const struct rpc_group *g = s->n_groups ? &s->groups[0] : NULL;
	struct rpc_wave_registers_params p = { .session = c->session.session,
					       .has_banks = true,
					       .banks = (enum rpc_register_bank[]){ RPC_REGISTER_BANK_SPECIAL },
					       .n_banks = 1,
					       .has_work_items = true,
					       .work_items = true,
					       .has_max_stop_ms = c->max_look_ms,
					       .max_stop_ms = c->max_look_ms };
	struct agent_err err = { 0 };

	if (!c->attached || s->process.vendor != RPC_VENDOR_NVIDIA || !g || !g->exception ||
	    !stop_reason_is_faulting(g))
		return false;
	p.wave = (struct rpc_wave_name){ .queue_id = g->representative.queue_id,
					 .has_unit = true,
					 .unit = g->representative.unit,
					 .has_index = true,
					 .index = g->representative.index };
	if (rpc_client_wave_registers(c->client, &p, &c->arena, ret, &err) == 0)
		return true;
	ctl_debug(c, "the lanes of the faulted warp: %s", err.message);
	return false;
}

int snapshot_show(struct ctl *c, const struct snapshot_page *given)
{
	struct snapshot_page copy = *given, *page = &copy;
	struct rpc_wave_registers_result lanes;
	int r;

	ctl_name_gpus_of(c, page->snapshot);
	if (ask_lanes(c, page->snapshot, &lanes)) {
		copy.faulted = &lanes.registers;
		copy.faulted_stopped_us = lanes.stopped_us;
	}
	r = snapshot_show_headline(c, page);
	if (r < 0)
		return r;
	snapshot_show_header(c, page);
	if (page->snapshot->n_groups || (page->comparison && page->comparison->n_groups)) {
		blank(c);
		r = print_groups(c, page);
	}
	if (r < 0)
		return r;
	if (page->snapshot->has_why) {
		blank(c);
		print_waits(c, page->snapshot);
	}
	blank(c);
	r = print_queues(c, page);
	if (r == 0 && page->snapshot->has_host) {
		blank(c);
		r = host_show_rows(c, page->snapshot, page->comparison);
	}
	return r < 0 ? r : print_more(c, page->snapshot);
}
