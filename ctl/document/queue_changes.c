/* SPDX-License-Identifier: MIT */
#include "ctl/document/queue_changes.h"

#include <stdlib.h>

/* GPU and id as one number, which orders queues. */
static uint64_t key(uint32_t gpu_id, uint32_t queue_id)
{
	return (uint64_t)gpu_id << 32 | queue_id;
}

static uint64_t key_at(const struct rpc_comparison *cmp, size_t position)
{
	return key(cmp->queues[position].gpu_id, cmp->queues[position].queue_id);
}

static int by_key(const void *x, const void *y, void *cmp)
{
	size_t i = *(const size_t *)x, j = *(const size_t *)y;
	uint64_t a = key_at(cmp, i), b = key_at(cmp, j);

	return a != b ? (a < b ? -1 : 1) : (i > j) - (i < j);
}

int queue_changes_init(struct rpc_arena *a, const struct rpc_comparison *cmp, struct queue_changes *ret)
{
	size_t *sorted = rpc_arena_array(a, cmp->n_queues, sizeof(*sorted));

	if (!sorted)
		return rpc_arena_error(a);
	for (size_t i = 0; i < cmp->n_queues; i++)
		sorted[i] = i;
	if (cmp->n_queues)
		qsort_r(sorted, cmp->n_queues, sizeof(*sorted), by_key, (void *)cmp);
	*ret = (struct queue_changes){ .cmp = cmp, .sorted = sorted };
	return 0;
}

size_t queue_changes_find(struct queue_changes *c, uint32_t gpu_id, uint32_t queue_id, size_t *ret_n)
{
	const uint64_t wanted = key(gpu_id, queue_id);
	size_t from = 0, to = c->cmp->n_queues, n = 0;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		c->looked++;
		if (key_at(c->cmp, c->sorted[middle]) < wanted)
			from = middle + 1;
		else
			to = middle;
	}
	while (from + n < c->cmp->n_queues && key_at(c->cmp, c->sorted[from + n]) == wanted)
		n++;
	c->looked += n + 1;
	*ret_n = n;
	return from;
}
