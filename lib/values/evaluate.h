/* SPDX-License-Identifier: MIT */
#ifndef VALUES_EVALUATE_H
#define VALUES_EVALUATE_H

/**
 * @file evaluate.h
 * Evaluates location expressions of DWARF 2 to 5 as compilers for GPUs write them.
 *
 * Three dialects are known.  NVIDIA's names registers of PTX, and says in an attribute which memory
 * an address is of.  LLVM's for AMD ends expressions in `DW_OP_lit1, DW_OP_swap, DW_OP_xderef`,
 * which is a place in private memory only behind a stack frame's address: behind a register or a
 * constant it is left over from a stack slot that is gone.  AMD's own compiler writes
 * DW_OP_LLVM_user operations (LLVM's AMDGPUDwarfExtensionsForHeterogeneousDebugging).
 *
 * The bytes may be hostile: steps, stack, pieces and calls have limits.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "values/frame.h"
#include "values/place.h"

/** Bytes of an expression of DWARF. */
struct values_operations {
	const uint8_t *data;
	size_t size;
};

/** A type that an expression converts to. */
struct values_base_type {
	uint32_t size; /**< Bytes, at most 8. */
	bool is_signed;
};

/** What an expression may ask for. */
struct values_scene {
	const struct values_frame *frame;
	struct values_operations frame_base; /**< Of the function; size 0: none. */
	bool is_marked; /**< The unit says that it is in AMD's dialect. */
	/** CUDA: DW_AT_address_class of the variable; 0: none. */
	uint64_t address_class;
	/** Addresses that DW_OP_addrx numbers, @p n_addresses of 8 bytes each. */
	const uint8_t *addresses;
	size_t n_addresses;
	/**
	 * Find an integer type by its offset in the unit.
	 * @return 0, -ENOENT (none, or no integer).
	 */
	int (*find_type)(void *context, uint64_t offset, struct values_base_type *ret);
	void *context;
};

/**
 * Evaluate an expression.  Always fills @p ret: what cannot be told is a hole with its reason.
 * @param ret  Pieces may point into the expression.
 */
void values_evaluate(const struct values_scene *scene, struct values_operations x,
		     struct values_place *ret);
/**
 * Does an expression begin with an address that the linker gave?
 * @param ret_shared  It is one of a workgroup's memory, or of private memory.
 */
bool values_expression_is_static(struct values_operations x, uint64_t address_class,
				 bool *ret_shared);

#endif /* VALUES_EVALUATE_H */
