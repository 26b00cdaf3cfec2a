/* SPDX-License-Identifier: MIT */
#ifndef WORKER_GROUP_H
#define WORKER_GROUP_H

/**
 * @file group.h
 * Waves that are at the same place for the same reasons, counted: rows instead of lists.
 *
 * Pure functions.  The time is linear in the number of waves; program counters come from the target
 * process, so their hash depends on a secret and cannot be made to collide.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wave;

struct group {
	/* Key. */
	uint32_t gpu_id;
	uint32_t state;	  /**< enum rpc_wave_state. */
	uint32_t reasons; /**< As in struct wave. */
	uint64_t pc;

	uint32_t waves;
	uint32_t lanes_min, lanes_median, lanes_max; /**< The lower one of two medians. */
	uint32_t workgroups;
	uint32_t representative; /**< Position of its first wave. */
};

/** Is one of these reasons a fault of the program? */
bool group_is_faulting(uint32_t reasons);

/**
 * @param n    At most UINT32_MAX / 4.
 * @param ret  Faulting groups first, then by number of waves, then by pc; free().
 * @return 0, -ENOMEM, -EFBIG.
 */
int group_waves(const struct wave *waves, size_t n, struct group **ret, size_t *ret_n);

#endif /* WORKER_GROUP_H */
