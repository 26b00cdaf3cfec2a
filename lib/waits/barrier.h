/* SPDX-License-Identifier: MIT */
#ifndef WAITS_BARRIER_H
#define WAITS_BARRIER_H

/**
 * @file barrier.h
 * Does a saved wave of an AMD device wait at a barrier, and who has not come?
 */

#include "waits/confidence.h"
#include "waits/isa.h"

/** Barriers at which a wave can wait. */
enum waits_barrier {
	WAITS_BARRIER_BLOCK,   /**< That of its workgroup. */
	WAITS_BARRIER_NAMED,   /**< gfx12.5: the named one that it has joined last. */
	WAITS_BARRIER_CLUSTER, /**< gfx12.5: that of its cluster. */
	WAITS_BARRIER_COUNT,
};

/** What was saved of a wave. */
struct waits_saved {
	uint32_t status;     /**< STATUS; before gfx12. */
	uint32_t state_priv; /**< STATE_PRIV; from gfx12 on. */
	uint32_t barrier;    /**< What s_get_barrier_state told of barrier -1; from gfx12 on. */
	uint32_t cluster;    /**< What it told of barrier -3; from gfx12.5 on. */
	/** The code at pc - 4 and at pc; how many of these 8 bytes are known, from the end or all: 0, 4 or 8. */
	uint8_t code[8];
	uint8_t n_code;
};

/** What one wave does at a barrier. */
struct waits_at_barrier {
	bool waits;
	enum waits_barrier which; /**< At which one, if it waits. */
	bool at_pc;	 /**< The instruction is at pc; else, if one was found, in front of it. */
	bool found;	 /**< The instruction was found. */
	/**
	 * From gfx12 on, of s_barrier_wait: -1 is the workgroup's, -3 the cluster's.  1 to 16 say no more than
	 * that the barrier is a named one: the wave waits at the one that it has joined last (LLVM,
	 * AMDGPUExecutionSynchronization).
	 */
	int16_t id;
	enum waits_op op; /**< The instruction, if found. */
	enum waits_confidence confidence; /**< Of `waits`. */
};

/**
 * Tell whether a wave waits.
 *
 * Before gfx12 STATUS[12] and an s_barrier at pc or in front of it together prove that it does.  The bit alone
 * makes it likely, and so does an s_barrier at pc: such a wave is not the one that others wait for.  From gfx12
 * on no register says so: the wave is at s_barrier_wait, which it executes again when it goes on, and
 * STATE_PRIV[2] is clear: [3] for a named barrier, [16] for the cluster's.  A wave that has joined no barrier does not
 * wait at a named one, and nothing says whether it has: that it waits is inferred.
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

/** Named barriers whose states are saved, numbers 1 to 16. */
#define WAITS_NAMED_BARRIERS 16u

/**
 * Find the named barrier for which waves of a workgroup wait.
 *
 * Which one they have joined is not saved.  It is one that is not complete: of which fewer have come than are members.
 * A workgroup may have as few as four, at which higher numbers come around: these have the same states.
 * @param words       What s_get_barrier_state told of numbers 1 to 16.
 * @param ret_number  Its number.
 * @return 0; -ENODATA: none fits; -ENOTUNIQ: several do.
 */
int waits_named_find(const uint32_t words[WAITS_NAMED_BARRIERS], uint32_t *ret_number,
		     struct waits_barrier_state *ret);

/** The waves of a workgroup, counted. */
struct waits_block {
	enum waits_family family;
	enum waits_barrier which; /**< The barrier, not the cluster's. */
	uint32_t expects; /**< Waves that it was launched with; 0: not known. */
	uint32_t seen;	  /**< Waves that are there. */
	uint32_t waiting; /**< Of them, at the barrier. */
	enum waits_confidence confidence; /**< The weakest of those that wait. */
	/** From gfx12 on: all saved the same barrier state, @c state.  Of a named barrier: its state is known. */
	bool same_words;
	struct waits_barrier_state state;
};

/** Who has not come to the barrier. */
struct waits_missing {
	/** How many of the waves that are there but do not wait have not arrived; at a named barrier, of all. */
	uint32_t missing;
	bool candidates; /**< It is not known which of them: some have arrived already. */
	uint32_t ended; /**< Waves that were launched and are gone: no barrier but a named one waits for them. */
	enum waits_confidence confidence;
};

/**
 * Tell who is missing at a barrier at which at least one wave waits.
 *
 * An ended wave holds no barrier of AMD but a named one: those missing are always among the waves that are there.  At a
 * named one any wave of the workgroup can come, as often as it likes: of these all is inferred, and without its state
 * it may be any of those that are elsewhere, or one that waits at another one.  Those that have ended may be missing
 * there as well, since they have not left it.
 * @return 0; -ENODATA: nobody is missing of those that are known, so it is not known why anyone waits.
 */
int waits_block_missing(const struct waits_block *b, struct waits_missing *ret);

#endif /* WAITS_BARRIER_H */
