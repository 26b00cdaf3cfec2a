/* SPDX-License-Identifier: MIT */
#ifndef CTL_DOCUMENT_COMPARE_H
#define CTL_DOCUMENT_COMPARE_H

/**
 * @file compare.h
 * Two snapshots of one process: what changed, and whether it, and each of its queues, is hung, slow or
 * progressing.
 *
 * Pure functions.  The time is n log n in the number of groups; results point into the arena and
 * into the snapshots.
 */

#include "rpc_gen.h"

/** Snapshots that are closer together prove nothing: a packet may take so long on a device in good health. */
#define COMPARE_INTERVAL_MIN_US 500000u

/**
 * Why two snapshots cannot be compared: other process, host or start.
 * @return message in the arena, or NULL when they can be.
 */
const char *compare_mismatch(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *before,
			     const struct rpc_gpu_snapshot_result *after);

/**
 * @param before  The earlier one.
 * @param any_progress  One queue that goes on makes the process progressing; else it is as its worst queue.
 * @param ret     Everything but the names of the files and `snapshot`.
 * @return 0, -ENOMEM, -EFBIG (arena).
 */
int compare_snapshots(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *before,
		      const struct rpc_gpu_snapshot_result *after, bool any_progress,
		      struct rpc_comparison *ret);

/**
 * Second half of compare_snapshots(): queues and groups are paired, the verdicts are to be found.
 * @param earlier  Of each queue of @p after what it was before, or NULL.
 */
void compare_judge(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *before,
		   const struct rpc_gpu_snapshot_result *after, const struct rpc_queue *const *earlier,
		   bool any_progress, struct rpc_comparison *ret);

#endif /* CTL_DOCUMENT_COMPARE_H */
