/* SPDX-License-Identifier: MIT */
#ifndef DISASM_H
#define DISASM_H

/**
 * @file disasm.h
 * Instructions of GPU code as text.
 *
 * The text comes from what the machine has, found at run time: for AMD's processors LLVM, for
 * NVIDIA's their own program nvdisasm.  Without one that knows the processor every instruction is
 * shown as its words.  LLVM gives up with abort() on a processor that it does not know, and the
 * bytes may be anything that a process has in its memory, so both run in a child process that can
 * do nothing but answer; a crash of LLVM costs one instruction.
 *
 * Not for privileged processes, and not for several threads at once.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct disasm;

/** Room for the longest text and its NUL. */
#define DISASM_TEXT_SIZE 192
/** No instruction is longer. */
#define DISASM_LONGEST 24u
/** Milliseconds that a run of nvdisasm may take; it needs half a second to begin. */
#define DISASM_PROGRAM_MS 15000u

struct disasm_options {
	const char *cpu;     /**< Processor as LLVM calls it ("gfx90a") or NVIDIA does ("sm_90"). */
	uint32_t lanes;	     /**< Lanes of the waves that run the code: 32, 64; 0 if unknown. */
	const char *library; /**< Path or name of libLLVM; NULL: the newest one there is. */
	const char *program; /**< Path of nvdisasm; NULL: no program is started. */
	uint32_t program_ms; /**< Milliseconds for each run of it; 0: DISASM_PROGRAM_MS. */
};

/**
 * Find nvdisasm in PATH, or else in a toolkit's directory: CUDA_HOME, CUDA_PATH, /usr/local/cuda.
 * One that others than root and the caller could replace, or a directory on the way to it, is none.
 * @param ret  Its path without symbolic links.
 */
bool disasm_find_nvdisasm(char ret[PATH_MAX]);

/** A line of the listing: an instruction, or a word that is none. */
struct disasm_line {
	uint64_t address;
	uint32_t size;	 /**< Bytes; never 0. */
	bool decoded;	 /**< Whether it is an instruction; otherwise the text is its words. */
	bool has_target; /**< Whether it is a relative branch to @p target. */
	uint64_t target;
	char text[DISASM_TEXT_SIZE];
};

/**
 * Begin to disassemble code for a processor.  A missing library or program is no failure, see
 * disasm_note().
 * @param ret  Release with disasm_close().
 * @return 0, -EINVAL (no processor can have that name), -ENOMEM, -errno of starting the child.
 */
int disasm_open(const struct disasm_options *o, struct disasm **ret);
/** End the child and release everything; NULL is allowed. */
void disasm_close(struct disasm *d);

/**
 * @return what makes the text, such as "libLLVM-15.so.1" or "/usr/bin/nvdisasm"; NULL when only
 *         words are shown.
 */
const char *disasm_source(const struct disasm *d);
/**
 * @return what the user should know about the text so far, such as why there are only words; NULL
 *         for nothing.
 */
const char *disasm_note(const struct disasm *d);

/** @return the bytes of the shortest instruction; the others are multiples of it. */
uint32_t disasm_word_size(const struct disasm *d);

/**
 * Disassemble one instruction.
 * @param size  Bytes at @p bytes, at least 1; never more are looked at.
 */
void disasm_one(struct disasm *d, const void *bytes, size_t size, uint64_t address,
		struct disasm_line *ret);

/** The lines that are wanted: @c before ones in front of @c around, and @c count from there on. */
struct disasm_range {
	uint64_t start; /**< Address of the first byte, where some instruction begins. */
	uint64_t around;
	size_t before, count;
};

/**
 * Disassemble lines around an address.  Instructions differ in length, so they are counted from the
 * start; when none begins at @p around, what lies in front of it is shown as words.
 * @param ret    Room for before + count lines.
 * @param ret_at Index of the line at @p around.
 * @return the number of lines, fewer than asked for at either end of the bytes; -EINVAL (@p around
 *         is not in the bytes), -ENOMEM.
 */
ssize_t disasm_lines(struct disasm *d, const void *bytes, size_t size, const struct disasm_range *r,
		     struct disasm_line *ret, size_t *ret_at);

#endif /* DISASM_H */
