/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SPIN_H
#define WORKER_SPIN_H

/**
 * @file spin.h
 * Warps in loops that poll memory, live or in a core.
 *
 * As with barriers in memory (mbarrier.h), the loops of each image are searched for when it is looked at first.  Of
 * those who are in one loop of one grid, the first is read.
 */

#include "agentd/worker/target/target.h"
#include "waits/sass_poll.h"

struct symbols_image;

/** Kinds of things that may be missing of one look. */
#define SPINS_MISSING_MAX 3u
/** Most loops of grids whose registers and words are read in one look: up to eight reads for each word. */
#define SPINS_MAX 64u

/** A loop. */
struct spin_site {
	uint64_t begin, end;
	uint64_t text; /**< What offsets of its words are from. */
	struct waits_sass_polls polls;
	bool is_grid; /**< Blocks of a cooperative launch wait for each other there. */
	bool is_untraced; /**< That is not known: there are too many such loops. */
	bool is_entered; /**< A branch from behind leads into it; not of those in the list. */
};

/** Those of an image, ascending. */
struct spin_sites {
	struct spin_site *list;
	size_t n, capacity;
	bool is_cut; /**< There are more than are kept. */
	uint32_t n_traced; /**< Loops whose address was followed back, to tell whether they wait for a grid. */
};

/** Find the loops of a relocated image.  @param arch  NULL: not known.  @return 0, -ENOMEM. */
int spin_sites_find(const struct symbols_image *image, const char *arch, struct spin_sites *ret);
/** Free a list; accepts a zeroed one. */
void spin_sites_deinit(struct spin_sites *s);

/** Where registers and memory of a stopped warp come from. */
struct spin_source {
	/** @return whether a register of a lane, or a uniform one of the warp, was read. */
	bool (*word)(const void *ctx, bool is_uniform, uint32_t lane, uint32_t number, uint32_t *ret);
	/** @return whether 32 bits of constant bank 0 were read: what was passed to the kernel. */
	bool (*argument)(const void *ctx, uint32_t offset, uint32_t *ret);
	/**
	 * @param ret_is_host  Of memory of the host; false where it is not known.
	 * @return whether all bytes were read.
	 */
	bool (*memory)(const void *ctx, enum waits_sass_space space, uint32_t lane, uint64_t address, void *buf,
		       uint32_t size, bool *ret_is_host);
	/** @return whether it is known how many blocks the warp's grid has in each direction. */
	bool (*grid)(const void *ctx, uint32_t ret[3]);
	const void *ctx;
};

/** All of one look. */
struct spins {
	struct target_waves *waves; /**< Gets them. */
	uint32_t left_out; /**< Warps that were not looked at, for lack of room or time. */
	uint32_t cut;	   /**< Warps in images of which not all loops are known. */
	uint32_t untraced; /**< Warps in loops of which it is not known whether they wait for the grid. */
};

/** Make room for those of one look.  @return 0, -ENOMEM. */
int spins_begin(struct spins *s, struct rpc_arena *a, struct target_waves *waves);
/**
 * Read what the lanes of a warp poll.
 * @param wave   Position of the warp.
 * @param pcs    Of its lanes, of which those in @p lanes are there.
 * @param sites  Of the image that it executes; NULL: not known.
 * @param late   There is no time left.
 */
void spins_add(struct spins *s, uint32_t wave, const uint64_t *pcs, uint32_t lanes, const struct spin_sites *sites,
	       const struct spin_source *from, bool late);
/** Say what is missing of them.  @param ret  In the arena; NULL: nothing of that kind. */
void spins_missing(const struct spins *s, struct rpc_arena *a, const char *ret[SPINS_MISSING_MAX]);

#endif /* WORKER_SPIN_H */
