/* SPDX-License-Identifier: MIT */
#ifndef WORKER_MBARRIER_H
#define WORKER_MBARRIER_H

/**
 * @file mbarrier.h
 * Warps at instructions that wait for barrier objects in shared memory or for their cluster, live or in a core.
 *
 * Registers, objects and sizes of clusters can be read only while the device stands still, and code is read only while
 * it runs: so the instructions of each image are searched for when it is looked at first, and only warps that stand at
 * one of them cost a read.
 */

#include "agentd/worker/target/target.h"
#include "waits/mbarrier.h"

struct symbols_image;

/** Most lanes at one place whose registers and objects are read in one look: two or three reads each. */
#define MBARRIERS_MAX 128u
/** Most workgroups whose cluster is asked for in one look: those of one grid cost one call. */
#define MBARRIERS_CLUSTERS_MAX 1024u

/** An instruction that waits. */
struct mbarrier_site {
	uint64_t pc;
	bool is_cluster;		 /**< For the cluster, and not for an object: */
	struct waits_mbarrier_wait wait; /**< zeros. */
};

/** Those of an image, ascending. */
struct mbarrier_sites {
	struct mbarrier_site *list;
	size_t n, capacity;
	bool is_cut; /**< There are more than are kept. */
};

/** Find the instructions of a relocated image.  @param arch  NULL: not known.  @return 0, -ENOMEM. */
int mbarrier_sites_find(const struct symbols_image *image, const char *arch, struct mbarrier_sites *ret);
/** Free a list; accepts a zeroed one. */
void mbarrier_sites_deinit(struct mbarrier_sites *s);

/** Where registers and shared memory of a stopped warp come from. */
struct mbarrier_source {
	/** @return whether @p n registers from @p first on were read: of a lane, or uniform ones of the warp. */
	bool (*words)(const void *ctx, bool is_uniform, uint32_t lane, uint32_t first, uint32_t n, uint32_t *ret);
	/** @return whether all bytes were read. */
	bool (*shared)(const void *ctx, uint32_t lane, uint32_t address, void *buf, uint32_t size);
	/** @return whether it is known in how large a cluster its block is; @p ret is left alone where not. */
	bool (*cluster)(const void *ctx, uint32_t ret[3]);
	const void *ctx;
};

/** All of one look. */
struct mbarriers {
	struct target_waves *waves; /**< Gets them. */
	uint32_t left_out; /**< Warps that were not looked at, for lack of room or time. */
	uint32_t cut;	   /**< Warps in images of which not all instructions are known. */
};

/** Make room for those of one look.  @return 0, -ENOMEM. */
int mbarriers_begin(struct mbarriers *m, struct rpc_arena *a, struct target_waves *waves);
/**
 * Read what the lanes of a warp wait for.
 * @param wave   Position of the warp.
 * @param pcs    Of its lanes, of which those in @p lanes are there.
 * @param sites  Of the image that it executes; NULL: not known.
 * @param late   There is no time left.
 */
void mbarriers_add(struct mbarriers *m, uint32_t wave, const uint64_t *pcs, uint32_t lanes,
		   const struct mbarrier_sites *sites, const struct mbarrier_source *from, bool late);
/** @return what is missing of them, in the arena; NULL for nothing. */
const char *mbarriers_missing(const struct mbarriers *m, struct rpc_arena *a);

#endif /* WORKER_MBARRIER_H */
