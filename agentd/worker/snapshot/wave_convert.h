/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_WAVE_CONVERT_H
#define WORKER_SNAPSHOT_WAVE_CONVERT_H

/** @file wave_convert.h  How the wire says what waves and groups of waves do. */

#include "agentd/worker/snapshot/groups.h"
#include "agentd/worker/target/waves.h"
#include "protocol/rpc_arena.h"

struct locations;

/** @return how replies name a wave; it points into the wave. */
struct rpc_wave_ref wave_ref(struct wave *w);

/**
 * Convert waves for replies.
 * @param waves     Must live as long as the result, which points into it.
 * @param group_of  The group of each wave, as group_waves() gives it; NULL: there are no groups.
 * @return a list in the arena; NULL when the arena is exhausted.
 */
struct rpc_wave *waves_convert(struct rpc_arena *a, struct wave *waves, const uint32_t *group_of,
			       size_t n);
/** Convert the parts of a wave that was converted before it had them.  @param has_group  They have. */
void waves_convert_parts(struct rpc_arena *a, const struct wave *w, bool has_group,
			 struct rpc_wave *to);
/**
 * Convert groups for replies.
 * @param waves   The waves that were counted; must live as long as the result.
 * @param groups  Must live as long as the result, which points into it.
 * @param p       Places and kernels, as locations_find() gave them.
 * @return a list in the arena; NULL when the arena is exhausted.
 */
struct rpc_group *waves_convert_groups(struct rpc_arena *a, struct wave *waves,
				       struct group *groups, size_t n, const struct locations *p);

#endif /* WORKER_SNAPSHOT_WAVE_CONVERT_H */
