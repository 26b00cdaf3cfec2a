/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_GROUPS_H
#define WORKER_SNAPSHOT_GROUPS_H

/**
 * @file groups.h
 * Waves that are at the same place for the same reasons, counted: rows instead of lists.
 *
 * Pure functions.  The time is linear in the number of waves; what they are at comes from the target
 * process, so the hash depends on a secret and cannot be made to collide.
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
	const char *exception; /**< The same. */
	uint32_t kernel, place;

	uint64_t pc; /**< Of the representative. */
	uint32_t waves;
	uint32_t sites; /**< Distinct addresses that its waves are at. */
	uint32_t lanes_min, lanes_median, lanes_max; /**< The lower one of two medians. */
	uint32_t workgroups;
	bool has_range; /**< At least one workgroup is known. */
	uint32_t first_workgroup[3], last_workgroup[3]; /**< In the order z, y, x. */
	uint32_t representative; /**< Position of its first wave. */
};

/**
 * @param waves   After locations_find().
 * @param n       At most UINT32_MAX / 4.
 * @param ret     Faulting groups first, then by number of waves, then by pc; free().  Never NULL.
 * @param ret_of  Position of each wave's group; free().
 * @return 0, -ENOMEM, -EFBIG.
 */
int group_waves(const struct wave *waves, size_t n, struct group **ret, size_t *ret_n,
		uint32_t **ret_of);

#endif /* WORKER_SNAPSHOT_GROUPS_H */
