/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_WAVE_CONVERT_H
#define WORKER_SNAPSHOT_WAVE_CONVERT_H

/** @file wave_convert.h  How the wire says what waves and groups of waves do. */

#include "agentd/worker/snapshot/groups.h"
#include "agentd/worker/target/waves.h"
#include "protocol/rpc_arena.h"

struct locations;

/**
 * For replies.  What they point to is in @p waves and @p groups, which must stay as long, and in
 * the arena.
 * @param group_of  Of each wave its group, as group_waves() gives them; NULL: not in groups.
 * @return NULL when the arena is exhausted.
 */
struct rpc_wave *waves_convert(struct rpc_arena *a, struct wave *waves, const uint32_t *group_of,
			       size_t n);
struct rpc_group *waves_convert_groups(struct rpc_arena *a, struct wave *waves,
				       struct group *groups, size_t n, const struct locations *p);

#endif /* WORKER_SNAPSHOT_WAVE_CONVERT_H */
