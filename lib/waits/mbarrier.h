/* SPDX-License-Identifier: MIT */
#ifndef WAITS_MBARRIER_H
#define WAITS_MBARRIER_H

/**
 * @file mbarrier.h
 * Barrier objects in shared memory of NVIDIA's devices (mbarrier), and the instructions that wait for them, from
 * sm_90 on.
 *
 * An object counts arrivals, and bytes of copies.  When all that are expected have come, it goes on to the next
 * phase; whoever waits has the parity of the phase that is to end.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WAITS_MBARRIER_BYTES 8u
/** The most that can arrive: all threads of the largest cluster. */
#define WAITS_MBARRIER_EXPECTED_MAX 16384u
/** What an operand is that is not there, or always 0. */
#define WAITS_MBARRIER_NO_REGISTER 0xffu

/** An instruction that waits: SYNCS.PHASECHK.TRYWAIT. */
struct waits_mbarrier_wait {
	uint8_t address_register; /**< Or WAITS_MBARRIER_NO_REGISTER. */
	uint8_t uniform_register; /**< Added to it; or WAITS_MBARRIER_NO_REGISTER. */
	uint8_t phase_register;	  /**< Bit 31 is the parity; WAITS_MBARRIER_NO_REGISTER: it is 0. */
	int32_t offset;		  /**< Added as well. */
	/**
	 * So many instructions behind it belong to the same wait and change none of the registers: the answer is looked
	 * at, and it is asked again.
	 */
	uint8_t behind;
};

/** @return whether devices of the architecture, such as "sm_90", have instructions that wait for these objects. */
bool waits_mbarrier_known(const char *arch);

/**
 * Find the next instruction that waits.
 * @param code    Instructions, one behind the other.
 * @param at      Where to begin, a multiple of WAITS_SASS_BYTES; gets the position of the instruction.
 * @return 0, -ENOENT (there is none), -ENOTSUP (unknown architecture).
 */
int waits_mbarrier_find(const char *arch, const void *code, size_t size, size_t *at, struct waits_mbarrier_wait *ret);

/** @return the assembler's name of such an instruction. */
const char *waits_mbarrier_name(void);

/** What an object says. */
struct waits_mbarrier {
	bool phase;	   /**< Parity of the phase that goes on. */
	uint32_t expected; /**< Arrivals in each phase. */
	uint32_t pending;  /**< Of them, those that have not come. */
	int32_t tx;	   /**< Bytes of copies that are expected and have not come. */
};

/**
 * Read an object.
 * @return 0; -EINVAL: it is none, or is just being changed: no arrivals are expected, more are pending than are
 *         expected, or nothing is left that the phase could wait for.
 */
int waits_mbarrier_read(uint64_t word, struct waits_mbarrier *ret);

/** @return whether one with this phase register waits for the object. */
bool waits_mbarrier_blocks(const struct waits_mbarrier *m, uint32_t phase_register);

#endif /* WAITS_MBARRIER_H */
