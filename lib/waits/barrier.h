/* SPDX-License-Identifier: MIT */
#ifndef WAITS_BARRIER_H
#define WAITS_BARRIER_H

/**
 * @file barrier.h
 * Does a saved wave of an AMD device wait at the barrier of its workgroup, and who has not come?
 */

#include "waits/confidence.h"
#include "waits/isa.h"

/** What was saved of a wave. */
struct waits_saved {
	uint32_t status;     /**< STATUS; before gfx12. */
	uint32_t state_priv; /**< STATE_PRIV; from gfx12 on. */
	uint32_t barrier;    /**< What s_get_barrier_state told of barrier -1; from gfx12 on. */
	/** The code at pc - 4 and at pc; how many of these 8 bytes are known, from the end or all: 0, 4 or 8. */
	uint8_t code[8];
	uint8_t n_code;
};

/** What one wave does at its workgroup's barrier. */
struct waits_at_barrier {
	bool waits;
	bool other;	 /**< It waits at a barrier, but not at that of the workgroup: @c id says at which. */
	bool at_pc;	 /**< The instruction is at pc; else, if one was found, in front of it. */
	bool found;	 /**< The instruction was found. */
	int16_t id;	 /**< From gfx12 on, of s_barrier_wait: -1 is the workgroup's. */
	enum waits_op op; /**< The instruction, if found. */
	enum waits_confidence confidence; /**< Of `waits`. */
};

/**
 * Tell whether a wave waits.
 *
 * Before gfx12 STATUS[12] and an s_barrier at pc or in front of it together prove that it does.  The bit alone
 * makes it likely, and so does an s_barrier at pc: such a wave is not the one that others wait for.  From gfx12
 * on no register says so: the wave is at s_barrier_wait, which it executes again when it goes on, and
 * STATE_PRIV[2] is clear.
 * @return 0, -ENOTSUP (unknown family).
 */
int waits_at_barrier(enum waits_family f, const struct waits_saved *s, struct waits_at_barrier *ret);

/** A barrier's state from gfx12 on. */
struct waits_barrier_state {
	bool valid;
	uint32_t members, signals;
};

/** Decode what s_get_barrier_state tells. */
struct waits_barrier_state waits_barrier_state_read(uint32_t word);

/** The waves of a workgroup, counted. */
struct waits_block {
	enum waits_family family;
	uint32_t expects; /**< Waves that it was launched with; 0: not known. */
	uint32_t seen;	  /**< Waves that are there. */
	uint32_t waiting; /**< Of them, at the barrier. */
	enum waits_confidence confidence; /**< The weakest of those that wait. */
	bool same_words; /**< From gfx12 on: all saved the same barrier state, which is @c state. */
	struct waits_barrier_state state;
};

/** Who has not come to the barrier. */
struct waits_missing {
	uint32_t missing; /**< How many of the waves that are there but do not wait have not arrived. */
	bool candidates;  /**< It is not known which of them: some have arrived already. */
	uint32_t ended;	  /**< Waves that were launched and are gone: no barrier waits for them. */
	enum waits_confidence confidence;
};

/**
 * Tell who is missing at a barrier at which at least one wave waits.
 *
 * An ended wave holds no barrier of AMD: those missing are always among the waves that are there.
 * @return 0; -ENODATA: nobody is missing of those that are known, so it is not known why anyone waits.
 */
int waits_block_missing(const struct waits_block *b, struct waits_missing *ret);

#endif /* WAITS_BARRIER_H */
