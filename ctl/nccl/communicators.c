/* SPDX-License-Identifier: MIT */
#include "ctl/nccl/communicators.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * By communicator.  Who was told of ranks that differ comes first: others may have been told something else, as in a
 * network that fell apart.  Then who was told last, and the first rank.
 */
static int compare(const void *x, const void *y)
{
	const struct nccl_said *a = x, *b = y;

	if (a->of->hash != b->of->hash)
		return a->of->hash < b->of->hash ? -1 : 1;
	if ((a->of->odd_count > 0) != (b->of->odd_count > 0))
		return a->of->odd_count > 0 ? -1 : 1;
	if (a->by && b->by && a->by->time_us != b->by->time_us)
		return a->by->time_us > b->by->time_us ? -1 : 1;
	if (a->by != b->by)
		return a->by < b->by ? -1 : 1;
	return a->of < b->of ? -1 : a->of > b->of;
}

/* Those with ranks that differ, then the others. */
static int by_oddness(const void *x, const void *y)
{
	const struct nccl_said *a = x, *b = y;

	if ((a->of->odd_count > 0) != (b->of->odd_count > 0))
		return a->of->odd_count > 0 ? -1 : 1;
	return a->of->hash < b->of->hash ? -1 : a->of->hash > b->of->hash;
}

static size_t add(struct nccl_said *list, size_t n, const struct rpc_nccl_told *told, const struct rpc_rank *by)
{
	for (size_t i = 0; i < told->n_communicators; i++)
		list[n++] = (struct nccl_said){ &told->communicators[i], told, by };
	return n;
}

static size_t left_of(const struct rpc_nccl_told *t)
{
	return t->communicators_count > t->n_communicators ? t->communicators_count - t->n_communicators : 0;
}

struct nccl_said *nccl_communicators(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, size_t *ret_n,
				     size_t *ret_left)
{
	const struct rpc_nccl_told *own = &s->why.told_by_nccl;
	struct nccl_said *list;
	size_t room = own->n_communicators, n = 0, kept = 0, left = left_of(own);

	for (size_t i = 0; i < s->n_ranks; i++) {
		room += s->ranks[i].told_by_nccl.n_communicators;
		left += left_of(&s->ranks[i].told_by_nccl);
	}
	list = rpc_arena_array(a, room, sizeof(*list));
	if (!list)
		return NULL;
	n = add(list, n, own, NULL);
	for (size_t i = 0; i < s->n_ranks; i++)
		n = add(list, n, &s->ranks[i].told_by_nccl, &s->ranks[i]);
	qsort(list, n, sizeof(*list), compare);
	for (size_t i = 0; i < n; i++)
		if (!i || list[i].of->hash != list[kept - 1].of->hash)
			list[kept++] = list[i];
	qsort(list, kept, sizeof(*list), by_oddness);
	*ret_n = kept;
	*ret_left = left;
	return list;
}
