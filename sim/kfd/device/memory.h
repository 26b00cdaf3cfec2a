/* SPDX-License-Identifier: MIT */
#ifndef KFDSIM_MEMORY_H
#define KFDSIM_MEMORY_H

/**
 * @file memory.h
 * Memory objects: what ALLOC_MEMORY_OF_GPU makes, and how a GPU reaches its bytes.
 *
 * All memory of GPUs and all system memory that the driver hands out lies in one store, a sparse
 * file that processes map through the device (os.h).  An object is a range of it, and no range is
 * used twice.  The memory of user pointers stays where the application has it.
 */

#include "sim.h"

/** One memory object of a process. */
struct sim_memory {
	TAILQ_ENTRY(sim_memory) link;
	uint64_t handle;
	uint64_t va, size;	/**< Where GPUs see it. */
	uint64_t offset;	/**< Of its bytes in the store; of a user pointer the address. */
	uint32_t flags;
	struct sim_gpu *gpu;
	uint64_t mapped; /**< One bit for each GPU, by its position. */
};

/** The command ALLOC_MEMORY_OF_GPU. */
int sim_memory_alloc(struct sim *s, struct sim_call *call, struct sim_process *p);
/** The command FREE_MEMORY_OF_GPU. */
int sim_memory_free(struct sim *s, struct sim_call *call, struct sim_process *p);
/** The command MAP_MEMORY_TO_GPU. */
int sim_memory_map(struct sim *s, struct sim_call *call, struct sim_process *p);
/** The command UNMAP_MEMORY_FROM_GPU. */
int sim_memory_unmap(struct sim *s, struct sim_call *call, struct sim_process *p);
/** The command AVAILABLE_MEMORY. */
int sim_memory_available(struct sim *s, struct sim_call *call, struct sim_process *p);
/** Find an object; NULL if there is none. */
struct sim_memory *sim_memory_find(struct sim_process *p, uint64_t handle);
/** Free all objects of a process. */
void sim_memory_end(struct sim *s, struct sim_process *p);
/** How many bytes of a GPU's own memory are taken, by all processes. */
/* The first address that no application on this machine can have. */
uint64_t sim_user_end(void);
uint64_t sim_memory_used(const struct sim *s, const struct sim_gpu *gpu);
/** How many bytes of memory objects a process has, without user pointers. */
uint64_t sim_memory_of(const struct sim_process *p);

/** The offset at which a process maps the doorbells of its queues on a GPU. */
uint64_t sim_memory_doorbells(const struct sim_process *p, const struct sim_gpu *gpu);

/**
 * Read what a GPU sees at an address.
 * @return 0, -EFAULT: not all of it is mapped on this GPU.
 */
int sim_memory_read(struct sim *s, struct sim_process *p, const struct sim_gpu *gpu, uint64_t va,
		    void *buf, size_t size);
/** Write likewise. */
int sim_memory_write(struct sim *s, struct sim_process *p, const struct sim_gpu *gpu, uint64_t va,
		     const void *buf, size_t size);
/** Copy @p size bytes.  @return 0, -EFAULT. */
int sim_memory_copy(struct sim *s, struct sim_process *p, const struct sim_gpu *gpu, uint64_t to,
		    uint64_t from, uint64_t size);
/** Fill @p size bytes, a multiple of four, with a word.  @return 0, -EFAULT. */
int sim_memory_fill(struct sim *s, struct sim_process *p, const struct sim_gpu *gpu, uint64_t to,
		    uint32_t word, uint64_t size);

#endif /* KFDSIM_MEMORY_H */
