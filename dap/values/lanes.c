/* SPDX-License-Identifier: MIT */
/*
 * Lanes of a wave, and which of them a thread shows.  Lanes of one wave may be at different places
 * (NVIDIA): the frames of a thread are those of its lane.  Callers are known only of the lane that
 * speaks for the wave: the first with an exception, or else the first that is active.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "dap/values/values.h"

/* As many as the agent takes. */
#define COLUMNS_MAX  16u
#define COLUMN_BYTES 4096u

const struct rpc_work_item *dap_work_item(const struct rpc_wave_registers *r, uint32_t lane)
{
	for (size_t i = 0; i < r->n_work_items; i++)
		if (r->work_items[i].lane == lane)
			return &r->work_items[i];
	return NULL;
}

/* The lane that speaks for the wave. */
static uint32_t speaker(const struct rpc_wave_registers *r)
{
	for (size_t i = 0; i < r->n_work_items; i++)
		if (r->work_items[i].exception)
			return r->work_items[i].lane;
	return r->wave.exec ? (uint32_t)__builtin_ctzll(r->wave.exec) : 0;
}

uint32_t dap_lane_shown(const struct dap_thread *t, const struct rpc_wave_registers *r)
{
	return t->lane == DAP_LANE_ANY ? speaker(r) : t->lane;
}

void dap_thread_show(struct dap_thread *t, const struct rpc_group *place, uint64_t pc, uint32_t lane)
{
	t->base = t->place = place;
	t->base_pc = t->pc = pc;
	t->base_lane = t->lane = lane;
	t->n_callers = place->n_callers;
}

/* ------------------------------------------------------------------ choosing ----------------- */

static const struct rpc_group *find_group(const struct dap_snapshot *s, const struct rpc_group *like,
					  uint64_t pc)
{
	for (size_t i = 0; i < s->doc.n_groups; i++) {
		const struct rpc_group *g = &s->doc.groups[i];

		if (g->gpu_id == like->gpu_id && g->pc == pc && g->has_kernel == like->has_kernel &&
		    (!g->has_kernel || g->kernel.address == like->kernel.address))
			return g;
	}
	return NULL;
}

/*
 * The place of a lane that is not where its wave is said to be.  It is the wave's group with other
 * frames, which live as long as the snapshot.
 */
static const struct rpc_group *locate(struct dap *d, const struct rpc_group *like, uint64_t pc,
				      struct agent_err *err)
{
	struct rpc_arena *a = &d->snap->arena;
	const struct rpc_code_locate_params p = { .session = d->session, .addresses = &pc,
						  .n_addresses = 1 };
	const struct rpc_group *known = find_group(d->snap, like, pc);
	struct rpc_code_locate_result result;
	struct rpc_group *g = rpc_arena_alloc(a, sizeof(*g));

	if (!g) {
		agent_err_no_memory(err, NULL);
		return NULL;
	}
	if (!known && rpc_client_code_locate(d->client, &p, a, &result, err) < 0)
		return NULL;
	*g = *like;
	g->pc = pc;
	g->n_frames = known ? known->n_frames : result.n_places ? result.places[0].n_frames : 0;
	g->frames = known ? known->frames : result.n_places ? result.places[0].frames : NULL;
	g->n_callers = known ? known->n_callers : 0;
	g->callers = known ? known->callers : NULL;
	return g;
}

static uint64_t pc_of(const struct rpc_wave_registers *r, uint32_t lane)
{
	const struct rpc_work_item *item = dap_work_item(r, lane);

	return item && item->has_pc ? item->pc : r->wave.pc;
}

