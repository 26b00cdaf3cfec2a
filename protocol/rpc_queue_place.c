/* SPDX-License-Identifier: MIT */
#include "protocol/rpc_queue_place.h"

/* As many as host.stacks takes. */
#define QUEUES_MAX 1024

int rpc_queue_places(struct rpc_arena *a, const struct rpc_queue *queues, size_t n, struct rpc_host_stacks_params *ret)
{
	ret->queues = rpc_arena_array(a, n, sizeof(*ret->queues));
	if (!ret->queues)
		return rpc_arena_error(a);
	for (size_t i = 0; i < n && ret->n_queues < QUEUES_MAX; i++) {
		const struct rpc_queue *q = &queues[i];

		if (q->type == RPC_QUEUE_TYPE_COMPUTE_AQL && q->has_ring_base && q->has_ring_bytes &&
		    q->has_read_pointer && q->has_write_pointer)
			ret->queues[ret->n_queues++] =
				(struct rpc_queue_place){ q->queue_id,	 q->gpu_id,	  q->ring_base,
							  q->ring_bytes, q->read_pointer, q->write_pointer };
	}
	ret->has_queues = ret->n_queues > 0;
	return 0;
}
