/* SPDX-License-Identifier: MIT */
#ifndef VALUES_MACHINE_H
#define VALUES_MACHINE_H

/**
 * @file machine.h
 * What a reader of values needs of a wave: its registers and the memory that it sees.  A live wave
 * of either vendor and one of a core file are each a table of two functions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Memory by the place that an address counts from. */
enum values_space {
	VALUES_SPACE_GLOBAL,
	VALUES_SPACE_PRIVATE, /**< The lane's own: AMD's scratch, NVIDIA's local memory. */
	VALUES_SPACE_SHARED,  /**< The workgroup's: AMD's LDS, NVIDIA's shared memory. */
	VALUES_SPACE_CONSTANT,
	VALUES_SPACE_PARAMETER, /**< Parameters of a CUDA kernel. */
	VALUES_SPACE_GENERIC,	/**< Any of the first three, by windows of the address space. */
	VALUES_SPACE_CODE,
	VALUES_SPACE_COUNT
};
/** @return "global", "private", ...; "?" for others. */
const char *values_space_name(enum values_space s);

/** Registers by kind.  All are read in words of 32 bits. */
enum values_file {
	VALUES_FILE_SCALAR,	  /**< AMD: s0.. */
	VALUES_FILE_VECTOR,	  /**< AMD: v0.., a word for each lane. */
	VALUES_FILE_ACCUMULATION, /**< AMD: a0.., a word for each lane. */
	VALUES_FILE_PC,		  /**< AMD: 0 low, 1 high; the same for the next two. */
	VALUES_FILE_EXEC,
	VALUES_FILE_VCC,
	VALUES_FILE_STATUS,
	VALUES_FILE_REGISTER,	       /**< NVIDIA: R0.., a word for each lane. */
	VALUES_FILE_UNIFORM,	       /**< NVIDIA: UR0.. */
	VALUES_FILE_PREDICATE,	       /**< NVIDIA: P0.., 0 or 1, for each lane. */
	VALUES_FILE_UNIFORM_PREDICATE, /**< NVIDIA: UP0.. */
};

/** A wave as a reader of values sees it. */
struct values_machine {
	void *context; /**< First argument of the functions. */
	/** @return 0, or a negative errno when that register is not to be had. */
	int (*read_register)(void *context, uint32_t lane, enum values_file file, uint32_t number,
			     uint32_t *ret);
	/** Read all @p size bytes.  @return 0, or a negative errno. */
	int (*read_memory)(void *context, uint32_t lane, enum values_space space, uint64_t address,
			   void *ret, size_t size);
	uint32_t lanes; /**< Lanes of the wave: 32 or 64. */
	/**
	 * AMD: stack registers count bytes of all lanes together, as code for buffer scratch has
	 * it (values_stack_counts_waves()).
	 */
	bool stack_counts_waves;
};

/**
 * Tell how compiled code for a generation of AMD GPUs uses s32 and s33.  It has one stack pointer
 * for the wave; up to gfx10, without gfx94x and gfx95x, it is an offset into the wave's buffer.
 * @param gfx_target_version  As the kernel driver tells it: 90010 is gfx90a, 110000 gfx1100.
 */
bool values_stack_counts_waves(uint32_t gfx_target_version);

#endif /* VALUES_MACHINE_H */
