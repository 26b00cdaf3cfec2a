/* SPDX-License-Identifier: MIT */
#ifndef WAITS_SASS_H
#define WAITS_SASS_H

/**
 * @file sass.h
 * Instructions of NVIDIA devices at which warps wait for others, and who is missing there.
 *
 * A barrier of a block has a number, and counts threads or stands for all of the block.  Other than at AMD's barriers,
 * a warp that has exited without having come is still counted where the barrier counts threads.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "waits/confidence.h"

#define WAITS_SASS_BYTES 16u
/** Barriers of one block. */
#define WAITS_SASS_BARRIERS 16u

enum waits_sass_op {
	WAITS_SASS_OTHER,
	WAITS_SASS_BARRIER,   /**< BAR.SYNC, BAR.RED: come to a barrier, and wait. */
	WAITS_SASS_ARRIVE,    /**< BAR.ARV: come to a barrier, and go on. */
	WAITS_SASS_COPY_ARRIVES, /**< ARRIVES.LDGSTSBAR: copies arrive at a barrier when they are done. */
	WAITS_SASS_WARP_SYNC, /**< WARPSYNC: wait for lanes of the same warp. */
	WAITS_SASS_CONVERGE,  /**< BSYNC: wait at a convergence barrier for lanes of the same warp (cbu.h). */
	WAITS_SASS_CLUSTER_ARRIVE, /**< UCGABAR_ARV: come to the barrier of the cluster, and go on. */
	WAITS_SASS_CLUSTER_WAIT,   /**< UCGABAR_WAIT: wait for all threads of the cluster that have not exited. */
	WAITS_SASS_SLEEP,	   /**< NANOSLEEP that no predicate guards: wait for a while, and for nobody. */
	WAITS_SASS_TRANSFER,  /**< A call, a branch or a jump: elsewhere, unless its target is known. */
	WAITS_SASS_OP_COUNT,
};

/** What an operand is that no constant tells. */
#define WAITS_SASS_NO_REGISTER 0xffu

/** An instruction, as far as it is told. */
struct waits_sass {
	enum waits_sass_op op;
	uint8_t id_register; /**< Where the number is; WAITS_SASS_NO_REGISTER: it is `id`. */
	uint8_t id;
	uint8_t count_register; /**< Where the count is; WAITS_SASS_NO_REGISTER: it is `count`. */
	uint16_t count;	       /**< Threads; 0: all of the block. */
	uint8_t mask_register; /**< Of WARPSYNC, likewise. */
	bool mask_is_constant; /**< It is a constant of the launch, in memory; `mask` is 0. */
	uint32_t mask;	       /**< Lanes that have to come. */
	bool has_target;       /**< Of WAITS_SASS_TRANSFER: it leads to `target`, from where it is. */
	int64_t target;
};

/** @return whether the instructions of an architecture are known, such as "sm_90". */
bool waits_sass_known(const char *arch);

/**
 * Tell an instruction.
 * @return 0, -ENOTSUP (unknown architecture), -EINVAL (fewer than WAITS_SASS_BYTES bytes).
 */
int waits_sass_read(const char *arch, const void *bytes, size_t size, struct waits_sass *ret);

/** @return the assembler's name: "BAR.SYNC"; NULL for WAITS_SASS_OTHER and WAITS_SASS_TRANSFER. */
const char *waits_sass_name(enum waits_sass_op op);

/** One barrier of a block, and the block's warps, counted. */
struct waits_sass_barrier {
	uint32_t count;	  /**< Threads that have to come; 0: all that have not exited. */
	uint32_t waiting; /**< Warps that wait there. */
	uint32_t others;  /**< Warps of the block that are there and do not wait at it, or not with all lanes. */
	bool may_arrive;  /**< The kernel can come to a barrier without waiting, or that is not known. */
};

/** Who has not come. */
enum waits_sass_missing {
	WAITS_SASS_MISSING_NOBODY,     /**< It is not known why anyone waits: the barrier may be about to open. */
	WAITS_SASS_MISSING_ALL,	       /**< All of the others have to come. */
	WAITS_SASS_MISSING_SOME,       /**< Some of the others do, and it is not known which. */
	WAITS_SASS_MISSING_EXITED,     /**< Too few are left: it never opens. */
	WAITS_SASS_MISSING_MAY_EXITED, /**< The same, unless some came without waiting and exited then. */
};

/** Tell who is missing at a barrier at which at least one warp waits. */
enum waits_sass_missing waits_sass_missing(const struct waits_sass_barrier *b);

#endif /* WAITS_SASS_H */
