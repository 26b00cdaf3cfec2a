/* SPDX-License-Identifier: MIT */
#ifndef CTL_DOCUMENT_COMPARE_H
#define CTL_DOCUMENT_COMPARE_H

/**
 * @file compare.h
 * Compares two snapshots of one process: what changed, and whether the process, and each of its
 * queues, is hung, slow or progressing.
 *
 * These are pure functions.  The time is n log n in the number of groups; results point into the
 * arena and into the snapshots.
 */

#include "rpc_gen.h"

/**
 * Microseconds that must lie between two snapshots.  A shorter time proves nothing: a packet may
 * take so long on a device in good health.
 */
#define COMPARE_INTERVAL_MIN_US 500000u

/**
 * Why two snapshots cannot be compared: they show another process, host or start of the process.
 * @return a message in the arena, or NULL when they can be compared.
 */
const char *compare_mismatch(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *before,
			     const struct rpc_gpu_snapshot_result *after);

/**
 * Compare two snapshots that compare_mismatch() has nothing against.
 * @param before  The earlier one.
 * @param any_progress  Whether one queue that goes on makes the process progressing; otherwise the
 *                process is as its worst queue.
 * @param ret     Gets everything but the names of the files and `snapshot`.
 * @return 0, -ENOMEM, -EFBIG (arena).
 */
int compare_snapshots(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *before,
		      const struct rpc_gpu_snapshot_result *after, bool any_progress,
		      struct rpc_comparison *ret);

/**
 * The second half of compare_snapshots(): queues and groups are paired, the verdicts are to be
 * found.
 * @param earlier  For each queue of @p after the same queue in @p before, or NULL.
 * @param ret      Its queues are those of @p after in their order, then those that are gone.
 */
void compare_judge(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *before,
		   const struct rpc_gpu_snapshot_result *after, const struct rpc_queue *const *earlier,
		   bool any_progress, struct rpc_comparison *ret);

#endif /* CTL_DOCUMENT_COMPARE_H */
