/* SPDX-License-Identifier: MIT */
#ifndef CTL_DOCUMENT_QUEUE_CHANGES_H
#define CTL_DOCUMENT_QUEUE_CHANGES_H

/**
 * @file queue_changes.h
 * Finds the queues of a comparison by their ids: groups name theirs by the thousand.
 */

#include <stddef.h>
#include <stdint.h>

#include "rpc_gen.h"

struct queue_changes {
	const struct rpc_comparison *cmp; /**< Borrowed. */
	size_t *sorted; /**< Positions in cmp->queues by GPU and id; in the arena. */
	uint64_t looked; /**< Queues that were compared to find others, since the beginning. */
};

/** Sort the queues of a comparison.  @return 0, -ENOMEM, -EFBIG (arena). */
int queue_changes_init(struct rpc_arena *a, const struct rpc_comparison *cmp, struct queue_changes *ret);

/**
 * Find a queue by halving.  A comparison that is not ours may have several of one id.
 * @param ret_n  How many there are; their positions are those behind the first one's in @p sorted.
 * @return where the first is in @p sorted; anything when there is none.
 */
size_t queue_changes_find(struct queue_changes *c, uint32_t gpu_id, uint32_t queue_id, size_t *ret_n);

#endif /* CTL_DOCUMENT_QUEUE_CHANGES_H */
