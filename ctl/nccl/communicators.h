/* SPDX-License-Identifier: MIT */
#ifndef CTL_NCCL_COMMUNICATORS_H
#define CTL_NCCL_COMMUNICATORS_H

/** @file communicators.h  What NCCL has said in a document, by communicator. */

#include <stddef.h>

#include "rpc_gen.h"

struct nccl_said {
	const struct rpc_nccl_communicator *of;
	const struct rpc_nccl_told *told; /**< What it is of. */
	const struct rpc_rank *by; /**< The rank that was told; NULL: the document is of one process. */
};

/**
 * List the communicators of a document, one of each; those with ranks that differ come first.
 * @param ret_left  How many the document does not have.
 * @return NULL: there is no memory.
 */
struct nccl_said *nccl_communicators(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, size_t *ret_n,
				     size_t *ret_left);

#endif /* CTL_NCCL_COMMUNICATORS_H */
