/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_QUEUE_WAVES_H
#define WORKER_SNAPSHOT_QUEUE_WAVES_H

/** @file queue_waves.h  What each queue's waves do, counted, and which queues a group is of. */

#include "agentd/worker/target/waves.h"

/**
 * Fill in what a snapshot tells of the waves of each queue, and the queues of each group.  The
 * digest of a queue is the same whenever its waves are the same, in any order: in another snapshot,
 * and in a core.  A queue has a range of dispatches when each of its waves tells its own.  The time
 * is linear in the number of waves.
 * @param group_of  The group of each wave, as group_waves() gives it; parts have theirs.
 * @param queues    Queues with not_stopped are left as they are: their waves are unknown.
 * @return 0, -ENOMEM.
 */
int queue_waves_fill(struct rpc_arena *a, const struct wave *waves, const uint32_t *group_of,
		     size_t n, struct rpc_group *groups, size_t n_groups, struct rpc_queue *queues,
		     size_t n_queues);

#endif /* WORKER_SNAPSHOT_QUEUE_WAVES_H */
