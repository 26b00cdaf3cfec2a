/* SPDX-License-Identifier: MIT */
#ifndef WAITS_POLL_H
#define WAITS_POLL_H

/**
 * @file poll.h
 * Loops of AMD devices that read a word of memory until it compares as it should.
 *
 * Only loops of one straight piece of code are told, with one load in them and nothing that is not known to leave
 * memory and other registers alone.  Address and operands are taken from registers that the loop does not write; an
 * address may be remade from such registers in each round, by moves in front of the load.  What else is made of them
 * does not matter.
 */

#include "waits/isa.h"

/** How far a loop may reach, in bytes, in front of pc and behind it. */
#define WAITS_POLL_REACH 512u

enum waits_compare {
	WAITS_COMPARE_LT,
	WAITS_COMPARE_EQ,
	WAITS_COMPARE_LE,
	WAITS_COMPARE_GT,
	WAITS_COMPARE_NE,
	WAITS_COMPARE_GE,
	WAITS_COMPARE_COUNT,
};

/** Where a value comes from. */
struct waits_operand {
	enum { WAITS_OPERAND_NONE, WAITS_OPERAND_CONSTANT, WAITS_OPERAND_SCALAR, WAITS_OPERAND_VECTOR } kind;
	uint8_t reg;	/**< The first register. */
	uint64_t value; /**< The constant. */
};

/** How an address is made. */
struct waits_place {
	bool has_base;	/**< Scalar registers base and the next, and 32 bits of `lane`; else 64 bits of `lane`. */
	uint8_t base;
	uint8_t lane;	/**< Vector register. */
	/** What each round moves to `lane` and to the next register, where it does. */
	struct waits_operand made_of[2];
	int32_t offset;
	uint8_t data;	/**< Of a swap: the vector registers with what is written, and what is compared. */
};

/** A loop that polls. */
struct waits_poll {
	uint32_t begin, end; /**< Offsets in the code that was given: the first byte, and that behind the branch. */
	uint32_t load;	     /**< Of the load. */
	bool is_lock;	     /**< The load is a compare and swap. */
	bool sleeps;
	bool each_lane;	     /**< A lane leaves when its own word compares so; else all do together. */
	uint8_t bytes;	     /**< Of the word: 4 or 8. */
	struct waits_place place;
	/** The loop ends when ((word & mask) ^ toggle), of those that there are, compares so with `with`. */
	enum waits_compare op;
	bool is_signed;
	struct waits_operand with, mask, toggle;
};

/**
 * Find the loop around an instruction.
 * @param code  What surrounds it, up to WAITS_POLL_REACH on each side and the instruction itself.
 * @param at    Offset of the instruction.
 * @return 0; -ENOENT: it is in no loop that is known to poll; -ENOTSUP (unknown family).
 */
int waits_poll_find(enum waits_family f, const uint8_t *code, size_t size, size_t at, struct waits_poll *ret);

/** A register of a wave.  @return whether it is known. */
typedef bool waits_register_fn(void *ctx, bool is_vector, unsigned int reg, unsigned int lane, uint32_t *ret);

/** What one lane polls: it goes on when (word & mask) compares so with `with`. */
struct waits_word {
	uint64_t address;
	uint8_t bytes; /**< 1, 2, 4 or 8; of AMD's, one of the latter. */
	enum waits_compare op;
	bool is_signed;
	uint64_t with, mask;
};

/**
 * Tell what a lane polls.
 * @return 0, -ENODATA: a register is not known; -ENOTSUP: the condition is none that struct waits_word has.
 */
int waits_poll_word(const struct waits_poll *p, waits_register_fn *get, void *ctx, unsigned int lane,
		    struct waits_word *ret);
/** @return whether the loop ends with this in memory. */
bool waits_word_holds(const struct waits_word *w, uint64_t memory);
/** @return whether it ends with anything in memory, as where a number without sign has to be at least 0. */
bool waits_word_always_holds(const struct waits_word *w);

/** @return "lt", "eq", "lte", "gt", "ne" or "gte". */
const char *waits_compare_name(enum waits_compare op);
/** @return the compare that says the same of the operands in the other order. */
enum waits_compare waits_compare_swapped(enum waits_compare op);
/** @return the compare that is true where this one is not. */
enum waits_compare waits_compare_negated(enum waits_compare op);

#endif /* WAITS_POLL_H */
