/* SPDX-License-Identifier: MIT */
#ifndef VALUES_FRAME_H
#define VALUES_FRAME_H

/**
 * @file frame.h
 * A frame of a lane: where it executes, and the registers as its function has them.
 */

#include <stdbool.h>
#include <stdint.h>

#include "values/call_frame.h"
#include "values/machine.h"
#include "values/register_map.h"

struct values_frame {
	const struct values_machine *machine;
	uint32_t lane;
	bool is_cuda;
	/**
	 * Address of the image: where the lane is; in a caller, where it will return to.  Without
	 * the bias that the image was loaded with.
	 */
	uint64_t pc;
	uint64_t load_bias;
	/** The frame that was called from here; NULL for the innermost one. */
	const struct values_frame *callee;
	/** CUDA: the map of its image, and the function; NULL: none. */
	const struct register_map *registers;
	bool broken_registers; /**< There is none as it is broken. */
	const char *function;
	uint64_t function_start;
	/** CUDA: rules for its caller's registers. */
	struct call_frame_row row;
	bool has_row, has_cfa;
	uint64_t cfa; /**< The address of its stack frame, in private memory. */
};

/** @return the address by which lines, blocks, and lists of the frame are looked up. */
uint64_t values_frame_lookup(const struct values_frame *f);
/**
 * Find the rules for the frame's caller, and its stack frame.
 * @param t  NULL: nothing is known of call frames.
 */
void values_frame_unwind(struct values_frame *f, const struct call_frame_table *t);
/** Make it the frame of another lane at the same address, which was called by nobody known. */
void values_frame_move(struct values_frame *f, uint32_t lane);
/**
 * Read a register as the frame's function has it.
 * @return 0, -ENODATA (its callee did not save it), -ENXIO (nothing is known), or what the machine
 *         says.
 */
int values_frame_register(const struct values_frame *f, enum values_file file, uint32_t number,
			  uint32_t *ret);

#endif /* VALUES_FRAME_H */
