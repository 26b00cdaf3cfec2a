/* SPDX-License-Identifier: MIT */
#ifndef WAITS_GRID_H
#define WAITS_GRID_H

/**
 * @file grid.h
 * The record by which workgroups of a grid wait for each other on AMD devices, where that is done in memory: that of
 * ROCm's device library (__ockl_grid_sync() of rocm-device-libs), which HIP's cooperative groups use.
 *
 * A kernel finds it by an argument that the compiler has added.  One work-item of each workgroup adds 1 to a word of
 * it, and polls the word until its upper half has changed: the last one to come empties the lower half and counts the
 * upper one on.
 */

#include <stddef.h>
#include <stdint.h>

#include "waits/poll.h"

/** The kind of the argument that points to the record, as the code object notes it. */
#define WAITS_GRID_ARGUMENT "hidden_multigrid_sync_arg"
#define WAITS_GRID_BYTES 44u
/** Where in the record the word is that is polled. */
#define WAITS_GRID_WORD 32u
/** Most workgroups of a grid: half of the word counts them. */
#define WAITS_GRID_MAX 65535u

struct waits_grid {
	uint32_t has;	     /**< Workgroups that have come. */
	uint32_t expects;    /**< Workgroups of the grid. */
	uint32_t generation; /**< How often all have come, modulo 65536. */
};

/** @return whether this is how the word is polled. */
bool waits_grid_is_word(const struct waits_word *w);

/**
 * Read a record.
 * @return 0; -EINVAL: it is none: too short, nobody is expected or more than can be counted, or more have come.
 */
int waits_grid_read(const void *record, size_t size, struct waits_grid *ret);

#endif /* WAITS_GRID_H */
