/* SPDX-License-Identifier: MIT */
#ifndef CTL_NCCL_AWAITED_H
#define CTL_NCCL_AWAITED_H

/** @file awaited.h  Which collective operations a process executes, and for which ranks they wait, in words. */

#include "rpc_gen.h"

/**
 * Say of one rank what it executes and for whom it waits, in the words of the vendor's users.
 * @param r  What says whether the wait has moved.
 * @return in the arena; NULL: there is no memory.  The name of the operation may be a stranger's.
 */
const char *awaited_rank_text(struct rpc_arena *arena, const struct rpc_why_get_result *r,
			      const struct rpc_collective *k);

/**
 * Say that ranks wait for others, of whom the document of one process says nothing.
 * @return half a sentence, in the arena; NULL: none is known to wait.
 */
const char *awaited_text(struct rpc_arena *arena, const struct rpc_why_get_result *r);

#endif /* CTL_NCCL_AWAITED_H */
