/* SPDX-License-Identifier: MIT */
#ifndef WORKER_NCCL_H
#define WORKER_NCCL_H

/**
 * @file nccl.h
 * Communicators of NCCL's kernels, live or in a core.
 *
 * The kernels of each image are listed when it is looked at first.  What they were given was copied before, and leads
 * to the communicator in memory of the device, which is read while that stands still.  Who asks finds out where the
 * warps are, and so whether they wait by what was read.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentd/worker/target/target.h"

struct symbols_image;

/** Most dispatches that are looked at, and reads of memory, in one look. */
#define NCCL_LAUNCHES_MAX 16u
#define NCCL_READS_MAX	  256u

/** Addresses of the kernels of an image, ascending. */
struct nccl_kernels {
	uint64_t *list;
	size_t n, capacity;
};

/** Find NCCL's kernels of a relocated image.  @return 0, -ENOMEM. */
int nccl_kernels_find(const struct symbols_image *image, struct nccl_kernels *ret);
/** Free a list; accepts a zeroed one. */
void nccl_kernels_deinit(struct nccl_kernels *k);
/** @return whether one of them begins there. */
bool nccl_kernels_has(const struct nccl_kernels *k, uint64_t entry);

/** Where facts about stopped warps come from. */
struct nccl_source {
	/** @return whether the wave is of one of the kernels that were listed. */
	bool (*is_kernel)(const void *ctx, const struct wave *w);
	/** @return whether all bytes of memory of the wave's device were read. */
	bool (*memory)(const void *ctx, const struct wave *w, uint64_t address, void *buf, uint32_t size);
	const void *ctx;
	uint64_t deadline_ns; /**< 0: none. */
};

/** Read the communicators of NCCL's kernels; the waves, and what kernels were given, are in @p waves already. */
void nccl_read(const struct nccl_source *from, struct rpc_arena *a, struct target_waves *waves);

#endif /* WORKER_NCCL_H */
