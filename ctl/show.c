/* SPDX-License-Identifier: MIT */
/*
 * Tables and texts that several verbs print.  Everything that a target process may have chosen goes
 * through table cells or text_escape().
 */
#include <inttypes.h>
#include <pwd.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/ctl.h"
#include "ctl/document/code_text.h"
#include "ctl/document/place.h"
#include "ctl/group_rows.h"
#include "ctl/terminal/text.h"
#include "protocol/stop_reason.h"

/* Most queues of a suspension that a cell names. */
#define QUEUES_SHOWN 8
/* Most parts of a wave that are listed below it, unless all are wanted. */
#define PARTS_SHOWN 4

const char *show_name(struct rpc_arena *a, const struct rpc_enum *e, int64_t value)
{
	const char *name = rpc_enum_name(e, value);

	return name ? name : rpc_arena_printf(a, "%" PRId64, value);
}

const char *show_user(struct rpc_arena *a, uint32_t uid)
{
	const struct passwd *pw = getpwuid(uid);

	if (pw)
		return rpc_arena_strdup(a, pw->pw_name);
	return rpc_arena_printf(a, "%u", uid);
}

const char *show_exceptions(struct rpc_arena *a, const enum rpc_exception *list, size_t n)
{
	return n ? rpc_enum_join(a, &rpc_exception_enum, list, n) : NULL;
}

/* Copy columns, with the titles that users of the vendor read. */
static void translate(const struct ctl *c, const struct table_column *from, size_t n,
		      struct table_column *to)
{
	memcpy(to, from, n * sizeof(*to));
	for (size_t i = 0; i < n; i++)
		to[i].title = vendor_word(c->vendor, from[i].title);
}

int show_devices(struct ctl *c, const struct rpc_device *devices, size_t n)
{
	static const struct table_column neutral[] = {
		{ "GPU", true },
		{ "NAME", .importance = 6, .min = 12 },
		{ "ARCH" },
		{ "MEMORY", true, true, 5 },
		{ "UNITS", true, .importance = 3 },
		{ "WAVES", true, .importance = 4 },
		{ "DEBUG" },
		{ "EXCEPTIONS", .optional = true, .importance = 7, .min = 12, .wrap = true },
		{ "PCI", .importance = 3 },
		{ "RENDER", .optional = true, .importance = 1 },
		{ "ID", true, true, 2 },
		{ "FIRMWARE", true, true, 1 },
		{ "WATCH", true, true, 1 },
	};
	struct table_column columns[ARRAY_SIZE(neutral)];
	auto_table struct table t;

	/* This order is what gives the GPUs their numbers. */
	gpu_names_set(&c->gpus, devices, n);
	translate(c, neutral, ARRAY_SIZE(neutral), columns);
	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < n; i++) {
		const struct rpc_device *d = &devices[i];
		const char *exceptions = show_exceptions(&c->arena, d->exceptions, d->n_exceptions);

		table_str(&t, gpu_names_text(&c->gpus, &c->arena, d->gpu_id));
		table_str(&t, d->name);
		table_str(&t, d->arch);
		table_size_if(&t, d->has_memory_bytes, d->memory_bytes);
		table_u64(&t, d->units);
		table_u64(&t, d->max_waves);
		table_style(&t, d->debuggable ? COLOR_GOOD : COLOR_BAD,
			    d->debuggable ? "yes" : "no");
		table_style(&t, exceptions ? COLOR_BAD : COLOR_PLAIN, exceptions);
		table_str(&t, d->pci);
		table_str(&t, d->render_node);
		/* NVIDIA's drivers number devices as we do. */
		table_u64_if(&t, d->gpu_id != i, d->gpu_id);
		table_u64_if(&t, d->has_fw_version, d->fw_version);
		table_u64_if(&t, d->watchpoints, d->watchpoints);
	}
	return ctl_print_table(c, &t);
}

/* A workgroup and the wave's number in it, as `X,Y,Z/N`; NULL when the workgroup is not known. */
static const char *show_workgroup(struct rpc_arena *a, const struct rpc_wave_ref *r)
{
	const uint32_t *g = r->workgroup;

	if (r->n_workgroup != 3)
		return NULL;
	if (!r->has_wave_in_group)
		return rpc_arena_printf(a, "%u,%u,%u", g[0], g[1], g[2]);
	return rpc_arena_printf(a, "%u,%u,%u/%u", g[0], g[1], g[2], r->wave_in_group);
}

/* The group that a wave of a snapshot belongs to; NULL where that is not told. */
static const struct rpc_group *group_of(const struct rpc_wave *w, const struct rpc_group *groups,
					size_t n_groups)
{
	return w->has_group && w->group < n_groups ? &groups[w->group] : NULL;
}