int dap_lane_choose(struct dap *d, struct dap_thread *t, uint32_t lane, struct agent_err *err)
{
	struct dap_ref of = dap_ref_focus(d);
	const struct rpc_wave_registers *r;
	const struct rpc_work_item *item;
	const struct rpc_group *place = t->base;
	uint64_t pc = t->base_pc;
	bool speaks, is_base;

	of.thread = (uint32_t)(t - d->snap->threads);
	r = dap_registers_shared(d, &of, err);
	if (!r)
		return -EIO;
	if (lane >= r->wave.width)
		return dap_invalid(err, "lane: the wave has only %u lanes", r->wave.width);
	item = dap_work_item(r, lane);
	if (dap_check_thread(d, t, t->base_pc, pc_of(r, t->base_lane == DAP_LANE_ANY ? speaker(r) : t->base_lane),
			     err) < 0)
		return -EIO;
	/* Lanes that have no pc of their own have been called from the same places. */
	speaks = lane == speaker(r) || (item && !item->has_pc);
	is_base = lane == t->base_lane || (lane == speaker(r) && t->base_lane == DAP_LANE_ANY);
	if (!is_base && item && item->has_pc && item->pc != pc) {
		pc = item->pc;
		place = locate(d, t->base, pc, err);
		if (!place)
			return -EIO;
	}
	t->place = place;
	t->pc = pc;
	/* What was told of the lane that the agent chooses is told of that. */
	t->lane = is_base ? t->base_lane : lane;
	t->n_callers = is_base || speaks ? place->n_callers : 0;
	d->focus = of.thread;
	return 0;
}

int dap_lane_arg(struct dap_json args, bool *ret_found, uint32_t *ret, struct agent_err *err)
{
	struct dap_json v = dap_json_get(args, "lane");
	int64_t n;

	*ret_found = dap_json_has(v);
	if (!*ret_found)
		return 0;
	if (!dap_json_i64(v, &n) || n < 0 || n > 63)
		return dap_invalid(err, "lane: must be a number between 0 and 63");
	*ret = (uint32_t)n;
	return 0;
}

/* ------------------------------------------------------------------ gpuAgent/lanes ----------- */

static void put_triple(struct out *o, const char *name, const uint32_t *v, size_t n)
{
	if (n == 3)
		out_json_fmt(o, ",%s:[%u,%u,%u]", name, v[0], v[1], v[2]);
}

const struct rpc_wave_part *dap_lane_part(const struct rpc_wave_registers *r, uint32_t lane)
{
	for (size_t i = 0; i < r->wave.n_parts; i++)
		if (r->wave.parts[i].exec >> lane & 1)
			return &r->wave.parts[i];
	return NULL;
}

/* Append the values of a lane, in the order of the columns. */
static void put_values(struct dap *d, struct out *o, const struct rpc_wave_lanes_result *table, uint32_t lane)
{
	for (size_t i = 0; i < table->n_lanes; i++) {
		const struct rpc_wave_lane *l = &table->lanes[i];

		if (l->lane != lane)
			continue;
		out_json_fmt(o, ",'values':[");
		for (size_t k = 0; k < l->n_values; k++)
			out_json_fmt(o, ",%s", dap_lane_text(&d->arena, &l->values[k]));
		out_char(o, ']');
	}
}

static void put_columns(struct out *o, const struct rpc_wave_lanes_result *table)
{
	out_json_fmt(o, ",'columns':[");
	for (size_t i = 0; i < table->n_columns; i++)
		out_json_fmt(o, ",{'expression':%s,'type':%s}", table->columns[i].expression, table->columns[i].type);
	out_char(o, ']');
}

static void put_lane(struct dap *d, struct out *o, const struct rpc_wave_registers *r, uint32_t lane, uint32_t shown,
		     const struct rpc_wave_lanes_result *table)
{
	const struct rpc_work_item *w = dap_work_item(r, lane);
	const struct rpc_wave_part *part = dap_lane_part(r, lane);

	out_json_fmt(o, ",{'lane':%u,'active':%i,'shown':%i,'pc':%" PRIx64, lane,
		     (int)(r->wave.exec >> lane & 1), lane == shown, w && w->has_pc ? w->pc : r->wave.pc);
	if (part)
		out_json_fmt(o, ",'part':%u,'inPart':%i", (unsigned)(part - r->wave.parts),
			     (int)(shown < 64 && part->exec >> shown & 1));
	if (w)
		put_triple(o, "workItem", w->in_group, w->n_in_group);
	if (w)
		put_triple(o, "global", w->global, w->n_global);
	if (w && w->exception)
		out_json_fmt(o, ",'exception':%s", w->exception);
	put_values(d, o, table, lane);
	out_char(o, '}');
}

