/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_GROUPS_H
#define WORKER_SNAPSHOT_GROUPS_H

/**
 * @file groups.h
 * Waves that are at the same place for the same reasons, counted: rows instead of lists.  A wave
 * whose lanes are at different places is counted at each of them.
 *
 * The time is linear in the number of waves.  The target chooses where its waves are, so the hash
 * depends on a secret, and the target cannot make it collide.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wave;

/** One row: the waves of a device that are at one place, in one state, for the same reasons. */
struct group {
	/* The key: waves that agree in these members are one group. */
	uint32_t gpu_id;
	uint32_t state;	  /**< enum rpc_wave_state. */
	uint32_t reasons; /**< As in struct wave. */
	const char *exception; /**< As in struct wave. */
	uint32_t kernel, place; /**< Numbers in struct locations. */

	uint64_t pc; /**< The pc of the representative. */
	uint32_t waves; /**< How many waves the group has. */
	uint32_t sites; /**< How many distinct addresses its waves are at. */
	/** Active lanes of its waves, of a part all lanes; the median is the lower one of two. */
	uint32_t lanes_min, lanes_median, lanes_max;
	uint32_t workgroups; /**< How many workgroups its waves are of. */
	bool has_range; /**< At least one workgroup is known. */
	uint32_t first_workgroup[3], last_workgroup[3]; /**< By z, then y, then x. */
	/** Position of the group's first wave; where the lane that speaks for it is, if there is one. */
	uint32_t representative;
	uint32_t parts; /**< How many of its waves are elsewhere as well. */
	uint8_t lane;   /**< If has_lane: a lane of the representative that is there. */
	bool has_lane;  /**< The representative is elsewhere as well. */
	bool speaks;    /**< The stack of the representative is that of a lane that is there. */
};

/**
 * Count waves in groups.
 * @param waves   Waves that locations_find() has seen, with `leader` set; `group` of their parts is
 *                set.  Parts may also stand among the waves, those of a wave one behind the other.
 * @param n       At most UINT32_MAX / 4.
 * @param ret     Faulting groups first, then by number of waves, then by pc; free().  Never NULL.
 * @param ret_of  Position of the group of each wave, or of its first part; free().
 * @return 0, -ENOMEM, -EFBIG.
 */
int group_waves(const struct wave *waves, size_t n, struct group **ret, size_t *ret_n,
		uint32_t **ret_of);

#endif /* WORKER_SNAPSHOT_GROUPS_H */
