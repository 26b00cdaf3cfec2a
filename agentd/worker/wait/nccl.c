/* SPDX-License-Identifier: MIT */
/*
 * Communicators of NCCL, as they were read while the devices stood still.  A kernel that is in the function which
 * receives along a ring, and by whose connection no more has come than kernels before it have taken, waits for the rank
 * in front of it, as those of RCCL do (receives.c).  So do those that receive of single ranks, or along a tree.
 */
#include <errno.h>

#include "agentd/worker/wait/look.h"
#include "waits/collective/nccl.h"

static const struct target_collective *find(const struct look *l, const struct wave *first)
{
	const struct target_waves *t = &l->seen->waves;

	for (size_t i = 0; i < t->n_collectives; i++) {
		const struct wave *w = &t->waves[t->collectives[i].wave];

		if (w->gpu_id == first->gpu_id && w->queue_id == first->queue_id && w->dispatch == first->dispatch)
			return &t->collectives[i];
	}
	return NULL;
}

int look_at_nccl(struct look *l, const struct wave *first, struct rpc_collective *to, struct look_awaits *ret)
{
	const struct target_collective *c = find(l, first);

	if (!c || !c->communicator)
		return -EIO;
	if (!c->is_read)
		return -EINVAL;
	to->communicator = c->communicator;
	to->rank = c->rank;
	to->ranks = c->ranks;
	to->previous = c->previous;
	to->next = c->next;
	if (c->unread)
		look_missing(l, "collective operations: what some blocks receive is not readable, or does not fit together");
	if (c->left)
		look_missing(l, "collective operations: what some blocks receive was not read, for lack of time, "
				"or because there are too many");
	if (c->empty)
		look_missing(l, "collective operations: before NCCL 2.22, what blocks receive with the protocols LL and LL128 "
				"is not told");
	if (c->old)
		look_missing(l, "collective operations: before NCCL 2.22, what blocks receive point to point or along a tree "
				"is not told");
	if (c->between)
		look_missing(l, "collective operations: some blocks have more to do behind what they execute, and may "
				"have received all of it");
	ret->wall_us = l->seen->waves.collectives_us;
	ret->list = rpc_arena_array(l->arena, c->n_receives, sizeof(*ret->list));
	for (uint32_t i = 0; ret->list && i < c->n_receives; i++) {
		const struct target_receive *r = &c->receives[i];

		ret->list[ret->n++] = (struct look_awaited){ .workgroup = r->block, .from = r->from,
							     .connection = r->connection, .arrived = r->arrived,
							     .taken = r->taken, .word = r->word };
	}
	return 0;
}
