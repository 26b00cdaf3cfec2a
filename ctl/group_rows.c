/* SPDX-License-Identifier: MIT */
/* Groups as rows: numbers, what became of them, and the columns they are printed in. */
#include "ctl/group_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/document/code_text.h"
#include "ctl/document/place.h"
#include "ctl/document/queue_changes.h"
#include "ctl/document/vendor_words.h"
#include "ctl/terminal/text.h"
#include "protocol/stop_reason.h"

int group_rows_of_snapshot(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s,
			   struct group_rows *ret)
{
	struct group_row *list = rpc_arena_array(a, s->n_groups, sizeof(*list));

	if (!list)
		return rpc_arena_error(a);
	for (size_t i = 0; i < s->n_groups; i++)
		list[i] = (struct group_row){
			.group = &s->groups[i],
			.number = i + 1,
			.waves = rpc_arena_printf(a, "%" PRIu32, s->groups[i].waves),
			.state = place_state(a, &s->groups[i]),
		};
	*ret = (struct group_rows){ list, s->n_groups };
	return rpc_arena_error(a);
}

/* ------------------------------------------------------------------ two snapshots ------------ */

/* Orders groups by their example: a wave, or a lane of it, is in one group of a snapshot. */
static int compare_examples(const void *x, const void *y)
{
	const struct rpc_group *a = *(const struct rpc_group *const *)x;
	const struct rpc_group *b = *(const struct rpc_group *const *)y;
	const struct rpc_wave_ref *r = &a->representative, *q = &b->representative;

	if (a->gpu_id != b->gpu_id)
		return a->gpu_id < b->gpu_id ? -1 : 1;
	if (r->queue_id != q->queue_id)
		return r->queue_id < q->queue_id ? -1 : 1;
	if (r->unit != q->unit)
		return r->unit < q->unit ? -1 : 1;
	if (r->index != q->index)
		return r->index < q->index ? -1 : 1;
	if (a->has_lane != b->has_lane)
		return a->has_lane ? 1 : -1;
	return a->has_lane && a->lane != b->lane ? (a->lane < b->lane ? -1 : 1) : 0;
}

static const struct rpc_group **sort_by_example(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s)
{
	const struct rpc_group **list = rpc_arena_array(a, s->n_groups, sizeof(*list));

	if (!list)
		return NULL;
	for (size_t i = 0; i < s->n_groups; i++)
		list[i] = &s->groups[i];
	if (s->n_groups)
		qsort(list, s->n_groups, sizeof(*list), compare_examples);
	return list;
}

/* The position, from 1 on, that a group of a comparison has in the later snapshot. */
static size_t number_of(const struct rpc_group *const *sorted, const struct rpc_gpu_snapshot_result *s,
			const struct rpc_group *g)
{
	const struct rpc_group *const *found =
		s->n_groups ? bsearch(&g, sorted, s->n_groups, sizeof(*sorted), compare_examples) : NULL;

	return found ? (size_t)(*found - s->groups) + 1 : 0;
}

/* What became of the queues of a group. */
struct fate {
	bool hung, moves;
	uint64_t still_us; /* How long they stand still at least. */
};

/* What a comparison says of queues. */
struct fates {
	struct queue_changes queues;
	const uint64_t *still_us; /* May be NULL. */
};

static void add_fate(struct fate *f, const struct fates *of, size_t position)
{
	const struct rpc_comparison *cmp = of->queues.cmp;
	const struct rpc_queue_change *q = &cmp->queues[position];
	uint64_t still = of->still_us ? of->still_us[position] : cmp->interval_us;

	f->hung = f->hung && q->has_verdict && q->verdict == RPC_PROGRESS_HUNG;
	f->moves = f->moves || (q->has_verdict && (q->verdict == RPC_PROGRESS_PROGRESSING ||
						   q->verdict == RPC_PROGRESS_SLOW));
	f->still_us = still < f->still_us ? still : f->still_us;
}

static struct fate fate_of(const struct rpc_group *g, struct fates *of)
{
	struct fate f = { .hung = g->n_queues, .still_us = UINT64_MAX };

	for (size_t i = 0; i < g->n_queues; i++) {
		size_t n, first = queue_changes_find(&of->queues, g->gpu_id, g->queues[i], &n);

		for (size_t k = 0; k < n; k++)
			add_fate(&f, of, of->queues.sorted[first + k]);
	}
	return f;
}

static const char *still_text(struct rpc_arena *a, uint64_t us)
{
	auto_out struct out o = { 0 };

	out_str(&o, "stuck for ");
	text_duration(&o, us / 1000);
	return out_error(&o) ? NULL : rpc_arena_strdup(a, o.data);
}

