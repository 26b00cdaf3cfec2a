/* SPDX-License-Identifier: MIT */
#include "agentd/worker/snapshot/wave_convert.h"

#include "agentd/worker/snapshot/locations.h"

/* Lists of reasons; waves with the same set of reasons share one list. */
struct reasons {
	struct rpc_arena *arena;
	struct {
		enum rpc_stop_reason *list;
		size_t n;
	} *by_mask;
};

static bool reasons_init(struct reasons *r, struct rpc_arena *a)
{
	r->arena = a;
	r->by_mask = rpc_arena_array(a, UINT32_C(1) << WAVE_REASONS_COUNT, sizeof(*r->by_mask));
	return r->by_mask;
}

static enum rpc_stop_reason *reasons_get(struct reasons *r, uint32_t mask, size_t *ret_n)
{
	mask &= (UINT32_C(1) << WAVE_REASONS_COUNT) - 1;
	if (mask && !r->by_mask[mask].list) {
		enum rpc_stop_reason *list = rpc_arena_array(r->arena, WAVE_REASONS_COUNT,
							     sizeof(*list));
		size_t n = 0;

		for (uint32_t bit = 0; list && bit < WAVE_REASONS_COUNT; bit++)
			if (mask >> bit & 1)
				list[n++] = (enum rpc_stop_reason)bit;
		r->by_mask[mask].list = list;
		r->by_mask[mask].n = n;
	}
	*ret_n = r->by_mask[mask].n;
	return r->by_mask[mask].list;
}

struct rpc_wave_ref wave_ref(struct wave *w)
{
	return (struct rpc_wave_ref){
		.queue_id = w->queue_id,
		.unit = w->unit,
		.index = w->index,
		.has_dispatch = w->has_dispatch,
		.dispatch = w->dispatch,
		.n_workgroup = w->has_workgroup ? 3 : 0,
		.workgroup = w->workgroup,
		.has_wave_in_group = w->has_wave_in_group,
		.wave_in_group = w->wave_in_group,
	};
}

void waves_convert_parts(struct rpc_arena *a, const struct wave *w, bool has_group,
			 struct rpc_wave *to)
{
	uint32_t n = wave_n_parts(w);

	if (!n)
		return;
	to->has_parts = true;
	to->parts = rpc_arena_array(a, n, sizeof(*to->parts));
	for (; to->parts && to->n_parts < n; to->n_parts++) {
		const struct wave *part = &w->parts->list[to->n_parts];

		to->parts[to->n_parts] = (struct rpc_wave_part){
			.pc = part->pc,
			.exec = part->exec,
			.lanes = part->lanes,
			.active = !part->waits,
			.has_group = has_group,
			.group = has_group ? part->group : 0,
		};
	}
}

struct rpc_wave *waves_convert(struct rpc_arena *a, struct wave *waves, const uint32_t *group_of,
			       size_t n)
{
	struct rpc_wave *result = rpc_arena_array(a, n, sizeof(*result));
	struct reasons reasons;

	if (!result || !reasons_init(&reasons, a))
		return NULL;
	for (size_t i = 0; i < n; i++) {
		struct wave *w = &waves[i];
		struct rpc_wave *to = &result[i];

		*to = (struct rpc_wave){
			.ref = wave_ref(w),
			.gpu_id = w->gpu_id,
			.pc = w->pc,
			.exec = w->exec,
			.lanes = w->lanes,
			.width = w->width,
			.state = (enum rpc_wave_state)w->state,
			.exception = w->exception,
			.trap_id = w->trap_id,
			.has_group = group_of,
			.group = group_of ? group_of[i] : 0,
		};
		to->reasons = reasons_get(&reasons, w->reasons, &to->n_reasons);
		waves_convert_parts(a, w, group_of, to);
	}
	return rpc_arena_error(a) < 0 ? NULL : result;
}

struct rpc_group *waves_convert_groups(struct rpc_arena *a, struct wave *waves,
				       struct group *groups, size_t n, const struct locations *p)
{
	struct rpc_group *result = rpc_arena_array(a, n, sizeof(*result));
	struct reasons reasons;

	if (!result || !reasons_init(&reasons, a))
		return NULL;
	for (size_t i = 0; i < n; i++) {
		struct group *g = &groups[i];
		const struct location_kernel *kernel = &p->kernels[g->kernel];
		const struct wave_stack *stack = g->speaks ? waves[g->representative].stack : NULL;
		struct rpc_group *to = &result[i];

		*to = (struct rpc_group){
			.gpu_id = g->gpu_id,
			.has_kernel = kernel->address,
			.kernel = { .address = kernel->address, .name = kernel->name, .raw = kernel->raw },
			.frames = p->places[g->place].frames,
			.n_frames = p->places[g->place].n_frames,
			.has_callers = stack,
			.callers = stack ? stack->callers : NULL,
			.n_callers = stack ? stack->n : 0,
			.pc = g->pc,
			.pcs = g->sites,
			.state = (enum rpc_wave_state)g->state,
			.exception = g->exception,
			.waves = g->waves,
			.lanes_min = g->lanes_min,
			.lanes_median = g->lanes_median,
			.lanes_max = g->lanes_max,
			.has_workgroups = true,
			.workgroups = g->workgroups,
			.first_workgroup = g->first_workgroup,
			.n_first_workgroup = g->has_range ? 3 : 0,
			.last_workgroup = g->last_workgroup,
			.n_last_workgroup = g->has_range ? 3 : 0,
			.representative = wave_ref(&waves[g->representative]),
			.has_lane = g->has_lane,
			.lane = g->lane,
			.has_parts = g->parts,
			.parts = g->parts,
		};
		to->reasons = reasons_get(&reasons, g->reasons, &to->n_reasons);
	}
	return result;
}
