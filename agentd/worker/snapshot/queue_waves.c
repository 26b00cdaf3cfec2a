/* SPDX-License-Identifier: MIT */
#include "agentd/worker/snapshot/queue_waves.h"

#include <errno.h>
#include <stdlib.h>

#include "agentd/worker/snapshot/hash.h"
#include "base/cleanup.h"

/* Finds the queue of a wave. */
struct index {
	const struct rpc_queue *queues;
	size_t n;
	size_t last; /* The last answer: the next wave is mostly of the same queue. */
};

static bool is_of(const struct wave *w, const struct rpc_queue *q)
{
	return w->queue_id == q->queue_id && w->gpu_id == q->gpu_id;
}

/* @return the position of the wave's queue; index->n if the wave is of none of them. */
static size_t find(struct index *index, const struct wave *w)
{
	size_t i = 0;

	if (index->last < index->n && is_of(w, &index->queues[index->last]))
		return index->last;
	while (i < index->n && !is_of(w, &index->queues[i]))
		i++;
	index->last = i;
	return i;
}

/*
 * The position in the save area is not part of the digest: hardware does not save waves in the same
 * order each time.
 */
static uint64_t digest(const struct wave *w)
{
	uint64_t h = hash_mix(w->unit ^ (uint64_t)w->has_dispatch << 32);

	h = hash_mix(h ^ w->dispatch);
	for (size_t i = 0; w->has_workgroup && i < 3; i++)
		h = hash_mix(h ^ w->workgroup[i]);
	h = hash_mix(h ^ w->wave_in_group);
	h = hash_mix(h ^ w->pc);
	h = hash_mix(h ^ w->exec);
	for (uint32_t i = 0; i < wave_n_parts(w); i++)
		h = hash_mix(hash_mix(h ^ w->parts->list[i].pc) ^ w->parts->list[i].exec);
	return hash_mix(h ^ ((uint64_t)w->reasons << 16 | w->state << 8 | w->trap_id));
}

/* A range is told only when every wave of the queue is within it. */
static void add_dispatch(struct rpc_queue *q, const struct wave *w)
{
	bool tells = w->has_dispatch && (q->waves == 0 || q->has_first_dispatch);

	if (tells && (q->waves == 0 || w->dispatch < q->first_dispatch))
		q->first_dispatch = w->dispatch;
	if (tells && (q->waves == 0 || w->dispatch > q->last_dispatch))
		q->last_dispatch = w->dispatch;
	q->has_first_dispatch = q->has_last_dispatch = tells;
}

static void count(struct rpc_queue *q, const struct wave *w)
{
	add_dispatch(q, w);
	q->waves++;
	q->faulting_waves += (w->reasons & STOP_REASONS_FAULT) != 0;
	q->waves_digest += digest(w);
}

/* ------------------------------------------------------------------ queues of groups --------- */

/* A wave, in one of the groups that it is in. */
struct member {
	uint32_t wave, group;
};

static struct member *list_members(const struct wave *waves, const uint32_t *group_of, size_t n,
				   size_t *ret_n)
{
	struct member *list;
	size_t n_parts = 0;

	for (size_t i = 0; i < n; i++)
		n_parts += wave_n_parts(&waves[i]);
	list = malloc((n + n_parts + 1) * sizeof(*list));
	*ret_n = 0;
	for (size_t i = 0; list && i < n; i++) {
		uint32_t parts = wave_n_parts(&waves[i]);

		if (!parts)
			list[(*ret_n)++] = (struct member){ (uint32_t)i, group_of[i] };
		for (uint32_t k = 0; k < parts; k++)
			list[(*ret_n)++] =
				(struct member){ (uint32_t)i, waves[i].parts->list[k].group };
	}
	return list;
}

/* @return the members, group by group; NULL without memory. */
static struct member *sort_by_group(const struct member *members, size_t n, size_t n_groups)
{
	auto_free uint32_t *next = calloc(n_groups + 1, sizeof(*next));
	auto_free struct member *order = malloc((n + 1) * sizeof(*order));

	if (!next || !order)
		return NULL;
	for (size_t i = 0; i < n; i++)
		next[members[i].group + 1]++;
	for (size_t g = 0; g < n_groups; g++)
		next[g + 1] += next[g];
	for (size_t i = 0; i < n; i++)
		order[next[members[i].group]++] = members[i];
	return TAKE_PTR(order);
}

static int fill_groups(struct rpc_arena *a, const struct wave *waves, const uint32_t *group_of,
		       size_t n, struct rpc_group *groups, size_t n_groups, struct index *index)
{
	size_t n_members;
	auto_free struct member *members = list_members(waves, group_of, n, &n_members);
	auto_free struct member *order = members ? sort_by_group(members, n_members, n_groups) : NULL;
	/* For each queue, the last group, plus 1, that it was noted for. */
	auto_free size_t *noted = calloc(index->n + 1, sizeof(*noted));
	/* A group has no more queues than members. */
	uint32_t *pool = rpc_arena_array(a, n_members, sizeof(*pool));

	if (!order || !noted || !pool)
		return -ENOMEM;
	for (size_t i = 0; i < n_members; i++) {
		const struct wave *w = &waves[order[i].wave];
		struct rpc_group *g = &groups[order[i].group];
		size_t q = find(index, w);

		if (!g->has_queues)
			g->queues = &pool[i];
		g->has_queues = true;
		if (q == index->n)
			continue;
		if (noted[q] != order[i].group + (size_t)1)
			g->queues[g->n_queues++] = w->queue_id;
		noted[q] = order[i].group + (size_t)1;
	}
	return 0;
}

int queue_waves_fill(struct rpc_arena *a, const struct wave *waves, const uint32_t *group_of,
		     size_t n, struct rpc_group *groups, size_t n_groups, struct rpc_queue *queues,
		     size_t n_queues)
{
	struct index index = { .queues = queues, .n = n_queues };

	for (size_t i = 0; i < n_queues; i++)
		queues[i].has_waves = queues[i].has_faulting_waves = queues[i].has_waves_digest =
			!queues[i].has_not_stopped;
	for (size_t i = 0; i < n; i++) {
		size_t q = find(&index, &waves[i]);

		if (q < n_queues)
			count(&queues[q], &waves[i]);
	}
	return fill_groups(a, waves, group_of, n, groups, n_groups, &index);
}