static const char *changed_state(struct rpc_arena *a, const struct rpc_group_change *c, struct fates *of)
{
	const char *state = place_state(a, &c->group);
	struct fate f;

	if (c->change == RPC_CHANGE_REMOVED)
		return "gone";
	if (stop_reason_is_faulting(&c->group) || c->group.state != RPC_WAVE_STATE_RUNNING)
		return state;
	if (c->change == RPC_CHANGE_ADDED)
		return "new";
	f = fate_of(&c->group, of);
	if (f.hung)
		return still_text(a, f.still_us);
	return f.moves || c->change == RPC_CHANGE_CHANGED ? "moving" : state;
}

/* Orders rows by number; what has none comes last, in the order it has. */
static int compare_rows(const void *x, const void *y)
{
	const struct group_row *a = x, *b = y;
	size_t n = a->number - 1, m = b->number - 1;

	if (n != m)
		return n < m ? -1 : 1;
	return a->group < b->group ? -1 : a->group > b->group;
}

int group_rows_of_comparison(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *after,
			     const struct rpc_comparison *cmp, const uint64_t *still_us,
			     struct group_rows *ret)
{
	struct group_row *list = rpc_arena_array(a, cmp->n_groups, sizeof(*list));
	const struct rpc_group **sorted = sort_by_example(a, after);
	struct fates fates = { .still_us = still_us };

	if (!list || !sorted || queue_changes_init(a, cmp, &fates.queues) < 0)
		return rpc_arena_error(a);
	for (size_t i = 0; i < cmp->n_groups; i++) {
		const struct rpc_group_change *c = &cmp->groups[i];
		bool gone = c->change == RPC_CHANGE_REMOVED;

		list[i].group = &c->group;
		list[i].number = gone ? 0 : number_of(sorted, after, &c->group);
		list[i].waves = c->waves_before == c->waves_after ?
			rpc_arena_printf(a, "%" PRIu32, c->waves_after) :
			rpc_arena_printf(a, "%" PRIu32 " (%+" PRId64 ")", c->waves_after,
					 (int64_t)c->waves_after - c->waves_before);
		list[i].state = changed_state(a, c, &fates);
	}
	if (cmp->n_groups)
		qsort(list, cmp->n_groups, sizeof(*list), compare_rows);
	*ret = (struct group_rows){ list, cmp->n_groups };
	return rpc_arena_error(a);
}

/* ------------------------------------------------------------------ columns ------------------ */

const char *group_rows_wave(struct rpc_arena *a, const struct rpc_wave_ref *r)
{
	return rpc_arena_printf(a, "%u:%u:%u", r->queue_id, r->unit, r->index);
}

/*
 * How many workgroups a group of waves has, and from which to which, as "2 (0-1)".  Coordinates y
 * and z are shown where they are not all 0.
 */
static const char *workgroups(struct rpc_arena *a, const struct rpc_group *g)
{
	const uint32_t *from = g->first_workgroup, *to = g->last_workgroup;

	if (!g->has_workgroups)
		return NULL;
	if (g->n_first_workgroup != 3 || g->n_last_workgroup != 3)
		return rpc_arena_printf(a, "%u", g->workgroups);
	if (from[1] || from[2] || to[1] || to[2])
		return rpc_arena_printf(a, "%u (%u,%u,%u-%u,%u,%u)", g->workgroups, from[0],
					from[1], from[2], to[0], to[1], to[2]);
	if (from[0] == to[0])
		return rpc_arena_printf(a, "%u (%u)", g->workgroups, from[0]);
	return rpc_arena_printf(a, "%u (%u-%u)", g->workgroups, from[0], to[0]);
}

/*
 * Active lanes, and those of parts: of all waves alike, from the fewest to the most, or with the
 * median between them.
 */
static const char *lanes(struct rpc_arena *a, const struct rpc_group *g, bool verbose)
{
	if (verbose)
		return rpc_arena_printf(a, "%u/%u/%u", g->lanes_min, g->lanes_median, g->lanes_max);
	if (g->lanes_min == g->lanes_max)
		return rpc_arena_printf(a, "%u", g->lanes_min);
	return rpc_arena_printf(a, "%u-%u", g->lanes_min, g->lanes_max);
}

enum { COLUMNS_DEFAULT = 7, COLUMNS_VERBOSE = 9 };