/* Where a wave is: its own line or address, and the function, without what led there. */
static const char *wave_place(struct rpc_arena *a, const struct rpc_wave *w, const struct rpc_group *g)
{
	struct rpc_group own;

	if (!g)
		return NULL;
	own = *g;
	own.pc = w->pc;
	own.n_frames = g->n_frames > 0;
	own.n_callers = 0;
	return place_where(a, &own);
}

/*
 * What the GPU of every wave is called in a note below the table; NULL when they are on several, or
 * notes are not printed.
 */
static const char *only_gpu(struct ctl *c, const struct rpc_wave *waves, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (waves[i].gpu_id != waves[0].gpu_id)
			return NULL;
	return n && c->output.legend ? gpu_names_label(&c->gpus, &c->arena, waves[0].gpu_id) : NULL;
}

static void wave_row(struct ctl *c, struct table *t, const struct rpc_wave *w,
		     const struct rpc_group *g, const char *gpu)
{
	const char *reason = stop_reason_text(&c->arena, w->exception, w->reasons, w->n_reasons);
	bool faulting = g && stop_reason_is_faulting(g);
	struct rpc_arena *a = &c->arena;

	table_str(t, group_rows_wave(a, &w->ref));
	table_str(t, gpu ? gpu : gpu_names_text(&c->gpus, a, w->gpu_id));
	table_str(t, show_name(a, &rpc_wave_state_enum, w->state));
	table_style(t, faulting ? COLOR_BAD : COLOR_PLAIN, place_words(a, reason));
	table_str(t, code_text_kernel(a, g && g->has_kernel ? &g->kernel : NULL));
	table_str(t, wave_place(a, w, g));
	table_str(t, rpc_arena_printf(a, "%u/%u", w->lanes, w->width));
	table_str(t, show_workgroup(a, &w->ref));
	table_u64_if(t, w->ref.has_dispatch, w->ref.dispatch);
	table_hex(t, w->pc);
	table_hex(t, w->exec);
	table_u64_if(t, w->trap_id, w->trap_id);
}

/* Lanes as ranges: `0-3,8`. */
static const char *lane_ranges(struct rpc_arena *a, uint64_t mask)
{
	auto_out struct out o = { 0 };

	for (unsigned i = 0, end; i < 64; i = end) {
		end = i + 1;
		if (!(mask >> i & 1))
			continue;
		while (end < 64 && mask >> end & 1)
			end++;
		out_fmt(&o, "%s%u", o.size ? "," : "", i);
		if (end > i + 1)
			out_fmt(&o, "-%u", end - 1);
	}
	return out_error(&o) ? NULL : rpc_arena_strdup(a, o.data ? o.data : "");
}

/* A part of a wave: which lanes, what they do, and where they are. */
static void part_row(struct ctl *c, struct table *t, const struct rpc_wave *w,
		     const struct rpc_wave_part *p, const struct rpc_group *g, const char *gpu)
{
	const char *reason = g ? stop_reason_text(&c->arena, g->exception, g->reasons, g->n_reasons) : NULL;
	const struct rpc_wave at = { .pc = p->pc };
	struct rpc_arena *a = &c->arena;

	table_str(t, rpc_arena_printf(a, "  %s", lane_ranges(a, p->exec)));
	table_str(t, gpu ? gpu : gpu_names_text(&c->gpus, a, w->gpu_id));
	table_str(t, p->active ? "active" : "waiting");
	table_style(t, g && stop_reason_is_faulting(g) ? COLOR_BAD : COLOR_PLAIN, place_words(a, reason));
	table_str(t, code_text_kernel(a, g && g->has_kernel ? &g->kernel : NULL));
	table_str(t, wave_place(a, &at, g));
	table_str(t, rpc_arena_printf(a, "%u/%u", p->lanes, w->width));
	table_str(t, NULL);
	table_str(t, NULL);
	table_hex(t, p->pc);
	table_hex(t, p->exec);
	table_str(t, NULL);
}

/* Add the parts of a wave below it, some of them unless all are wanted. */
static void part_rows(struct ctl *c, struct table *t, const struct rpc_wave *w,
		      const struct rpc_group *groups, size_t n_groups, const char *gpu)
{
	size_t n = w->n_parts;

	if (!c->verbose && n > PARTS_SHOWN + 1)
		n = PARTS_SHOWN;
	for (size_t i = 0; i < n; i++) {
		const struct rpc_wave_part *p = &w->parts[i];

		part_row(c, t, w, p,
			 p->has_group && p->group < n_groups ? &groups[p->group] : NULL, gpu);
	}
	if (n == w->n_parts)
		return;
	table_str(t, rpc_arena_printf(&c->arena, "  %zu more (-v)", w->n_parts - n));
	table_str(t, gpu ? gpu : gpu_names_text(&c->gpus, &c->arena, w->gpu_id));
	for (size_t i = 2; i < t->n_columns; i++)
		table_str(t, NULL);
}

