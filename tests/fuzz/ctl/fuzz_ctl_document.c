/* SPDX-License-Identifier: MIT */
/* A document as it comes from a file, and everything that is done with one. */
#include <stdlib.h>

#include "base/out.h"
#include "ctl/document/compare.h"
#include "ctl/document/document.h"
#include "ctl/document/headline.h"
#include "ctl/document/merge.h"
#include "ctl/group_rows.h"
#include "fuzzlib.h"

static void compare(struct rpc_arena *arena, const struct rpc_gpu_snapshot_result *s)
{
	struct rpc_gpu_snapshot_result later = *s;
	auto_out struct out text;
	struct rpc_comparison c;

	out_init(&text, 0);
	later.time_us = s->time_us + COMPARE_INTERVAL_MIN_US;
	compare_mismatch(arena, s, &later);
	if (compare_snapshots(arena, s, &later, false, &c) < 0)
		return;
	if (c.n_groups > s->n_groups || !c.evidence[0])
		abort();
	for (size_t i = 0; i < c.n_groups; i++)
		if (c.groups[i].change != RPC_CHANGE_SAME)
			abort();
	rpc_comparison_encode(&text, &c);
}

/* What people see of one document, and of two: narrow, so that cells are broken and cut. */
static void show(struct rpc_arena *arena, const struct rpc_gpu_snapshot_result *s)
{
	static struct gpu_names gpus;
	struct rpc_gpu_snapshot_result later = *s;
	const struct group_rows_view view = { s->process.vendor, &gpus, true, true };
	struct headline_input in = { .snapshot = s };
	struct rpc_comparison c;
	struct headline h;
	struct group_rows rows;
	auto_table struct table t = { 0 };
	auto_out struct out text = { 0 };

	gpu_names_set(&gpus, s->devices, s->n_devices);
	if (headline_make(arena, &in, &gpus, &h) < 0)
		return;
	if (!h.n || h.n > HEADLINE_MAX)
		abort();
	later.time_us += 1000000;
	if (compare_snapshots(arena, s, &later, false, &c) < 0)
		return;
	in = (struct headline_input){ .snapshot = &later, .comparison = &c };
	if (headline_make(arena, &in, &gpus, &h) < 0 || group_rows_of_comparison(arena, &later, &c, NULL, &rows) < 0)
		return;
	if (!h.n || rows.n != c.n_groups)
		abort();
	if (group_rows_table(arena, &rows, &view, &t) == 0)
		table_print(&t, &text, &(struct table_form){ .width = 60, .legend = true });
}

static void merge(struct rpc_arena *arena, const struct document *d)
{
	struct rpc_gpu_snapshot_result merged, again;
	struct merge *first = merge_create(), *second = merge_create();
	struct document saved = { .name = "saved", .merged = true };
	struct agent_err err = { 0 };
	auto_out struct out text;

	out_init(&text, 0);
	if (!first || !second)
		abort();
	if (merge_add(first, d, &err) == 0 && merge_finish(first, &merged) == 0) {
		saved.snapshot = merged;
		if (merge_add(second, &saved, &err) < 0 || merge_finish(second, &again) < 0 ||
		    again.n_groups != merged.n_groups || again.wave_count != merged.wave_count)
			abort();
		merge_print(arena, &text, &again, &(struct table_form){ .legend = true, .color = true });
	}
	merge_destroy(first);
	merge_destroy(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_rpc_arena struct rpc_arena arena;
	struct agent_err err = { 0 };
	struct document d;

	rpc_arena_init(&arena, 0);
	if (document_parse("input", (const char *)data, size, &arena, &d, &err) == 0) {
		compare(&arena, &d.snapshot);
		show(&arena, &d.snapshot);
		merge(&arena, &d);
	} else if (!err.code || !err.message[0]) {
		abort();
	}
	return 0;
}
