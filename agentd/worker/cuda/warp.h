/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CUDA_WARP_H
#define WORKER_CUDA_WARP_H

/**
 * @file warp.h
 * One warp, of a stopped device or of a core: which of its lanes speaks for it, and what the wire
 * says of it.
 */

#include "agentd/worker/target/target.h"
#include "cudbgshim.h"

#define CUDA_CALLERS_MAX    64u
#define CUDA_REGISTERS_MAX  256u
#define CUDA_PREDICATES_MAX 32u

/** Memories that warps see, live and in a core: target_ops.wave_spaces. */
#define CUDA_WAVE_SPACES                                                                           \
	(TARGET_SPACES_COMMON | TARGET_SPACE_BIT(RPC_MEMORY_SPACE_GENERIC) |                       \
	 TARGET_SPACE_BIT(RPC_MEMORY_SPACE_PARAM) | TARGET_SPACE_BIT(RPC_MEMORY_SPACE_CONSTANT) |  \
	 TARGET_SPACE_BIT(RPC_MEMORY_SPACE_CODE))

/** What a driver says of a warp, or what the rows of a core do in its words. */
struct cuda_warp {
	const struct cudbgshim_warp *whole; /**< No core tells a breakpoint from a trap. */
	const uint64_t *pcs;		    /**< Of each lane. */
	const uint32_t *exceptions;	    /**< CUDBGException_t of each lane, as told; see cuda_warp_exception(). */
	uint32_t gpu_id, sm, index, n_lanes;
	uint32_t lanes; /**< Lanes that are known, as bits: valid ones; of a core, with a row. */
	bool broken;	/**< A breakpoint or a trap has stopped it. */
};

/**
 * @return the exception that a lane raised; 0: none.  A driver of 580 tells the exception of a warp for every valid
 *         lane, also those that wait while others execute and raised nothing; cuda-gdb looks at active lanes alone.
 */
uint32_t cuda_warp_exception(const struct cuda_warp *w, uint32_t lane);
/** @return the first lane with an exception, else that of cuda_warp_first_lane(). */
uint32_t cuda_warp_speaker(const struct cuda_warp *w);
/** @return the first lane that is active, else the first of all; 0 when there is none. */
uint32_t cuda_warp_first_lane(const struct cuda_warp *w);
/**
 * @return whether a lane of the warp shows an exception.  An exception of a multiprocessor that none
 *         of its warps shows is one of a warp that has exited.
 * @param code  CUDBGException_t; 0: any.
 */
bool cuda_warp_shows(const struct cuda_warp *w, uint32_t code);
/**
 * Describe a warp as a wave, without leader, context and grid.
 * @param speaker  The lane whose exception and pc are the wave's.
 */
void cuda_warp_fill_wave(const struct cuda_warp *w, uint32_t speaker, struct wave *ret);
/** @return whether blocks that come so many at a time are in a cluster. */
bool cuda_is_cluster(const struct cudbgshim_dim3 *size);
/**
 * Tell the size of the cluster that the block of a warp is in.
 * @param g    Its grid; not looked at where the warp itself has the size.
 * @param ret  Stays as it is where it is in none.
 * @return whether that is known: a kernel may have clusters of one of two sizes.
 */
bool cuda_warp_cluster(const struct cuda_warp *w, const struct cudbgshim_grid *g, uint32_t ret[3]);
/** @return whether lanes are at different places. */
bool cuda_warp_is_apart(const struct cuda_warp *w);

/** What is made of warps whose lanes are at different places, of one capture. */
struct cuda_parts {
	struct rpc_arena *arena;
	uint32_t n; /**< Parts so far; at most WAVES_PARTS_MAX. */
	uint32_t left_out; /**< Warps that are told as whole, as there were too many parts. */
};

/**
 * Add the parts of a warp to a wave that is filled in otherwise: lanes at one pc, all of which are
 * active or none.  The exception of a part is that of its first lane that has one.
 * @param speaker  As for cuda_warp_fill_wave(): its part is the first.
 */
void cuda_warp_add_parts(const struct cuda_warp *w, uint32_t speaker, struct cuda_parts *p,
			 struct wave *ret);
/** @return what is missing because of the bound, in the arena; NULL for nothing. */
const char *cuda_parts_missing(const struct cuda_parts *p);
/** Add the warp's number in its block.  @param thread  Where in the block @p lane is. */
void cuda_warp_add_number(uint32_t n_lanes, struct cudbgshim_dim3 block_dim, uint32_t lane,
			  struct cudbgshim_dim3 thread, struct wave *ret);

/* ------------------------------------------------------------------ warp_registers.c ---------- */

/** What there is of a lane, or once for its warp, in 32-bit words. */
enum cuda_words {
	CUDA_WORDS_REGISTERS,
	CUDA_WORDS_PREDICATES,
	CUDA_WORDS_UNIFORM_REGISTERS,
	CUDA_WORDS_UNIFORM_PREDICATES,
	CUDA_WORDS_CC,	   /**< One word. */
	CUDA_WORDS_THREAD, /**< Three words: x, y, z in the block. */
};

/** Where registers of a warp come from. */
struct cuda_registers_source {
	const struct cuda_warp *warp;
	const struct cudbgshim_grid *grid; /**< NULL: not known.  Of a core: entry, sizes. */
	uint32_t n[CUDA_WORDS_CC];	   /**< How many there should be. */
	bool is_counted; /**< The kernel uses so many registers; else that is what the chip has. */
	uint32_t shared_bytes;
	bool no_lanes; /**< Which lanes raised the exception of the warp is not known. */
	/** @return how many of @p n words there are, those behind them are 0; or negative. */
	int (*read)(const void *ctx, enum cuda_words what, uint32_t lane, uint32_t first,
		    uint32_t n, uint32_t *words);
	const void *ctx;
};

/** Fill in the registers of a warp.  @return 0, -errno of the arena or of the source's read(). */
int cuda_warp_fill_registers(const struct cuda_registers_source *from, const struct wave *wave,
			     const struct target_registers_wanted *what, struct rpc_arena *a,
			     struct rpc_wave_registers *ret);

/** @return whether a device is sm_90 or newer, by the name of its architecture. */
bool cuda_arch_is_sm_90_or_newer(const char *sm_type);

#endif /* WORKER_CUDA_WARP_H */
