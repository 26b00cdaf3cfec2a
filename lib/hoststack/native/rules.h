/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_NATIVE_RULES_H
#define HOSTSTACK_NATIVE_RULES_H

/** @file rules.h  How the caller's registers are found at one instruction: an entry of .eh_frame. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Most registers of a processor, by their numbers in DWARF. */
#define NATIVE_REGISTERS 33

struct native_processor;

enum native_rule {
	NATIVE_UNSAID,
	NATIVE_UNDEFINED,
	NATIVE_SAME,
	NATIVE_AT_OFFSET,     /**< In memory, so far from the frame's address (CFA). */
	NATIVE_IS_OFFSET,     /**< The frame's address and so much. */
	NATIVE_IN_REGISTER,   /**< The value is the register's number. */
	NATIVE_AT_EXPRESSION, /**< In memory, where an expression says. */
	NATIVE_IS_EXPRESSION,
};

/** Where one register is. */
struct native_cell {
	uint8_t rule; /**< enum native_rule. */
	int64_t value;
	const uint8_t *expression; /**< In the bytes of the entry. */
	size_t size;
};

/** The rules at an instruction. */
struct native_rules {
	uint64_t begin, end; /**< The code that the entry is of. */
	bool is_signal;	     /**< The kernel made this frame: the caller was interrupted, and did not call. */
	struct native_cell cfa; /**< NATIVE_IS_OFFSET from a register, or NATIVE_IS_EXPRESSION. */
	uint64_t cfa_register;
	struct native_cell registers[NATIVE_REGISTERS];
};

/** Bytes of one entry behind its length, and where they lie in the process. */
struct native_entry {
	const uint8_t *bytes;
	size_t size;
	uint64_t address;
};

/**
 * Read the rules at an instruction.
 * @param common  The entry that @p function names (CIE).
 * @return 0; -ENOENT (the entry is not of that instruction); -EBADMSG (it makes no sense, or is of a kind that no
 *         compiler writes for this processor).
 */
int native_rules_read(const struct native_processor *processor, const struct native_entry *common,
		      const struct native_entry *function, uint64_t pc, struct native_rules *ret);

#endif /* HOSTSTACK_NATIVE_RULES_H */
