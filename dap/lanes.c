/* SPDX-License-Identifier: MIT */
/*
 * Lanes of a wave, and which of them a thread shows.  Lanes of one wave may be at different places
 * (NVIDIA): the frames of a thread are those of its lane.  Callers are known only of the lane that
 * speaks for the wave: the first with an exception, or else the first that is active.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "dap/values.h"

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
	speaks = lane == speaker(r);
	is_base = lane == t->base_lane || (speaks && t->base_lane == DAP_LANE_ANY);
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

static void put_lane(struct out *o, const struct rpc_wave_registers *r, uint32_t lane, bool shown)
{
	const struct rpc_work_item *w = dap_work_item(r, lane);

	out_json_fmt(o, ",{'lane':%u,'active':%i,'shown':%i,'pc':%" PRIx64, lane,
		     (int)(r->wave.exec >> lane & 1), shown, w && w->has_pc ? w->pc : r->wave.pc);
	if (w)
		put_triple(o, "workItem", w->in_group, w->n_in_group);
	if (w)
		put_triple(o, "global", w->global, w->n_global);
	if (w && w->exception)
		out_json_fmt(o, ",'exception':%s", w->exception);
	out_char(o, '}');
}

int dap_gpu_lanes(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	struct dap_thread *t = dap_thread_arg(d, q->args, &ret->err);
	struct dap_ref of = dap_ref_focus(d);
	const struct rpc_wave_registers *r;
	uint32_t lane = 0;
	bool chosen;

	if (!t || dap_lane_arg(q->args, &chosen, &lane, &ret->err) < 0)
		return -EINVAL;
	if (chosen && dap_lane_choose(d, t, lane, &ret->err) < 0)
		return -EIO;
	of.thread = (uint32_t)(t - d->snap->threads);
	r = dap_registers_shared(d, &of, &ret->err);
	if (!r)
		return -EIO;
	out_json_fmt(&ret->body, "{'threadId':%u,'wave':%s,'lane':%u,'lanes':[", of.thread + 1,
		     dap_wave_text(&d->arena, &t->wave), dap_lane_shown(t, r));
	for (uint32_t i = 0; i < r->wave.width && i < 64; i++)
		put_lane(&ret->body, r, i, i == dap_lane_shown(t, r));
	out_str(&ret->body, "]}");
	if (chosen)
		dap_invalidated(d);
	return 0;
}
