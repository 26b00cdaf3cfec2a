/* SPDX-License-Identifier: MIT */
#ifndef WAITS_SASS_POLL_H
#define WAITS_SASS_POLL_H

/**
 * @file sass_poll.h
 * Loops of NVIDIA devices that read a word of memory until it compares as it should.
 *
 * Each instruction of such a loop is known bit by bit; a loop with any other one is not told.  Address and operands are
 * taken from constants, and from registers that the loop does not write.
 */

#include "waits/poll.h"

/** How long a loop may be, in bytes. */
#define WAITS_SASS_POLL_REACH 512u

/** Where 32 bits come from. */
struct waits_sass_operand {
	enum {
		WAITS_SASS_NONE,
		WAITS_SASS_CONSTANT, /**< `value`. */
		WAITS_SASS_REGISTER, /**< Of the lane: number `value`. */
		WAITS_SASS_UNIFORM,  /**< Of the warp: number `value`. */
		WAITS_SASS_BANK,     /**< Constant bank 0, which holds the arguments, at `value`. */
	} kind;
	uint32_t value;
};

/** Most words of which any one ends a loop. */
#define WAITS_SASS_WORDS 4u

/** A word that a loop polls. */
struct waits_sass_poll {
	/** Offsets in the code: the loop's first byte, the load, and what is behind the branch. */
	uint32_t begin, load, end;
	bool is_lock;		   /**< The load is a compare and swap. */
	bool sleeps;
	enum waits_sass_space {
		WAITS_SASS_GLOBAL,
		WAITS_SASS_GENERIC, /**< Global, unless the device says that it is memory of the block or lane. */
		WAITS_SASS_SHARED,
	} space;
	bool of_device;			   /**< What others of the device write is asked for, and not of the system. */
	uint8_t bytes;			   /**< Of the word: 1, 2, 4 or 8. */
	bool extends;			   /**< One of 1 or 2 bytes has a sign, and is compared with 32 bits. */
	struct waits_sass_operand base[3]; /**< Lower and upper half of an address, and what is added. */
	int32_t offset;			   /**< Added as well. */
	uint8_t shift;			   /**< Of the address in shared memory, before that: it counts words. */
	/** The loop ends when ((word & mask) ^ toggle), of those that there are, compares so with `with`. */
	enum waits_compare op;
	bool is_signed;
	struct waits_sass_operand with[2], mask, toggle; /**< Lower half first. */
};

/** A loop that polls: it ends when one of the words is as it should be. */
struct waits_sass_polls {
	struct waits_sass_poll any[WAITS_SASS_WORDS]; /**< In the order in which they are compared. */
	uint8_t n;				      /**< At least 1. */
};

/**
 * Find the next loop that polls.
 * @param code  Instructions, one behind the other.
 * @param at    Where to begin to search for the loop's branch, a multiple of WAITS_SASS_BYTES; gets its position.
 * @return 0, -ENOENT (there is none), -ENOTSUP (unknown architecture).
 */
int waits_sass_poll_find(const char *arch, const void *code, size_t size, size_t *at, struct waits_sass_polls *ret);

/**
 * Find the next branch that leads back, of whatever kind and by any distance.  One from behind a loop into it brings
 * back lanes that had left it early: they have not seen what ends it.
 * @param at  Where to begin to search, a multiple of WAITS_SASS_BYTES; gets its position.
 * @return 0, -ENOENT (there is none), -ENOTSUP (unknown architecture).
 */
int waits_sass_back_find(const char *arch, const void *code, size_t size, size_t *at, size_t *ret_to);

/** What an operand is that is neither a constant nor none.  @return whether it is known. */
typedef bool waits_sass_operand_fn(const void *ctx, const struct waits_sass_operand *o, uint32_t *ret);

/**
 * Tell what a lane polls.
 * @return 0, -ENODATA: an operand is not known; -ENOTSUP: the condition is none that struct waits_word has, or no word
 *         of this size can be what it is compared with.
 */
int waits_sass_poll_word(const struct waits_sass_poll *p, waits_sass_operand_fn *get, const void *ctx,
			 struct waits_word *ret);

#endif /* WAITS_SASS_POLL_H */
