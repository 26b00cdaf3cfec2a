/* SPDX-License-Identifier: MIT */
#ifndef WAITS_GRID_H
#define WAITS_GRID_H

/**
 * @file grid.h
 * The records by which workgroups of a grid wait for each other, where that is done in memory.
 *
 * AMD's is that of ROCm's device library (__ockl_grid_sync() of rocm-device-libs), which HIP's cooperative groups use.
 *
 * A kernel finds it by an argument that the compiler has added.  One work-item of each workgroup adds 1 to a word of
 * it, and polls the word until its upper half has changed: the last one to come empties the lower half and counts the
 * upper one on.
 *
 * NVIDIA's is the workspace that the driver passes to a cooperative launch (CUDA's cooperative_groups/details/sync.h).
 * One thread of each block adds to a word of it, and polls the word until its highest bit has changed: block (0,0,0)
 * adds 0x80000000 less the number of the others, and each of those 1.
 */

#include <stddef.h>
#include <stdint.h>

#include "waits/poll.h"
#include "waits/sass_poll.h"

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

/** Where in the workspace the word is. */
#define WAITS_GRID_WORKSPACE_WORD 4
/** Most blocks of a grid whose word can be read in one way only. */
#define WAITS_GRID_BLOCKS_MAX (UINT32_C(1) << 30)

/** @return whether a loop polls a word as blocks of a cooperative launch do: to ask for more costs more. */
bool waits_grid_may_be_loop(const struct waits_sass_poll *p);

/**
 * Tell whether a loop waits for all blocks of a cooperative launch.
 *
 * It does if it polls the word of the workspace for a change of its highest bit, and code in front of it adds to the
 * same word.  That it is the workspace is seen by the constants, which only the driver sets, that the address is made
 * of.
 * Code is read from the loop back as it lies there, so that a loop which gets the address in another way is not told.
 * @param code  The code in which waits_sass_poll_find() has found it.
 */
bool waits_grid_is_loop(const char *arch, const void *code, size_t size, const struct waits_sass_poll *p);

/** What the word of a workspace says. */
struct waits_grid_blocks {
	uint32_t has;	/**< Blocks that have come. */
	bool has_first; /**< Block (0,0,0) is one of them. */
};

/**
 * Read a word of a workspace.
 * @param blocks  Of the grid.
 * @return 0; -EINVAL: there are none or too many, or with so many the word is never like this.
 */
int waits_grid_count(uint32_t word, uint64_t blocks, struct waits_grid_blocks *ret);

/** How blocks of a grid, of which not all are on the device, poll words in a loop of their own. */
struct waits_grid_poll {
	uint64_t blocks, absent; /**< Of the grid, and those of them that are not there. */
	uint32_t lanes;	   /**< Of one block, that are in the loop. */
	bool is_one_block; /**< No other block has lanes in it. */
	bool is_numbered;  /**< The numbers of the threads are those of the blocks that are not there. */
	struct waits_word word;	 /**< Of one lane. */
	bool has_value;
	uint64_t value;
	/** Of a lane of the same wave that is further on by `apart`: where its word is; 0: it is not known. */
	uint64_t last;
	uint32_t apart;
};

enum waits_grid_barrier {
	WAITS_GRID_NO_BARRIER,
	WAITS_GRID_FLAGS, /**< Of one block, the thread with the number of each block that is not there polls a word. */
	WAITS_GRID_COUNT, /**< The word lacks as many to the blocks of the grid as are not there. */
};

/**
 * Tell whether a loop is a barrier over the grid which those who are not there have not come to.
 *
 * Nothing says of a word who writes it, so that it has to agree with the grid.  One flag agrees with one block whatever
 * it is for: that is not told.
 */
enum waits_grid_barrier waits_grid_barrier_of(const struct waits_grid_poll *p);

#endif /* WAITS_GRID_H */
