/* SPDX-License-Identifier: MIT */
#ifndef WAITS_INSTRUCTION_H
#define WAITS_INSTRUCTION_H

/**
 * @file instruction.h
 * The few instructions of AMD devices that loops which poll memory are made of, with their operands.  Internal.
 *
 * Everything else is WAITS_DOES_UNKNOWN, and whoever meets it in a loop says nothing about that loop.
 */

#include "waits/isa.h"
#include "waits/poll.h"

/** What an instruction does. */
enum waits_does {
	WAITS_DOES_UNKNOWN,
	WAITS_DOES_NOTHING, /**< It waits for the wave's own memory, drops caches, or pauses for a few clocks. */
	WAITS_DOES_SLEEP,
	WAITS_DOES_LOAD,
	WAITS_DOES_SWAP,    /**< Compare and swap, which returns what was there. */
	WAITS_DOES_COMPARE_LANES, /**< Each lane: one bit of `to`. */
	WAITS_DOES_COMPARE, /**< To SCC. */
	WAITS_DOES_AND_LANES, /**< Of a vector register, as the next. */
	WAITS_DOES_XOR_LANES,
	WAITS_DOES_MOVE, /**< from[0] to a vector register, and of 8 bytes from[1] to the next: halves of 32 bits. */
	WAITS_DOES_READ_LANE, /**< From a vector register to a scalar one. */
	WAITS_DOES_AND,	    /**< Of scalar registers, as the next two. */
	WAITS_DOES_OR,
	WAITS_DOES_AND_NOT,
	WAITS_DOES_BRANCH,
};

/** Scalar registers by their numbers in operands. */
#define WAITS_VCC  106u
#define WAITS_EXEC 126u

/** An instruction. */
struct waits_step {
	enum waits_does does;
	uint32_t size; /**< Bytes; 0 with WAITS_DOES_UNKNOWN. */
	uint8_t bytes; /**< Of the values: 4 or 8. */
	uint8_t to;    /**< Register, scalar or vector as the kind of instruction has it. */
	struct waits_operand from[2];
	enum waits_compare op;
	bool is_signed;
	struct waits_place place; /**< Of a load or swap. */
	struct waits_instruction branch;
};

/** Decode one instruction.  @param size  What is known of the code from there on. */
struct waits_step waits_step_read(enum waits_family f, const uint8_t *code, size_t size);

#endif /* WAITS_INSTRUCTION_H */