/* What the columns of a table are: expressions, in a frame. */
struct columns {
	const char *text[COLUMNS_MAX];
	size_t n;
	uint32_t more; /* Variables that there is no room for. */
};

static int read_columns(struct dap *d, struct dap_json list, struct columns *ret, struct agent_err *err)
{
	char *text;

	for (struct dap_json v; dap_json_has(v = dap_json_item(list, ret->n)); ret->n++) {
		if (ret->n == COLUMNS_MAX)
			return dap_invalid(err, "columns: at most %u are taken", COLUMNS_MAX);
		text = rpc_arena_alloc(&d->arena, COLUMN_BYTES);
		if (!text)
			return agent_err_no_memory(err, NULL);
		if (!dap_json_str(v, text, COLUMN_BYTES))
			return dap_invalid(err, "columns: must be texts of less than %u bytes", COLUMN_BYTES);
		ret->text[ret->n] = text;
	}
	return 0;
}

static int add_column(struct dap *d, const char *text, struct columns *ret, struct agent_err *err)
{
	if (ret->n == COLUMNS_MAX) {
		ret->more++;
		return 0;
	}
	ret->text[ret->n] = rpc_arena_strdup(&d->arena, text);
	return ret->text[ret->n++] ? 0 : agent_err_no_memory(err, NULL);
}

/* Where there are no names, there are registers. */
static int add_registers(struct dap *d, struct columns *ret, struct agent_err *err)
{
	static const char *const amd[] = { "$v0", "$v1", "$v2", "$v3" }, *const nvidia[] = { "$R0", "$R1", "$R2", "$R3" };
	const char *const *names = d->snap->doc.process.vendor == RPC_VENDOR_AMD ? amd : nvidia;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(amd); i++)
		r = add_column(d, names[i], ret, err);
	return r;
}

/* The arguments and locals of a frame. */
static int add_variables(struct dap *d, const struct dap_ref *frame, struct columns *ret, struct agent_err *err)
{
	struct agent_err why = { 0 };
	const struct rpc_wave_variables_result *known = dap_frame_variables(d, frame, false, &why);
	size_t before = ret->n;
	int r = 0;

	for (size_t i = 0; r == 0 && known && i < known->n_variables; i++) {
		const struct rpc_variable *v = &known->variables[i];

		if (v->expression && (v->scope == RPC_VARIABLE_SCOPE_ARGUMENT || v->scope == RPC_VARIABLE_SCOPE_LOCAL))
			r = add_column(d, v->expression, ret, err);
	}
	return r == 0 && ret->n == before && !ret->more ? add_registers(d, ret, err) : r;
}

/* Ask for the values of the columns, if there are any. */
static int ask_columns(struct dap *d, const struct dap_ref *frame, struct columns *columns,
		       struct rpc_wave_lanes_result *ret, struct agent_err *err)
{
	const struct dap_thread *t = &d->snap->threads[frame->thread];
	const struct rpc_wave_lanes_params p = {
		.session = d->session, .wave = t->wave, .has_columns = true, .columns = columns->text,
		.n_columns = columns->n, .has_lane = t->lane != DAP_LANE_ANY, .lane = t->lane,
		.has_frame = frame->index != 0, .frame = frame->index,
		.has_max_stop_ms = d->max_stop_ms, .max_stop_ms = d->max_stop_ms,
	};

	return columns->n ? rpc_client_wave_lanes(d->client, &p, &d->arena, ret, err) : 0;
}

