/* SPDX-License-Identifier: MIT */
#ifndef RPC_QUEUE_PLACE_H
#define RPC_QUEUE_PLACE_H

/** @file rpc_queue_place.h  Which queues host.stacks can be asked about. */

#include "rpc_gen.h"

/**
 * Ask also which of these queues the threads wait for: only what describes the ring of packets is of use.
 * @param ret  Has no queues yet.
 * @return 0, -ENOMEM, -EFBIG.
 */
int rpc_queue_places(struct rpc_arena *a, const struct rpc_queue *queues, size_t n, struct rpc_host_stacks_params *ret);

#endif /* RPC_QUEUE_PLACE_H */
