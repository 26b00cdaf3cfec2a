/* SPDX-License-Identifier: MIT */
#ifndef WORKER_NCCL_READING_H
#define WORKER_NCCL_READING_H

/** @file reading.h  One look at communicators, as the files of this directory share it. */

#include "agentd/worker/nccl/nccl.h"
#include "waits/collective/nccl_work.h"

/** Bytes that are read at once: no device, and no host, maps less than that, so that all of them are there, or none. */
#define NCCL_PAGE 4096u
/** How many of those are kept: what 16 channels of a ring take where nothing of them lies together. */
#define NCCL_PAGES 64u

/** Pages that were read, the oldest of which gives way. */
struct nccl_pages {
	uint8_t *bytes[NCCL_PAGES]; /**< NULL: there was none yet. */
	uint64_t at[NCCL_PAGES];
	uint32_t n, next;
	bool is_off; /**< A page was not there as a whole: no more are asked for. */
};

/** One look. */
struct nccl_reading {
	const struct nccl_source *from;
	struct rpc_arena *a;
	struct target_waves *waves;
	const struct wave *wave; /**< Of the dispatch that is looked at. */
	uint8_t bytes[WAITS_NCCL_COMM]; /**< Of its communicator. */
	struct waits_rccl_comm comm;
	unsigned int layout;
	uint64_t at, order;	 /**< Where it is, and the order of its first channel's ring. */
	enum waits_nccl_age age; /**< Of its release. */
	bool is_aged, has_age;	 /**< It was asked for; it is known. */
	unsigned int base;	 /**< At which of the places where shared memory may begin it was found last. */
	uint32_t reads;
	struct nccl_pages pages;		/**< Of the device of that wave. */
	uint64_t last[NCCL_MEMORIES];		/**< Where something was read last, of each. */
	bool has_last[NCCL_MEMORIES];
	bool cut; /**< A read was not tried, for lack of time, or after too many. */
};

/** Where the warps of a block stand. */
struct nccl_block {
	const struct nccl_function *first; /**< Warp 0. */
	const struct nccl_function *any;   /**< The one that is listed first. */
	bool is_seen, differs;		   /**< Not all stand in the same one. */
	const struct wave *wave;	   /**< One of them. */
	const struct nccl_function *in[WAITS_NCCL_WARPS_MAX];
	bool has_other; /**< One of them stands in no function of NCCL, or it is not known which one it is. */
};

/* memory.c */

/** @return whether the time for this look is over. */
bool nccl_is_over(const struct nccl_reading *r);
/** Read by a wave from now on: what was read by one of another device is forgotten. */
void nccl_read_by(struct nccl_reading *r, const struct wave *w);
void nccl_reading_deinit(struct nccl_reading *r);
/**
 * Read memory.  Each call of the driver is a read, while the device stands still: what lies together takes one.
 * @return whether all of it was read.
 */
bool nccl_read_bytes(struct nccl_reading *r, uint64_t address, void *buf, uint32_t size);
bool nccl_read_u32(struct nccl_reading *r, uint64_t address, uint32_t *ret);
bool nccl_read_u64(struct nccl_reading *r, uint64_t address, uint64_t *ret);
/** Likewise, where nothing else that is read lies beside it. */
bool nccl_read_once(struct nccl_reading *r, uint64_t address, void *buf, uint32_t size);
/** Likewise, of the shared memory of the block that a wave is of. */
bool nccl_read_shared(struct nccl_reading *r, const struct wave *w, uint32_t address, void *buf, uint32_t size);

/* nccl.c */

/** @return room for what a block has received nothing of; NULL: there is no more, which counts as not tried. */
struct target_receive *nccl_next_receive(struct nccl_reading *r, struct target_collective *to, uint32_t block);

/**
 * Read what has come by a connection.
 * @param peers  Of its channel.
 * @param i      Which one of those with that rank.
 * @return whether all of it was read.
 */
bool nccl_read_connection(struct nccl_reading *r, uint64_t peers, uint32_t from, uint32_t i,
			  enum waits_nccl_protocol protocol, bool has_empty_steps, struct target_receive *ret);

/* work.c */

/** @return what a block executes, if it receives point to point or along a tree; NULL: it does not, or nobody knows. */
const struct nccl_function *nccl_work_of(const struct nccl_block *b);

/** Read of whom such a block has received nothing. */
void nccl_read_work(struct nccl_reading *r, const struct waits_nccl_launch *launch, const struct nccl_function *f,
		    const struct nccl_block *b, uint32_t block, struct target_collective *to);

#endif /* WORKER_NCCL_READING_H */
