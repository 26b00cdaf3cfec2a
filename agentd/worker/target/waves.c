/* SPDX-License-Identifier: MIT */
#include "agentd/worker/target/waves.h"

#include <errno.h>

#include "agentd/worker/snapshot/locations.h"

/* Lists of reasons, made once for each set of them. */
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

static struct rpc_wave_ref ref_of(struct wave *w)
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
			.ref = ref_of(w),
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
	}
	return result;
}

struct rpc_group *waves_convert_groups(struct rpc_arena *a, struct wave *waves,
				       struct group *groups, size_t n, const struct places *p)
{
	struct rpc_group *result = rpc_arena_array(a, n, sizeof(*result));
	struct reasons reasons;

	if (!result || !reasons_init(&reasons, a))
		return NULL;
	for (size_t i = 0; i < n; i++) {
		struct group *g = &groups[i];
		const struct place_kernel *kernel = &p->kernels[g->kernel];
		const struct wave_stack *stack = waves[g->representative].stack;
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
			.representative = ref_of(&waves[g->representative]),
		};
		to->reasons = reasons_get(&reasons, g->reasons, &to->n_reasons);
	}
	return result;
}

int wave_name_check(const struct rpc_wave_name *n, const char *param, struct agent_err *err)
{
	if (n->has_index || wave_name_lasts(n))
		return 0;
	return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL,
			     "%s: needs index, or dispatch, workgroup and wave_in_group", param);
}

bool wave_is_named(const struct wave *w, const struct rpc_wave_name *n)
{
	if (w->queue_id != n->queue_id)
		return false;
	if (!wave_name_lasts(n) && (w->unit != n->unit || w->index != n->index))
		return false;
	if (n->has_dispatch && (!w->has_dispatch || w->dispatch != n->dispatch))
		return false;
	if (n->n_workgroup && !w->has_workgroup)
		return false;
	for (size_t i = 0; i < n->n_workgroup; i++)
		if (w->workgroup[i] != n->workgroup[i])
			return false;
	return !n->has_wave_in_group ||
	       (w->has_wave_in_group && w->wave_in_group == n->wave_in_group);
}

static bool is_like(const struct wave *a, const struct wave *b)
{
	return a->pc == b->pc && a->gpu_id == b->gpu_id && a->state == b->state &&
	       a->reasons == b->reasons && a->exception == b->exception;
}

size_t waves_choose_examples(struct wave *waves, size_t n, struct wave *ret[WAVES_EXAMPLES_MAX])
{
	size_t chosen = 0;

	for (int faults = 1; faults >= 0; faults--)
		for (size_t i = 0; i < n && chosen < WAVES_EXAMPLES_MAX; i++) {
			size_t k = 0;

			if ((waves[i].reasons != 0) != faults)
				continue;
			while (k < chosen && !is_like(ret[k], &waves[i]))
				k++;
			if (k == chosen)
				ret[chosen++] = &waves[i];
		}
	return chosen;
}