/* Append the table of waves; without groups, what they are in is not told. */
static int wave_table(struct ctl *c, const struct rpc_wave *waves, size_t n,
		      const struct rpc_group *groups, size_t n_groups)
{
	static const struct table_column neutral[] = {
		{ "WAVE" },
		{ "GPU", true, .same = "on" },
		{ "STATE" },
		{ "REASON", .optional = true, .importance = 9, .min = 10 },
		{ "KERNEL", .optional = true, .importance = 6, .min = 12 },
		{ "WHERE", .optional = true, .importance = 7, .min = 14 },
		{ "LANES", .importance = 5 },
		{ "WORKGROUP", .optional = true, .importance = 4 },
		{ "DISPATCH", true, true, 3 },
		{ "PC", .importance = 2 },
		{ "EXEC", .importance = 1 },
		{ "TRAP", true, true, 1 },
	};
	struct table_column columns[ARRAY_SIZE(neutral)];
	const char *gpu = only_gpu(c, waves, n);
	auto_table struct table t;

	translate(c, neutral, ARRAY_SIZE(neutral), columns);
	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < n; i++) {
		wave_row(c, &t, &waves[i], group_of(&waves[i], groups, n_groups), gpu);
		part_rows(c, &t, &waves[i], groups, n_groups, gpu);
	}
	return ctl_print_table(c, &t);
}

int show_waves(struct ctl *c, const struct rpc_wave *waves, size_t n)
{
	return wave_table(c, waves, n, NULL, 0);
}

int show_snapshot_waves(struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	return wave_table(c, s->waves, s->n_waves, s->groups, s->n_groups);
}

/* Add the cells READ, WRITE and WAITING. */
static void queue_indices(struct table *t, const struct rpc_queue *q)
{
	table_u64_if(t, q->has_read_index, q->read_index);
	table_u64_if(t, q->has_write_index, q->write_index);
	/* The two indices were read one after the other: a busy queue may seem to run ahead. */
	table_u64_if(t, q->has_read_index && q->has_write_index,
		     q->write_index > q->read_index ? q->write_index - q->read_index : 0);
}

const char *show_queue_type(struct rpc_arena *a, const struct rpc_queue *q)
{
	if (q->type == RPC_QUEUE_TYPE_CONTEXT)
		return NULL;
	/* ROCm's queues are AQL's, and need no more than that word. */
	if (q->type == RPC_QUEUE_TYPE_COMPUTE_AQL)
		return "compute";
	if (q->type == RPC_QUEUE_TYPE_COMPUTE)
		return "compute PM4";
	return place_words(a, show_name(a, &rpc_queue_type_enum, q->type));
}

int show_queues(struct ctl *c, const struct rpc_queue *queues, size_t n)
{
	static const struct table_column neutral[] = {
		{ "QUEUE", true },
		{ "GPU", true },
		{ "TYPE", .optional = true },
		{ "STATE" },
		{ "EXCEPTIONS", .optional = true, .importance = 5, .min = 12, .wrap = true },
		{ "READ", true, true, 3 },
		{ "WRITE", true, true, 3 },
		{ "WAITING", true, true, 4 },
		{ "ADDRESS", .importance = 1 },
		{ "SIZE", true, true, 2 },
	};
	struct table_column columns[ARRAY_SIZE(neutral)];
	auto_table struct table t;

	translate(c, neutral, ARRAY_SIZE(neutral), columns);
	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < n; i++) {
		const struct rpc_queue *q = &queues[i];
		const char *exceptions = show_exceptions(&c->arena, q->exceptions, q->n_exceptions);

		table_u64(&t, q->queue_id);
		table_str(&t, gpu_names_text(&c->gpus, &c->arena, q->gpu_id));
		table_str(&t, show_queue_type(&c->arena, q));
		table_style(&t, q->suspended ? COLOR_WARN : COLOR_PLAIN,
			    q->suspended ? "suspended" : "running");
		table_style(&t, exceptions ? COLOR_BAD : COLOR_PLAIN, exceptions);
		queue_indices(&t, q);
		/* An AMD queue is known by its ring, an NVIDIA one by its context. */
		table_hex_if(&t, q->has_ring_base || q->has_context,
			     q->has_ring_base ? q->ring_base : q->context);
		table_size_if(&t, q->has_ring_bytes, q->ring_bytes);
	}
	return ctl_print_table(c, &t);
}

