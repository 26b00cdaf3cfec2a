/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CONVERGENCE_H
#define WORKER_CONVERGENCE_H

/**
 * @file convergence.h
 * The state of convergence barriers, of those warps that may wait for lanes of their own.
 *
 * A driver tells it from release 12.9 on, for many warps of one multiprocessor in one call; a core has it from R575 on.
 */

#include "agentd/worker/target/target.h"

/** Most warps whose state is read in one look. */
#define CONVERGENCES_MAX 4096u

/** Where the state comes from. */
struct convergence_source {
	/** @return whether lanes of a wave are at different places, and some do not execute. */
	bool (*is_apart)(const void *ctx, uint32_t wave);
	/**
	 * Read some waves of one multiprocessor.
	 * @param to  Their positions are set, ascending by their index there.
	 * @return 0, -ENOSYS (there is none, as the release is older), -errno.
	 */
	int (*read)(const void *ctx, struct target_convergence *to, uint32_t n);
	const void *ctx;
};

/**
 * Read the state of warps.
 * @param deadline_ns  Of the stop.
 * @return what is missing of it, in the arena; NULL for nothing, also where no release tells it.
 */
const char *convergence_read(const struct convergence_source *from, uint64_t deadline_ns, struct rpc_arena *a,
			     struct target_waves *waves);

#endif /* WORKER_CONVERGENCE_H */