/* The columns, with the vendor's words. */
static const struct table_column *make_columns(struct rpc_arena *a, const struct group_rows *rows,
					       enum rpc_vendor vendor, bool verbose)
{
	static const struct table_column all[] = {
		{ .title = "#", .right = true, .optional = true },
		{ .title = "WAVES", .right = true },
		{ .title = "LANES", .right = true, .importance = 1, .same = "active lanes:" },
		{ .title = "GPU", .right = true, .same = "all on" },
		{ .title = "KERNEL", .importance = 3, .min = 12, .wrap = true, .optional = true },
		/* Places and kernels go on below their row, and lose nothing there. */
		{ .title = "WHERE", .importance = 2, .min = 26, .wrap = true },
		{ .title = "STATE", .importance = 4, .min = 16, .wrap = true },
		{ .title = "WORKGROUPS", .optional = true },
		{ .title = "EXAMPLE" },
	};
	struct table_column *columns = rpc_arena_array(a, ARRAY_SIZE(all), sizeof(*columns));

	for (size_t i = 0; columns && i < ARRAY_SIZE(all); i++) {
		columns[i] = all[i];
		columns[i].title = vendor_word(vendor, all[i].title);
	}
	if (!columns)
		return NULL;
	if (vendor == RPC_VENDOR_NVIDIA)
		columns[2].same = "active threads:";
	if (verbose)
		columns[2] = (struct table_column){ .title = columns[2].title };
	/* A fault is never left to the small print. */
	if (rows->n && rows->list[0].state && !strcmp(rows->list[0].state, "running"))
		columns[6].same = "all";
	return columns;
}

/* The only GPU of all rows; NULL when there are several. */
static const uint32_t *only_gpu(const struct group_rows *rows)
{
	for (size_t i = 1; i < rows->n; i++)
		if (rows->list[i].group->gpu_id != rows->list[0].group->gpu_id)
			return NULL;
	return rows->n ? &rows->list[0].group->gpu_id : NULL;
}

/* Of which waves of a group only some lanes are there: ` (part of 2 warps)`; "" when of none. */
static const char *part_words(struct rpc_arena *a, const struct rpc_group *g,
			      enum rpc_vendor vendor)
{
	const char *waves = vendor_word(vendor, g->waves == 1 ? "wave" : "waves");

	if (!g->has_parts || !g->parts)
		return "";
	if (g->parts >= g->waves)
		return rpc_arena_printf(a, " (part of %u %s)", g->waves, waves);
	return rpc_arena_printf(a, " (part of %u of %u %s)", g->parts, g->waves, waves);
}

/* Where a group is; what is special about its waves comes before who called. */
static const char *where(struct rpc_arena *a, const struct rpc_group *g,
			 const struct group_rows_view *view, bool arguments)
{
	const char *place = arguments ? place_where_arguments(a, g) : place_where(a, g);
	const char *parts = part_words(a, g, view->vendor);
	const char *calls = place ? strstr(place, " <- ") : NULL;

	if (!place || !parts || !*parts)
		return place;
	if (!calls)
		calls = place + strlen(place);
	return rpc_arena_printf(a, "%.*s%s%s", (int)(calls - place), place, parts, calls);
}

static void add_row(struct rpc_arena *a, const struct group_row *row, const char *gpu,
		    const struct group_rows_view *view, struct table *t)
{
	const struct rpc_group *g = row->group;
	bool faulting = stop_reason_is_faulting(g), verbose = view->verbose;
	enum color_style style = faulting ? COLOR_BAD : COLOR_PLAIN;

	table_u64_if(t, row->number, row->number);
	table_str(t, row->waves);
	table_str(t, lanes(a, g, verbose));
	table_str(t, gpu);
	table_str(t, code_text_kernel(a, g->has_kernel ? &g->kernel : NULL));
	table_str(t, where(a, g, view, faulting || view->arguments));
	table_style(t, style, row->state);
	if (verbose) {
		table_str(t, workgroups(a, g));
		table_str(t, group_rows_wave(a, &g->representative));
	}
}

int group_rows_table(struct rpc_arena *a, const struct group_rows *rows,
		     const struct group_rows_view *view, struct table *ret)
{
	const struct table_column *columns = make_columns(a, rows, view->vendor, view->verbose);
	const uint32_t *only = view->legend ? only_gpu(rows) : NULL;
	/* What is told once has room for the name. */
	const char *label = only ? gpu_names_label(view->gpus, a, *only) : NULL;

	table_init(ret, columns, view->verbose ? COLUMNS_VERBOSE : COLUMNS_DEFAULT);
	if (!columns)
		return rpc_arena_error(a);
	for (size_t i = 0; i < rows->n; i++)
		add_row(a, &rows->list[i],
			label ? label : gpu_names_text(view->gpus, a, rows->list[i].group->gpu_id),
			view, ret);
	return rpc_arena_error(a);
}
