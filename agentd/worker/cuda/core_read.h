/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CUDA_CORE_READ_H
#define WORKER_CUDA_CORE_READ_H

/** @file core_read.h  A CUDA core as a target: shared by core_read.c and core_registers.c, for nobody else. */

#include "agentd/worker/cuda/exception.h"
#include "agentd/worker/cuda/warp.h"
#include "agentd/worker/mbarrier/mbarrier.h"
#include "agentd/worker/nccl/nccl.h"
#include "agentd/worker/spin/spin.h"
#include "agentd/worker/target/core_file.h"
#include "corefile/cuda/model.h"
#include "values/argument/kernels.h"

/** Of a multiprocessor, at most (cuda_write.h). */
#define CORE_CUDA_SLOTS 64u

/** A row, found by the name that other rows have for it. */
struct core_cuda_key {
	uint64_t id;
	uint32_t device, row;
};

struct core_cuda_module {
	bool seen;
	int error; /**< Why it could not be read. */
	uint64_t start, end; /**< Addresses of its code. */
	struct values_kernels kernels;
	struct mbarrier_sites mbarriers;
	struct spin_sites spins;
	struct nccl_functions nccl;
};

struct core_cuda {
	struct target t; /**< First: a struct target pointer is one of these. */
	struct core_file file;
	struct cudacore core;
	struct core_cuda_key *grids, *contexts; /**< Sorted. */
	uint32_t *numbers;			/**< queue_id of each context. */
	uint32_t *stand_ins; /**< Of each device: queue_id of waves without a context in the core. */
	struct core_cuda_module *modules;
};

/** @return the core that @p t is the first member of. */
static inline struct core_cuda *core_cuda_of(struct target *t)
{
	return (struct core_cuda *)(void *)t;
}

/** A warp, and what its view points to. */
struct core_cuda_warp {
	struct cuda_warp view;
	struct cudbgshim_warp whole;
	const struct cudacore_warp *row;
	const struct cudacore_lane *lanes[CUDBGSHIM_MAX_LANES]; /**< By number; NULL: no row. */
	uint64_t pcs[CUDBGSHIM_MAX_LANES];
	uint32_t exceptions[CUDBGSHIM_MAX_LANES];
};

/** Every warp as a wave; the warps of a block follow one another. */
struct core_cuda_waves {
	struct wave *waves;
	const struct cudacore_warp **warps; /**< Which warp each is. */
	size_t n;
	uint32_t left_out;
	struct cuda_parts parts;
};

/* core_read.c */

/** Make a wave of every warp; with @p sm of those on the multiprocessors with that number.  @return 0, -ENOMEM. */
int core_cuda_make_waves(const struct core_cuda *c, const uint32_t *sm, struct rpc_arena *a,
			 struct core_cuda_waves *ret);
/** Look at the warp of a row.  @param ret  Points into the core and into itself. */
void core_cuda_warp_of(const struct core_cuda *c, const struct cudacore_warp *row,
		       struct core_cuda_warp *ret);
/** @return the dimensions in the type of the debugger API. */
static inline struct cudbgshim_dim3 core_cuda_dim(const uint32_t from[3])
{
	return (struct cudbgshim_dim3){ from[0], from[1], from[2] };
}
/** @return the row of a grid; NULL if it is not in the core. */
const struct cudacore_grid *core_cuda_grid(const struct core_cuda *c, uint32_t device, uint64_t id);
/** Copy from a blob.  @return bytes copied, fewer where the blob ends. */
size_t core_cuda_copy(const struct corefile_blob *b, uint64_t offset, void *buf, size_t size);

/** Find out what is asked often of a module, if that was not done yet. */
void core_cuda_look(struct core_cuda *c, uint32_t module);

/* core_arguments.c */

/** List the parameters of the dispatches that waves are of.  @return 0, -ENOMEM. */
int core_cuda_read_arguments(struct core_cuda *c, const struct core_cuda_waves *w, bool all,
			     struct rpc_arena *a, struct target_waves *ret);

/** Read the communicators of NCCL's kernels that warps execute; what these were given is listed. */
void core_cuda_read_nccl(struct core_cuda *c, const struct core_cuda_waves *w, struct rpc_arena *a,
			 struct target_waves *ret);

/* core_registers.c */

/** List the barrier objects that warps wait for.  @param ret_missing  What is missing of them.  @return 0, -ENOMEM. */
int core_cuda_read_mbarriers(struct core_cuda *c, const struct core_cuda_waves *w, struct rpc_arena *a,
			     struct target_waves *ret, const char **ret_missing);
/** List the state of convergence barriers that is in the core.  @return what is missing of it; NULL: nothing. */
const char *core_cuda_read_convergence(const struct core_cuda *c, const struct core_cuda_waves *w, struct rpc_arena *a,
				       struct target_waves *ret);
/** List the words that warps poll, as core_cuda_read_mbarriers(). */
int core_cuda_read_spins(struct core_cuda *c, const struct core_cuda_waves *w, struct rpc_arena *a,
			 struct target_waves *ret, const char *ret_missing[SPINS_MISSING_MAX]);
/** target_ops.registers. */
int core_cuda_registers(struct target *t, const struct target_waves_from *from,
			const struct target_registers_wanted *what, struct rpc_arena *a,
			struct rpc_wave_registers *ret, uint64_t *ret_stopped_us,
			struct agent_err *err);
/** target_ops.wave_memory. */
int core_cuda_wave_memory(struct target *t, const struct target_waves_from *from,
			  const struct target_wave_memory *what, struct rpc_arena *a,
			  struct agent_err *err);
/** Fill in the registers of a warp.  @return 0, -ENOMEM. */
int core_cuda_fill_registers(const struct core_cuda *c, const struct cudacore_warp *w,
			     const struct wave *wave, const struct target_registers_wanted *what,
			     struct rpc_arena *a, struct rpc_wave_registers *ret);
/**
 * List who called the function that a warp is in: the return addresses, innermost first.
 * @param ret, ret_n  Callers without frames, up to the first of which nothing is in the core.
 * @return 0, -ENODATA (the core promises more), -ENOMEM.
 */
int core_cuda_read_callers(const struct core_cuda *c, const struct cudacore_warp *w,
			   struct rpc_arena *a, struct rpc_caller **ret, size_t *ret_n);
/**
 * Read instructions: no memory of the core has them, but the images as they were loaded.
 * @return bytes read.
 */
size_t core_cuda_read_code(const struct core_cuda *c, uint64_t address, void *buf, size_t size);

#endif /* WORKER_CUDA_CORE_READ_H */
