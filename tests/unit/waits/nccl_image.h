/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_WAITS_NCCL_IMAGE_H
#define TESTS_UNIT_WAITS_NCCL_IMAGE_H

/**
 * @file nccl_image.h
 * Memory of a process that runs NCCL, as each release lays it out: a communicator with its channels, rings, trees and
 * connections, and what two blocks keep in their shared memory.  Whatever of it is not named here is random.
 */

#include "agentd/worker/nccl/nccl.h"

#define NCCL_COMM     UINT64_C(0x7f5c00000000)
#define NCCL_BYTES    0x30000u
#define NCCL_RANK     2u
#define NCCL_RANKS    8u
#define NCCL_CHANNELS 3u
#define NCCL_BLOCKS   2u
#define NCCL_WARPS    8u
/** Channels of the blocks: 0 and 2. */
#define NCCL_MASK UINT64_C(5)
/** Where shared memory begins, and its bytes. */
#define NCCL_SHARED	  0x400u
#define NCCL_SHARED_BYTES 22016u
#define NCCL_RELEASES	  11u

/** How one release, or several that are alike, lay these out, in bytes. */
struct nccl_release {
	const char *name;
	uint16_t comm, sizes, pointer; /**< Its size; in it, sizes of buffers, and the address of the channels. */
	uint16_t first, channel; /**< The first channel, and how far they are apart. */
	uint16_t place, up, down; /**< In a channel, of its ring and its tree. */
	uint16_t receive, step; /**< Of a rank, connections to receive by; in one, steps that were taken. */
	uint16_t own, type;	/**< In shared memory, the channel, and what kind of work it is; 0: not known. */
	uint16_t works[2];	/**< There, the work itself: before sm_90, and from then on. */
	uint16_t work;		/**< Bytes of one that is no pair. */
};
extern const struct nccl_release nccl_releases[NCCL_RELEASES];

/** What all blocks execute, which is the number of its code as well. */
enum nccl_kind { NCCL_SIMPLE, NCCL_LL, NCCL_LL128, NCCL_TREE, NCCL_PAIRS, NCCL_KINDS };

struct nccl_image {
	const struct nccl_release *release;
	enum nccl_kind kind;
	bool is_sm_90;
	uint8_t memory[NCCL_BYTES], shared[NCCL_BLOCKS][NCCL_SHARED_BYTES], arguments[64];
	/* The stop. */
	struct wave waves[NCCL_BLOCKS * NCCL_WARPS];
	struct target_arguments given;
	struct target_waves all;
	uint32_t reads;
};

/** Make all of it, the same for the same release and kind. */
void nccl_image_make(struct nccl_image *m, const struct nccl_release *r, enum nccl_kind kind, bool is_sm_90);

/** Read it as the worker does.  @return the only dispatch; NULL: none was found. */
const struct target_collective *nccl_image_read(struct nccl_image *m, struct rpc_arena *a);

/** @return the next rank behind, or in front of this one, in the ring of a channel. */
uint32_t nccl_image_next(uint32_t channel);
uint32_t nccl_image_previous(uint32_t channel);

/** @return where the order of its ring is. */
uint64_t nccl_image_order(uint32_t channel);

/** @return whether block @p block is told to have received nothing of just those that the image says. */
bool nccl_image_is_told(const struct nccl_image *m, const struct target_collective *c, uint32_t block);

/** @return how many steps were taken by a connection. */
uint64_t nccl_image_taken(uint32_t channel, uint32_t rank, uint32_t connection);
/** @return where it is, and what the device has of a channel's ranks. */
uint64_t nccl_image_connection(const struct nccl_release *r, uint32_t channel, uint32_t rank, uint32_t connection);
uint64_t nccl_image_peers(uint32_t channel);

#endif /* TESTS_UNIT_WAITS_NCCL_IMAGE_H */
