/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_PROCESSOR_H
#define COREFILE_PROCESSOR_H

/**
 * @file processor.h
 * What differs between cores of processes on one processor and another: x86_64.c, aarch64.c.  A core may be of another
 * one than this machine's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Most registers in a note, as words. */
#define COREFILE_WORDS_MAX 34
/** Room for one further set of registers. */
#define COREFILE_SET_MAX ((size_t)16 << 10)
#define COREFILE_SETS_MAX 4

/** A system call that a thread was in. */
struct corefile_call {
	int64_t number;
	uint64_t arguments[3]; /**< The first ones. */
};

struct corefile_processor {
	uint16_t elf;	 /**< EM_... */
	uint16_t elf_32; /**< The same of programs of 32 bits that it runs, too. */
	const char *tested; /**< How the agent was tested on it, in words; NULL: as docs/SUPPORT.md says of all. */
	uint8_t n_words; /**< Registers in NT_PRSTATUS; at most COREFILE_WORDS_MAX. */
	uint8_t stack_pointer, instruction; /**< Which words these are. */
	/** The word of each register, by its number in DWARF. */
	const uint8_t *dwarf;
	uint8_t n_dwarf;
	/** Further sets of registers that debuggers know, each a note named LINUX. */
	uint32_t sets[COREFILE_SETS_MAX];
	uint8_t n_sets;
	bool needs_code; /**< has_waited() does, and without it says that no thread was. */
	/**
	 * Was the thread in a system call that waited?
	 * @param code  8 bytes, from 4 in front of its next instruction on; NULL: they are not known, or not needed.
	 * @param ret   Set if it was.
	 */
	bool (*has_waited)(const uint64_t *words, const uint8_t *code, struct corefile_call *ret);
};

extern const struct corefile_processor corefile_x86_64, corefile_aarch64;

/** @param elf  Its number in ELF files.  @return NULL: nothing is known of it. */
const struct corefile_processor *corefile_processor_find(uint16_t elf);

#endif /* COREFILE_PROCESSOR_H */
