/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_NATIVE_PROCESSOR_H
#define HOSTSTACK_NATIVE_PROCESSOR_H

/**
 * @file processor.h
 * All that unwinding knows of a processor: x86_64.c, aarch64.c.  The process, or its core, may be of another one than
 * this machine's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hoststack/native/registers.h"
#include "hoststack/native/stack_copy.h"

/** What the code in front of a return address does. */
enum native_call {
	NATIVE_CALLS_NOTHING,
	NATIVE_CALLS_POINTER, /**< It calls what a register or memory says. */
	NATIVE_CALLS_ADDRESS, /**< It says itself what it calls. */
};

/** Most bytes of a call instruction. */
#define NATIVE_CALL_MAX 8

/** One processor.  Registers are numbered as in DWARF. */
struct native_processor {
	uint16_t elf;	     /**< EM_... */
	uint8_t n_registers; /**< At most NATIVE_REGISTERS. */
	uint8_t stack_pointer, frame_pointer, instruction;
	/** What a call leaves the return address in; `instruction`: in memory. */
	uint8_t return_address;
	/** Bit for bit: a function that does not speak of these leaves them to its caller as they were. */
	uint64_t kept;
	/** Bits of an address of code; the others may be a signature. */
	uint64_t address_bits;
	bool signs_addresses; /**< Tables have instructions that say so, without operands. */
	/** Bytes in front of a return address that native_processor.calls() looks at. */
	size_t call_size;
	/** @param end  Behind them, as is @p address.  @param ret  The function. */
	enum native_call (*calls)(const uint8_t *end, uint64_t address, uint64_t *ret);
	/**
	 * Where does a jump of a procedure linkage table lead?  NULL: calls leave return addresses in memory.  The
	 * next one may be NULL, too.
	 * @return @p address if it is none, or cannot be read.
	 */
	uint64_t (*follow)(struct hoststack_memory *m, uint64_t address);
	/**
	 * Read what the kernel has put on the stack for a signal, where its unwind table does not tell all.
	 * @return 0; -ENOENT: it is another frame; what native_stack_copy_read() returns.
	 */
	int (*interrupted)(struct native_stack_copy *stack, const struct native_registers *r,
			   struct native_registers *ret);
};

extern const struct native_processor native_x86_64, native_aarch64;

/** @param elf  Its number in ELF files.  @return NULL: nothing is known of it. */
const struct native_processor *native_processor_find(uint16_t elf);

#endif /* HOSTSTACK_NATIVE_PROCESSOR_H */
