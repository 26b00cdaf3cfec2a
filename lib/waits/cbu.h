/* SPDX-License-Identifier: MIT */
#ifndef WAITS_CBU_H
#define WAITS_CBU_H

/**
 * @file cbu.h
 * Convergence barriers of a warp of NVIDIA's devices: which of its lanes the hardware says are blocked, and for whom.
 *
 * BSSY makes a barrier of the lanes that take part, and BSYNC blocks each of them until all have come or exited.  A
 * collective operation, such as WARPSYNC, has a mask of its own.
 */

#include <stddef.h>
#include <stdint.h>

#define WAITS_CBU_BARRIERS 16u
#define WAITS_CBU_LANES	   32u
/**
 * The state of a warp in 32-bit words, in the order of the debugger API's CUDBGCbuWarpState: lanes that execute, that
 * have exited, and that take part in a collective operation; those that take part in each barrier; and the state of
 * each lane, as its CUDBGCbuThreadState.
 */
#define WAITS_CBU_WORDS (3u + WAITS_CBU_BARRIERS + WAITS_CBU_LANES)

struct waits_cbu {
	uint32_t blocked[WAITS_CBU_BARRIERS]; /**< Lanes that wait at each barrier. */
	uint32_t missing[WAITS_CBU_BARRIERS]; /**< Lanes that they wait for; 0 where none waits. */
	uint32_t in_collective; /**< Lanes that wait in a collective operation. */
	uint32_t collective;	/**< Lanes that take part in it and have not exited. */
	uint32_t lanes;		/**< Lanes that have not exited. */
	uint32_t ready;		/**< Lanes that wait for no other, be it that they yield or sleep. */
};

/**
 * Read the state of a warp.
 * @param lanes  Lanes that have not exited, as the device tells otherwise.
 * @return 0; -EINVAL: not WAITS_CBU_WORDS words; -EBADMSG: they contradict each other or @p lanes, and prove nothing.
 */
int waits_cbu_read(const uint32_t *words, size_t n, uint32_t lanes, struct waits_cbu *ret);
/** @return the barrier at which all of some lanes wait; WAITS_CBU_BARRIERS: there is none. */
uint32_t waits_cbu_barrier_of(const struct waits_cbu *c, uint32_t lanes);

#endif /* WAITS_CBU_H */
