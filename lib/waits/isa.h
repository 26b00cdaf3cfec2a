/* SPDX-License-Identifier: MIT */
#ifndef WAITS_ISA_H
#define WAITS_ISA_H

/**
 * @file isa.h
 * Instructions of AMD devices by which a wave waits, or goes on elsewhere.
 *
 * Generations use the same word for different instructions (BF8A is s_barrier before gfx11, and s_wait_idle
 * from then on), so a word means something only together with the exact target.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Targets whose tables agree. */
enum waits_family {
	WAITS_GFX9,
	WAITS_GFX10,
	WAITS_GFX11,
	WAITS_GFX12,
	WAITS_GFX12_5,
	WAITS_FAMILY_COUNT, /**< Stands for a target that is not known. */
};

/** @param gfx_target_version  As the kernel numbers targets: 90010 is gfx90a, 110000 is gfx1100. */
enum waits_family waits_family_of(uint32_t gfx_target_version);

/** Instructions that are told apart. */
enum waits_op {
	WAITS_OP_OTHER,
	WAITS_OP_BARRIER,	 /**< s_barrier: arrive, and wait for the workgroup. */
	WAITS_OP_BARRIER_SIGNAL, /**< s_barrier_signal, with _isfirst or without: arrive. */
	WAITS_OP_BARRIER_WAIT,	 /**< s_barrier_wait: wait. */
	WAITS_OP_SLEEP,	      /**< s_sleep, s_sleep_var, s_monitor_sleep. */
	WAITS_OP_WAIT_MEMORY, /**< Wait for loads and stores of the wave itself. */
	WAITS_OP_GWS_BARRIER, /**< ds_gws_barrier: wait for the waves of the whole grid. */
	WAITS_OP_HALT,
	WAITS_OP_TRAP,
	WAITS_OP_END,
	WAITS_OP_JUMP, /**< s_setpc_b64: to where a register says. */
	WAITS_OP_BRANCH,      /**< Always. */
	WAITS_OP_BRANCH_SCC0, /**< If a condition holds; from here on in the order of the encoding. */
	WAITS_OP_BRANCH_SCC1,
	WAITS_OP_BRANCH_VCCZ,
	WAITS_OP_BRANCH_VCCNZ,
	WAITS_OP_BRANCH_EXECZ,
	WAITS_OP_BRANCH_EXECNZ,
	WAITS_OP_COUNT,
};

/** An instruction, as far as it is told. */
struct waits_instruction {
	enum waits_op op;
	const char *name;  /**< As the assembler has it, such as "s_wait_loadcnt"; NULL with WAITS_OP_OTHER. */
	int16_t immediate; /**< The lower half of the word. */
};

/**
 * Tell an instruction by its first word.
 * @return 0, -ENOTSUP (unknown family), -EINVAL (fewer than 4 bytes).
 */
int waits_instruction_read(enum waits_family f, const void *bytes, size_t size, struct waits_instruction *ret);

/** @return the assembler's name, or that of the first one of several: "s_barrier"; NULL for WAITS_OP_OTHER. */
const char *waits_op_name(enum waits_op op);

/** @return whether the instruction is a branch to a place of its own. */
static inline bool waits_op_branches(enum waits_op op)
{
	return op >= WAITS_OP_BRANCH && op <= WAITS_OP_BRANCH_EXECNZ;
}

/** @return where a branch at @p pc leads to. */
static inline uint64_t waits_branch_target(const struct waits_instruction *i, uint64_t pc)
{
	return pc + 4 + (uint64_t)((int64_t)i->immediate * 4);
}

#endif /* WAITS_ISA_H */
