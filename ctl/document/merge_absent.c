/* SPDX-License-Identifier: MIT */
/* Ranks of a job that are not in a merged document: one that has died is not there to be odd. */
#include <string.h>

#include "ctl/document/merge.h"

bool merge_is_same_job(const struct rpc_process_rank *a, const struct rpc_process_rank *b)
{
	if (!a->has_world_size || !b->has_world_size || a->world_size != b->world_size)
		return false;
	return !a->job == !b->job && (!a->job || !strcmp(a->job, b->job));
}

/* @return how many ranks are absent; 0 also where the ranks do not agree on one job. */
static size_t find(const struct rpc_gpu_snapshot_result *s, struct merge_set *absent)
{
	for (size_t i = 0; i < s->n_ranks; i++) {
		const struct rpc_rank *r = &s->ranks[i];

		/* A number that is there twice is of two jobs without a name. */
		if (!r->has_rank || !merge_is_same_job(&s->ranks[0].rank, &r->rank) || r->rank.rank >= absent->n ||
		    !merge_set_has(absent, r->rank.rank))
			return 0;
		merge_set_remove(absent, r->rank.rank);
	}
	return merge_set_count(absent);
}

const char *merge_absent(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s)
{
	const struct rpc_rank *first = s->n_ranks ? &s->ranks[0] : NULL;
	uint32_t world = first && first->has_rank && first->rank.has_world_size ? first->rank.world_size : 0;
	struct merge_set absent;
	const char *list;
	size_t n;

	if (!world || world > MERGE_RANKS_MAX)
		return "";
	if (merge_set_init(a, world, &absent) < 0)
		return NULL;
	for (size_t i = 0; i < world; i++)
		merge_set_add(&absent, i);
	n = find(s, &absent);
	if (!n)
		return "";
	list = merge_set_print(a, &absent);
	return list ? rpc_arena_printf(a, "%zu of %u ranks %s seen; rank%s %s %s not", world - n, world,
				       world - n == 1 ? "was" : "were", n == 1 ? "" : "s", list,
				       n == 1 ? "was" : "were")
		    : NULL;
}