int show_queue_results(struct ctl *c, const struct rpc_queue_result *results, size_t n)
{
	static const struct table_column neutral[] = { { "QUEUE", true }, { "VERDICT" } };
	struct table_column columns[ARRAY_SIZE(neutral)];
	auto_table struct table t;

	translate(c, neutral, ARRAY_SIZE(neutral), columns);
	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < n; i++) {
		bool done = results[i].verdict == RPC_QUEUE_VERDICT_SUSPENDED ||
			    results[i].verdict == RPC_QUEUE_VERDICT_RESUMED;

		table_u64(&t, results[i].queue_id);
		table_style(&t, done ? COLOR_PLAIN : COLOR_WARN,
			    show_name(&c->arena, &rpc_queue_verdict_enum, results[i].verdict));
	}
	return ctl_print_table(c, &t);
}

int show_watchpoints(struct ctl *c, const struct rpc_watchpoint *watchpoints, size_t n)
{
	static const struct table_column columns[] = {
		{ "GPU", true },  { "ID", true },    { "ADDRESS", false },
		{ "SIZE", true }, { "MODE", false },
	};
	auto_table struct table t;

	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < n; i++) {
		table_str(&t, gpu_names_text(&c->gpus, &c->arena, watchpoints[i].gpu_id));
		table_u64(&t, watchpoints[i].id);
		table_hex(&t, watchpoints[i].address);
		table_size(&t, watchpoints[i].size);
		table_str(&t, show_name(&c->arena, &rpc_watch_mode_enum, watchpoints[i].mode));
	}
	return ctl_print_table(c, &t);
}

static const char *show_ms(struct rpc_arena *a, uint64_t ms)
{
	auto_out struct out o = { 0 };

	text_duration(&o, ms);
	return o.data ? rpc_arena_strdup(a, o.data) : NULL;
}

const char *show_suspension(struct rpc_arena *a, enum rpc_vendor vendor, const struct rpc_suspension *s)
{
	auto_out struct out o = { 0 };

	out_fmt(&o, "%s ", vendor_word(vendor, s->n_queues == 1 ? "queue" : "queues"));
	for (size_t i = 0; i < s->n_queues && i < QUEUES_SHOWN; i++)
		out_fmt(&o, "%s%u", i ? "," : "", s->queues[i]);
	if (s->n_queues > QUEUES_SHOWN)
		out_fmt(&o, " and %zu more", s->n_queues - QUEUES_SHOWN);
	out_str(&o, ", ");
	text_duration(&o, s->lease_left_ms);
	out_str(&o, " left");
	return o.data ? rpc_arena_strdup(a, o.data) : NULL;
}

int show_sessions(struct ctl *c, const struct rpc_session_info *sessions, size_t n)
{
	static const struct table_column columns[] = {
		{ "SESSION" },
		{ "PID", true },
		{ "USER", .importance = 3, .min = 8 },
		{ "COMMAND", .importance = 7, .min = 10 },
		{ "VENDOR", .importance = 2 },
		{ "WRITER", .optional = true, .importance = 4, .min = 8 },
		{ "SUSPENDED", .optional = true, .importance = 3, .min = 16, .wrap = true },
		{ "RULE", .optional = true, .importance = 6, .min = 8 },
		{ "READERS", true, .importance = 1 },
		{ "AGE", true, .importance = 2 },
		{ "TOTAL", true, true, 1 },
	};
	auto_table struct table t;

	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < n; i++) {
		const struct rpc_session_info *s = &sessions[i];
		const char *writer = NULL;

		if (s->has_writer_pid)
			writer = rpc_arena_printf(
				&c->arena, "%u (%s)", s->writer_pid,
				s->has_writer_uid ? show_user(&c->arena, s->writer_uid) : "?");
		table_str(&t, s->session);
		table_u64(&t, s->pid);
		table_str(&t, show_user(&c->arena, s->uid));
		table_str(&t, s->comm);
		table_str(&t, s->has_vendor ? show_name(&c->arena, &rpc_vendor_enum, s->vendor) : NULL);
		table_str(&t, writer);
		table_style(&t, COLOR_WARN,
			    s->has_suspension ? show_suspension(&c->arena, s->vendor, &s->suspension) : NULL);
		table_str(&t, s->rule);
		table_u64(&t, s->readers);
		table_str(&t, rpc_arena_printf(&c->arena, "%" PRIu64 "s", s->age_ms / 1000));
		table_str(&t, s->suspends ? show_ms(&c->arena, s->suspended_us / 1000) : NULL);
	}
	return ctl_print_table(c, &t);
}
