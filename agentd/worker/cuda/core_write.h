/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CUDA_CORE_WRITE_H
#define WORKER_CUDA_CORE_WRITE_H

/** @file core_write.h  A core of a CUDA process: shared by core_write.c and core_state.c, for nobody else. */

#include "agentd/worker/cuda/cuda.h"
#include "corefile/cuda/write.h"

/** Most bytes that a core copies, of everything together. */
#define CUDA_CORE_COPIED_MAX (UINT64_C(1) << 30)
#define CUDA_CORE_MISSING_MAX (CUDBGSHIM_MAX_DEVICES + 8)

struct cuda_core_chunk;

/** Where shared or local memory of a grid's blocks and lanes ends: at one address for all of them. */
struct cuda_core_end {
	uint64_t grid;
	uint64_t address; /**< 0: not found yet. */
	uint32_t dev;
	bool is_asked; /**< An estimate has asked, and the address is the answer: 0 is "none". */
};

struct cuda_core {
	struct target_cuda *c;
	bool full;
	bool estimate; /**< Only sizes are wanted, and no contents. */
	enum cudacore_layout layout;
	struct cudacore core;
	/** What the core's blobs point into.  Registers have their own: they lie together in the file. */
	struct cuda_core_chunk *chunks, *words;
	uint64_t copied;
	uint64_t deadline_ns; /**< End of the stop; later, end of fetching memory. */
	uint32_t ticket;
	struct corefile_source source; /**< Memory that is read when the file is written. */
	struct cudacore_image *image;
	/* Why something is not in it. */
	bool too_much, late, no_memory, lost_regions;
	uint32_t left_out; /**< Warps that no debugger would take. */
	uint32_t unread;   /**< Warps without registers. */
	uint32_t cut;	   /**< Warps without some of their registers. */
	uint32_t no_image;
	uint32_t windows_tried; /**< Times that a window of generic addresses was looked for. */
	uint64_t read;	   /**< Devices whose state of this stop is at hand, one bit each. */
	uint64_t no_state; /**< Devices whose warps are not in it, one bit each. */
	struct cuda_core_end shared_end, local_end; /**< For the grid that was asked for last. */
};

/** @return room for a copy; NULL when there is none left, which is remembered. */
void *cuda_core_copy(struct cuda_core *k, uint64_t size);
/**
 * As cuda_core_copy(), for @p n registers: where nothing else lies between them, one write takes
 * many.
 */
uint32_t *cuda_core_copy_words(struct cuda_core *k, uint32_t n);
/**
 * Add memory of the devices that is not in the core yet.
 * @param at  A stopped lane that sees the memory, which is copied now; NULL: it is read when the
 *            file is written.
 */
void cuda_core_add_memory(struct cuda_core *k, uint64_t address, uint64_t size,
			  const struct cudbgshim_place *at);

/* core_state.c */

/**
 * Add all devices, contexts, modules and multiprocessors: what is known without a stop.
 * @return 0, -ENOMEM.
 */
int cuda_core_add_devices(struct cuda_core *k);
/**
 * Add what the warps of stopped devices do, until the deadline.
 * @param devices  One bit each.
 * @return 0, -ENOMEM, or -errno of the API when the session is over.
 */
int cuda_core_add_warps(struct cuda_core *k, uint64_t devices);

#endif /* WORKER_CUDA_CORE_WRITE_H */
