/* SPDX-License-Identifier: MIT */
/*
 * How a comparison looks: a header with the verdict and its evidence, a table of groups and one of
 * queues.
 */
#include "ctl/compare_show.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/ctl.h"
#include "ctl/document/place.h"
#include "ctl/terminal/text.h"
#include "protocol/stop_reason.h"

/* Bad news are red, and what is not known is yellow. */
static enum color_style verdict_style(enum rpc_progress verdict)
{
	switch (verdict) {
	case RPC_PROGRESS_HUNG:
		return COLOR_BAD;
	case RPC_PROGRESS_SLOW:
	case RPC_PROGRESS_UNKNOWN:
		return COLOR_WARN;
	case RPC_PROGRESS_PROGRESSING:
	case RPC_PROGRESS_IDLE:
		break;
	}
	return COLOR_GOOD;
}

static void print_header(struct ctl *c, const struct rpc_comparison *cmp)
{
	struct out *o = &c->output.text;
	enum color_style style = verdict_style(cmp->verdict);

	out_fmt(o, "process   %u  ", cmp->process.pid);
	text_put(o, "", cmp->process.comm, "");
	out_fmt(o, "\ninterval  %" PRIu64 " ms  waves %u -> %u\nverdict   %s%s%s: ",
		cmp->interval_us / 1000, cmp->before.wave_count, cmp->after.wave_count,
		color_begin(style, c->output.color),
		show_name(&c->arena, &rpc_progress_enum, cmp->verdict),
		color_end(style, c->output.color));
	text_put(o, "", cmp->evidence, "\n");
	for (size_t i = 0; i < cmp->n_missing; i++) {
		out_str(o, i ? "          " : "missing   ");
		text_put(o, "", cmp->missing[i], "\n");
	}
}

/* A number as text; "-" when the snapshot does not have it. */
static const char *number(struct rpc_arena *a, bool has, uint64_t v)
{
	return has ? rpc_arena_printf(a, "%" PRIu64, v) : "-";
}

/* Add a cell `BEFORE -> AFTER`, or one value when nothing has changed; "?" where memory is out. */
static void table_change(struct table *t, struct rpc_arena *a, const char *before,
			 const char *after)
{
	if (before && after && !strcmp(before, after))
		table_str(t, after);
	else
		table_str(t, rpc_arena_printf(a, "%s -> %s", before ? before : "?",
					      after ? after : "?"));
}

/* Add the cell that says what has changed; nothing for what stayed the same. */
static void table_kind(struct table *t, struct rpc_arena *a, enum rpc_change change)
{
	if (change == RPC_CHANGE_SAME)
		table_str(t, NULL);
	else
		table_style(t, COLOR_WARN, show_name(a, &rpc_change_enum, change));
}

static int print_queues(struct ctl *c, const struct rpc_comparison *cmp)
{
	static const struct table_column columns[] = {
		{ "QUEUE", true },   { "GPU", true },	 { "VERDICT", false }, { "READ", false },
		{ "WRITE", false },  { "WAVES", false }, { "FAULTED", true },  { "CHANGE", false },
	};
	auto_table struct table t;

	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < cmp->n_queues; i++) {
		const struct rpc_queue_change *q = &cmp->queues[i];
		struct rpc_arena *a = &c->arena;

		table_u64(&t, q->queue_id);
		table_u64(&t, q->gpu_id);
		table_style(&t, q->has_verdict ? verdict_style(q->verdict) : COLOR_PLAIN,
			    q->has_verdict ? show_name(a, &rpc_progress_enum, q->verdict) : NULL);
		table_change(&t, a, number(a, q->has_read_before, q->read_before),
			     number(a, q->has_read_after, q->read_after));
		table_change(&t, a, number(a, q->has_write_before, q->write_before),
			     number(a, q->has_write_after, q->write_after));
		table_change(&t, a, number(a, q->has_waves_before, q->waves_before),
			     number(a, q->has_waves_after, q->waves_after));
		table_str(&t, q->faulting_waves ? number(a, true, q->faulting_waves) : NULL);
		table_kind(&t, a, q->change);
	}
	return ctl_print_table(c, &t);
}

static int print_groups(struct ctl *c, const struct rpc_comparison *cmp)
{
	static const struct table_column columns[] = {
		{ "GPU", true },    { "PLACE", false },	 { "STATE", false },
		{ "REASON", false }, { "WAVES", false }, { "CHANGE", false },
	};
	auto_table struct table t;

	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < cmp->n_groups; i++) {
		const struct rpc_group_change *g = &cmp->groups[i];
		struct rpc_arena *a = &c->arena;

		table_u64(&t, g->group.gpu_id);
		table_str(&t, place_name(a, &g->group));
		table_str(&t, show_name(a, &rpc_wave_state_enum, g->group.state));
		table_style(&t, stop_reason_is_faulting(&g->group) ? COLOR_BAD : COLOR_PLAIN,
			    place_reasons(a, &g->group));
		table_change(&t, a, number(a, true, g->waves_before),
			     number(a, true, g->waves_after));
		table_kind(&t, a, g->change);
	}
	return ctl_print_table(c, &t);
}

static int print_text(struct ctl *c, const struct rpc_comparison *cmp)
{
	int r = 0;

	print_header(c, cmp);
	if (cmp->n_groups) {
		out_char(&c->output.text, '\n');
		r = print_groups(c, cmp);
	}
	if (r == 0 && cmp->n_queues) {
		out_char(&c->output.text, '\n');
		r = print_queues(c, cmp);
	}
	return r;
}

static int print_json(struct ctl *c, const struct rpc_comparison *cmp)
{
	auto_out struct out text = { 0 };

	rpc_comparison_encode(&text, cmp);
	return ctl_print_json(c, &text);
}

int compare_show(struct ctl *c, const struct rpc_comparison *cmp)
{
	int r = ctl_is_json(c) ? print_json(c, cmp) : print_text(c, cmp);

	if (r < 0)
		return r;
	/* Scripts ask for the exit status alone. */
	if (cmp->verdict == RPC_PROGRESS_HUNG)
		return CTL_EXIT_NO_PROGRESS;
	return cmp->verdict == RPC_PROGRESS_UNKNOWN ? CTL_EXIT_PARTIAL : 0;
}
