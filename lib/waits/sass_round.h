/* SPDX-License-Identifier: MIT */
#ifndef WAITS_SASS_ROUND_H
#define WAITS_SASS_ROUND_H

/**
 * @file sass_round.h
 * One round of a loop of NVIDIA devices that polls memory: what its registers hold, as far as it has been followed.
 * Internal.
 */

#include "waits/sass_poll.h"
#include "waits/sass_word.h"

/* Low 12 bits: the operation, and what its second operand is. */
enum {
	WAITS_SASS_VOTE = 0x806,
	WAITS_SASS_VOTEU = 0x886,
	WAITS_SASS_YIELD = 0x946,
	WAITS_SASS_BRANCH = 0x947,
	WAITS_SASS_EXIT = 0x94d,
};

/** Of the second word, bits from 41 on say when to issue the instruction. */
#define WAITS_SASS_MEANING ((UINT64_C(1) << 41) - 1)
#define WAITS_SASS_ZERO	   0xffu /**< RZ */
#define WAITS_SASS_TRUE	   7u	 /**< PT */

/** Most values that instructions of a round make: two for each. */
#define WAITS_SASS_VALUES (2 * WAITS_SASS_POLL_REACH / WAITS_SASS_BYTES)
#define WAITS_SASS_UNIFORM_REGISTERS 63u
/** Most loads of a round, of which one is compared. */
#define WAITS_SASS_LOADS 4u

/** What a register holds that has been written in this round. */
struct waits_sass_value {
	bool is_word;			/**< Of a word; else it is `is`. */
	bool is_upper;			/**< Its upper half. */
	uint8_t load;			/**< What has loaded it. */
	struct waits_sass_operand is;	/**< Does not change from round to round. */
	struct waits_sass_operand mask, toggle; /**< What the word was combined with. */
};

/** A round. */
struct waits_sass_round {
	enum waits_sass_age age;
	struct waits_sass_poll *poll; /**< The word that is compared next, or was last. */
	bool sleeps;
	/** Positions in `values` for each register, or one of the two below. */
	uint8_t registers[256], uniforms[256];
	struct waits_sass_value values[WAITS_SASS_VALUES];
	uint8_t n_values;
	struct waits_sass_poll loads[WAITS_SASS_LOADS]; /**< What they say of address and size. */
	uint8_t n_loads;
	bool is_done;		/**< The compare is whole: `poll` has the load of what was compared. */
	bool has_low;		/**< Lower halves were compared, to `predicate`. */
	unsigned int predicate;
};

/** It is not written in the loop. */
#define WAITS_SASS_KEPT	   0xffu
/** It is written in the loop, and what it holds is not known: it may be of the round before. */
#define WAITS_SASS_UNKNOWN 0xfeu

/** Begin to follow the instructions of a loop, from its first byte to its branch back. */
void waits_sass_round_begin(struct waits_sass_round *r, const uint8_t *code, size_t begin, size_t branch);
/** The loop goes on where the last word is not as it should be: compare another one, with what registers hold. */
void waits_sass_round_next(struct waits_sass_round *r, struct waits_sass_poll *poll);
/** Follow one.  @return false: it may do what is not known. */
bool waits_sass_round_follow(struct waits_sass_round *r, struct waits_sass_word w, uint32_t at);

#endif /* WAITS_SASS_ROUND_H */