/* Append the table; its object stays open. */
static void put_table(struct dap *d, struct out *o, uint32_t thread, const struct rpc_wave_name *wave,
		      const struct rpc_wave_registers *r, uint32_t shown, const struct rpc_wave_lanes_result *table)
{
	out_json_fmt(o, "{'threadId':%u,'wave':%s,'exec':%" PRIx64, thread + 1, dap_wave_text(&d->arena, wave),
		     r->wave.exec);
	if (shown != DAP_LANE_ANY)
		out_json_fmt(o, ",'lane':%u", shown);
	if (table->n_columns)
		put_columns(o, table);
	out_json_fmt(o, ",'lanes':[");
	for (uint32_t i = 0; i < r->wave.width && i < 64; i++)
		put_lane(d, o, r, i, shown, table);
	out_char(o, ']');
}

static bool is_same_wave(const struct rpc_wave_name *a, const struct rpc_wave_name *b)
{
	return a->queue_id == b->queue_id && a->unit == b->unit && a->index == b->index;
}

/* Of a wave that is named.  What the editor shows stays as it is. */
static int named_wave(struct dap *d, const struct dap_thread *t, struct dap_json name, struct dap_answer *ret)
{
	static const struct rpc_wave_lanes_result none;
	struct rpc_wave_registers_result result;
	struct rpc_wave_name wave;
	uint32_t workgroup[3];
	int r = dap_wave_arg(name, workgroup, &wave, &ret->err);

	if (r == 0)
		r = dap_registers_of(d, &wave, &result, &ret->err);
	if (r < 0)
		return r;
	put_table(d, &ret->body, (uint32_t)(t - d->snap->threads), &wave, &result.registers,
		  is_same_wave(&wave, &t->wave) ? dap_lane_shown(t, &result.registers) : DAP_LANE_ANY, &none);
	out_char(&ret->body, '}');
	return 0;
}

/* The frame in which the names of columns are: that of frameId, or else the innermost one of a thread. */
static int lanes_frame(struct dap *d, struct dap_json args, struct dap_ref *ret, struct agent_err *err)
{
	struct dap_thread *t;

	if (dap_json_has(dap_json_get(args, "frameId"))) {
		if (dap_frame_arg(d, args, ret, err) < 0)
			return -EINVAL;
		return ret->snap == d->snap ? 0 : dap_invalid(err, "frameId: this frame is out of date");
	}
	t = dap_thread_arg(d, args, err);
	if (!t)
		return -EINVAL;
	*ret = dap_ref_focus(d);
	ret->thread = (uint32_t)(t - d->snap->threads);
	ret->lane = t->lane;
	return 0;
}

int dap_gpu_lanes(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	struct dap_json wave = dap_json_get(q->args, "wave");
	struct rpc_wave_lanes_result table = { 0 };
	struct columns columns = { 0 };
	const struct rpc_wave_registers *r;
	struct dap_thread *t;
	struct dap_ref frame;
	uint32_t lane = 0;
	bool chosen;

	if (lanes_frame(d, q->args, &frame, &ret->err) < 0 || dap_lane_arg(q->args, &chosen, &lane, &ret->err) < 0)
		return -EINVAL;
	t = &d->snap->threads[frame.thread];
	if (dap_json_has(wave) && !chosen)
		return named_wave(d, t, wave, ret);
	if (chosen && dap_lane_choose(d, t, lane, &ret->err) < 0)
		return -EIO;
	frame.lane = t->lane;
	if (read_columns(d, dap_json_get(q->args, "columns"), &columns, &ret->err) < 0 ||
	    (dap_json_is_true(dap_json_get(q->args, "variables")) &&
	     add_variables(d, &frame, &columns, &ret->err) < 0) ||
	    ask_columns(d, &frame, &columns, &table, &ret->err) < 0)
		return -EIO;
	r = dap_registers_shared(d, &frame, &ret->err);
	if (!r)
		return -EIO;
	put_table(d, &ret->body, frame.thread, &t->wave, r, dap_lane_shown(t, r), &table);
	if (columns.more)
		out_json_fmt(&ret->body, ",'more':%u", columns.more);
	out_char(&ret->body, '}');
	if (chosen)
		dap_invalidated(d);
	return 0;
}
