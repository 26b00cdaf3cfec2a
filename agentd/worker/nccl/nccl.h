/* SPDX-License-Identifier: MIT */
#ifndef WORKER_NCCL_H
#define WORKER_NCCL_H

/**
 * @file nccl.h
 * Communicators of NCCL's kernels, live or in a core.
 *
 * Kernels and functions of each image are listed when it is looked at first.  What kernels were given was copied
 * before, and leads to the communicator in memory of the device, which is read while that stands still.  What the warps
 * of a block stand in says of whom it receives, and by which protocol: no more than that takes is read.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentd/worker/target/target.h"
#include "waits/collective/nccl.h"

struct symbols_image;

/** Most dispatches that are looked at, and calls that read memory, in one look. */
#define NCCL_LAUNCHES_MAX 16u
#define NCCL_READS_MAX	  256u
/** Most that is told of one dispatch: of whom its blocks have received nothing. */
#define NCCL_RECEIVES_MAX 256u

/** Code of a kernel, or of a function that kernels call. */
struct nccl_function {
	uint64_t start, size;
	struct waits_nccl_function is;
};

/** Kernels and functions of an image, by ascending addresses. */
struct nccl_functions {
	struct nccl_function *list;
	size_t n, capacity;
};

/** Find NCCL's kernels and functions in a relocated image.  @return 0, -ENOMEM. */
int nccl_functions_find(const struct symbols_image *image, struct nccl_functions *ret);
/** Free a list; accepts a zeroed one. */
void nccl_functions_deinit(struct nccl_functions *f);
/** @return whether a kernel begins there. */
bool nccl_functions_has_kernel(const struct nccl_functions *f, uint64_t entry);
/** @return the one around an address; NULL: there is none. */
const struct nccl_function *nccl_functions_around(const struct nccl_functions *f, uint64_t pc);

/** Code of a device that has any of them: of thousands of modules it is a few, and each wave is looked for in all. */
struct nccl_code {
	uint32_t gpu_id;
	const struct nccl_functions *functions;
};

/** Where memory may be: the debugger API has a call for each, which fails for what is in the other. */
enum nccl_memory { NCCL_DEVICE, NCCL_HOST /**< Pinned. */, NCCL_MEMORIES };

/** Where facts about stopped warps come from. */
struct nccl_source {
	const struct nccl_code *code;
	size_t n_code;
	/** @return whether all bytes were read, of memory that the wave's device can reach. */
	bool (*memory)(const void *ctx, const struct wave *w, enum nccl_memory of, uint64_t address, void *buf,
		       uint32_t size);
	const void *ctx;
	uint64_t deadline_ns; /**< 0: none. */
	/** @return whether all bytes of shared memory of the wave's block were read. */
	bool (*shared)(const void *ctx, const struct wave *w, uint32_t address, void *buf, uint32_t size);
	/**
	 * @return whether the wave's device is sm_90 or newer: code compiled for such has works of blocks elsewhere.
	 * Whether it executes code made of PTX for one before sm_90 is not known: there they are not found.
	 */
	bool (*is_sm_90_or_newer)(const void *ctx, const struct wave *w);
};

/** Add what was found in a module to @p list, which has room, if anything was.  @return how many it has then. */
size_t nccl_code_add(struct nccl_code *list, size_t n, uint32_t gpu_id, const struct nccl_functions *found);

/** Read the communicators of NCCL's kernels; the waves, and what kernels were given, are in @p waves already. */
void nccl_read(const struct nccl_source *from, struct rpc_arena *a, struct target_waves *waves);

#endif /* WORKER_NCCL_H */
