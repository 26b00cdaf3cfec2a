/* SPDX-License-Identifier: MIT */
#ifndef VALUES_PLACE_H
#define VALUES_PLACE_H

/**
 * @file place.h
 * Where the bytes of a variable are, and reading them.
 *
 * A place is a list of pieces.  What cannot be told is a hole with a reason: no byte is ever made
 * up.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"
#include "values/frame.h"
#include "values/machine.h"

/** What is known of a value. */
enum values_state {
	VALUES_OK,
	VALUES_PARTIAL,	      /**< Some of its bytes are known. */
	VALUES_OPTIMISED_OUT, /**< The compiler has kept it nowhere. */
	VALUES_UNAVAILABLE,   /**< It is in no place here that is known; the reason says why. */
	VALUES_NOT_SAVED,     /**< It was in a caller's register that nobody has saved. */
	VALUES_UNREADABLE,    /**< The place is known, and its content was not to be had. */
	VALUES_INACTIVE,      /**< The lane does not execute: its registers are old. */
	VALUES_PROLOGUE,      /**< The function has not set up its stack frame yet. */
};

enum values_piece_kind {
	VALUES_PIECE_HOLE,
	VALUES_PIECE_REGISTER,
	VALUES_PIECE_MEMORY,
	VALUES_PIECE_BYTES,
};

#define VALUES_REST UINT64_MAX /**< Bits of the last piece of a variable whose size is not said. */

struct values_piece {
	enum values_piece_kind kind;
	uint64_t bits;	 /**< How many of the value's bits, or VALUES_REST. */
	uint64_t offset; /**< First bit within the register, the memory or the bytes. */
	uint64_t number; /**< DWARF's number of the register; the address of memory. */
	enum values_space space;
	/** Bytes: @p n_bytes of them; NULL: those of @p number. */
	const uint8_t *bytes;
	size_t n_bytes;
	enum values_state state; /**< Of a hole. */
	const char *reason;	 /**< Of a hole; a constant string. */
};

#define VALUES_PIECES_MAX 256u

/** The pieces [first, first + n) are the place; others are left over from finding it. */
struct values_place {
	size_t first, n, used;
	bool uses_frame; /**< Some piece lies in the function's stack frame. */
	bool rows;	 /**< AMD's dialect: a vector register is that of all lanes. */
	struct values_piece pieces[VALUES_PIECES_MAX];
};

/** Make a place a single hole. */
void values_place_set_hole(struct values_place *p, enum values_state state, const char *reason);

/** What was read of a value. */
struct values_bytes {
	enum values_state state;
	const char *reason; /**< Why it is not VALUES_OK; NULL when the state says it all. */
	bool has_address;   /**< Of the first memory that could not be read. */
	uint64_t address;
};
/**
 * Read the bytes of a place.
 * @param data   @p size bytes; unknown ones become 0.
 * @param known  @p size bytes: 1 where all bits of the byte are known.
 */
void values_place_read(const struct values_place *p, const struct values_frame *f, size_t size,
		       uint8_t *data, uint8_t *known, struct values_bytes *ret);
/**
 * Are the same bytes behind both, whatever lanes they were found for?  False where that is not certain, as of
 * registers and memory that each lane has its own of.
 * @param generic  Generic addresses mean the same in all lanes.
 */
bool values_place_is_shared(const struct values_place *a, const struct values_place *b, bool generic);
/** Append the place as text: `R6:R7`, `v2`, `private 0x40`, `constant`. */
void values_place_print(const struct values_place *p, const struct values_frame *f, struct out *o);

#endif /* VALUES_PLACE_H */
