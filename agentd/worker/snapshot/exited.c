/* SPDX-License-Identifier: MIT */
#include "agentd/worker/snapshot/exited.h"

#include <errno.h>

#include "agentd/worker/snapshot/locations.h"
#include "agentd/worker/snapshot/wave_convert.h"
#include "base/cleanup.h"

static void fill(struct rpc_exited_exception *to, const struct rpc_group *g)
{
	*to = (struct rpc_exited_exception){
		.gpu_id = g->gpu_id,
		.unit = g->representative.unit,
		.units = g->waves,
		.reasons = g->reasons,
		.n_reasons = g->n_reasons,
		.exception = g->exception,
		.has_pc = g->pc,
		.pc = g->pc,
		.has_kernel = g->has_kernel,
		.kernel = g->kernel,
		.frames = g->frames,
		.n_frames = g->n_frames,
	};
}

static int convert(struct rpc_arena *a, struct wave *exited, size_t n,
		   const struct locations *places, struct rpc_exited_exception **ret, size_t *ret_n)
{
	auto_free struct group *groups = NULL;
	auto_free uint32_t *group_of = NULL;
	struct rpc_exited_exception *list;
	struct rpc_group *told;
	size_t n_groups;
	int r = group_waves(exited, n, &groups, &n_groups, &group_of);

	if (r < 0)
		return r;
	told = waves_convert_groups(a, exited, groups, n_groups, places);
	list = told ? rpc_arena_array(a, n_groups, sizeof(*list)) : NULL;
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n_groups; i++)
		fill(&list[i], &told[i]);
	*ret = list;
	*ret_n = n_groups;
	return 0;
}

int exited_convert(struct code_set *code, struct wave *exited, size_t n,
		   struct rpc_exited_exception **ret, size_t *ret_n, bool *ret_unknown)
{
	struct locations places = { 0 };
	bool without_pc = false;
	int r;

	*ret_n = 0;
	*ret_unknown = false;
	if (!n)
		return 0;
	for (size_t i = 0; i < n; i++) {
		exited[i].leader = (uint32_t)i;
		without_pc |= !exited[i].pc;
	}
	r = locations_find(code, exited, n, &places);
	if (r == 0)
		r = convert(code->arena, exited, n, &places, ret, ret_n);
	/* Exceptions without a pc are one unknown site, at address 0, and do not count. */
	*ret_unknown = places.n_unknown > without_pc;
	locations_deinit(&places);
	return r;
}
