/* SPDX-License-Identifier: MIT */
#ifndef WAITS_NCCL_WORK_H
#define WAITS_NCCL_WORK_H

/**
 * @file nccl_work.h
 * What a block of NCCL 2.22 to 2.30 executes, by the copy that it keeps in its shared memory: which ranks it receives
 * of point to point, and which neighbours in a tree it has.  All of it is what the process wrote, as in nccl.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "waits/collective/nccl.h"

/** Bytes of what is read of shared memory in front of the work, and of a channel with its tree. */
#define WAITS_NCCL_SHARED  544u
#define WAITS_NCCL_CHANNEL 64u
/** Most bytes of the work of a block that are read, most works of them, and most warps. */
#define WAITS_NCCL_WORK_BYTES_MAX 1024u
#define WAITS_NCCL_WORKS_MAX	  16u
#define WAITS_NCCL_WARPS_MAX	  32u
/** A tree has no such neighbour. */
#define WAITS_NCCL_NOBODY UINT32_MAX
/** Ranks that a rank has below it in a tree. */
#define WAITS_NCCL_TREE_ARITY 3u

/** Releases whose communicators are alike differ in what follows the order of a ring. */
enum waits_nccl_age { WAITS_NCCL_EARLY, WAITS_NCCL_LATE /**< Since 2.29. */ };

/** What a block executes. */
struct waits_nccl_block {
	bool is_pair;	/**< Sends and receives of single ranks. */
	bool is_last;	/**< Its kernel does nothing more behind it: what stays in it has not ended it. */
	uint32_t works; /**< So many. */
	uint32_t bytes; /**< Of each. */
	bool is_either; /**< Unless late, of 2.27 or 2.28, which deal the parts of a pair in two orders. */
};

/** Of whom a work of such a block receives. */
struct waits_nccl_pair {
	uint32_t from;
	uint32_t warp; /**< The first of those that do. */
	enum waits_nccl_protocol protocol;
};

/** Neighbours in a tree. */
struct waits_nccl_tree {
	uint32_t up, down[WAITS_NCCL_TREE_ARITY];
};

/** @return whether the releases of a layout keep such a copy as is known. */
bool waits_nccl_has_work(unsigned int layout);

/** @return which ages releases of a layout may be of, a bit for each. */
uint32_t waits_nccl_ages(unsigned int layout);

/** Read where the connections of a channel are, by rank.  @return 0, -EINVAL: it is none. */
int waits_nccl_peers_read(const void *channel, size_t size, uint64_t *ret);

/**
 * Read at which place of its ring, counted from rank 0, a rank is.
 * @param channel  WAITS_NCCL_CHANNEL bytes of any channel that has a ring.
 * @return 0, -EINVAL: a release of that age does not write this.
 */
int waits_nccl_place_read(const void *channel, size_t size, enum waits_nccl_age age, uint32_t ranks, uint32_t *ret);

/** Read a tree.  @return 0, -EINVAL: it is none of that rank. */
int waits_nccl_tree_read(const void *channel, size_t size, enum waits_nccl_age age, const struct waits_rccl_comm *comm,
			 struct waits_nccl_tree *ret);

/** @return the first warp that receives what comes down a tree; those in front of it receive what comes up. */
uint32_t waits_nccl_tree_warp(enum waits_nccl_protocol protocol, uint32_t warps);

/** Where a release's compiler lets the shared memory of a block begin: at one of these. */
#define WAITS_NCCL_SHARED_BASES { 0x400, 0 }

/** @return where the work is in the copy. @param is_sm_90_or_newer  Of code compiled for sm_90 or newer. */
uint32_t waits_nccl_work_at(unsigned int layout, enum waits_nccl_age age, bool is_sm_90_or_newer);

/**
 * Read the copy that a block keeps.
 * @param shared   WAITS_NCCL_SHARED bytes.
 * @param comm     WAITS_NCCL_COMM bytes of the communicator.
 * @param channel  The one that the block has.
 * @param peers    Of that channel, as the communicator has it.
 * @return 0, -EINVAL: it is not that of this block, or it is leaving.
 */
int waits_nccl_block_read(unsigned int layout, const void *shared, size_t size, const void *comm,
			  const struct waits_nccl_launch *launch, uint32_t channel, uint64_t peers,
			  struct waits_nccl_block *ret);

/**
 * Read of whom a work receives.
 * @param work   Its bytes.
 * @param i      Which one of the block it is.
 * @param warps  Those of the block.
 * @return 0, -ENOENT: of nobody; -EINVAL: it is none.
 */
int waits_nccl_pair_read(const void *work, size_t size, enum waits_nccl_age age, const struct waits_rccl_comm *comm,
			 const struct waits_nccl_block *block, uint32_t channel, uint32_t i, uint32_t warps,
			 struct waits_nccl_pair *ret);

/** @return how many warps execute a work that is no pair; 0: it is none. */
uint32_t waits_nccl_work_warps(const void *work, size_t size);

/** @return where connection @p i with a rank is, in what a channel has of that rank. */
uint32_t waits_nccl_connection_of(unsigned int layout, uint32_t i);

#endif /* WAITS_NCCL_WORK_H */
