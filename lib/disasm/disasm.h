/* SPDX-License-Identifier: MIT */
#ifndef DISASM_H
#define DISASM_H

/**
 * @file disasm.h
 * Instructions of GPU code as text.
 *
 * The text comes from what the machine has, found at run time: the LLVM of AMD's processors, and of
 * NVIDIA's their own program nvdisasm.  Without one that knows the processor every instruction is shown
 * as its words.  LLVM gives up with abort() on a processor that it does not know, and the bytes may be
 * anything a process has in its memory, so both run in a child process that can do nothing but answer; a
 * crash of LLVM costs one instruction.
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
/** What nvdisasm may take, which asks for half a second to begin. */
#define DISASM_PROGRAM_MS 15000u

struct disasm_options {
	const char *cpu;     /**< As LLVM calls it: "gfx90a"; as NVIDIA does: "sm_90". */
	uint32_t lanes;	     /**< Of the waves that run the code: 32, 64; 0 if unknown. */
	const char *library; /**< Path or name of libLLVM; NULL: the newest one there is. */
	const char *program; /**< Path of nvdisasm; NULL: no program is started. */
	uint32_t program_ms; /**< For each run of it; 0: DISASM_PROGRAM_MS. */
};

/** nvdisasm in PATH, or else in a toolkit's directory: CUDA_HOME, CUDA_PATH, /usr/local/cuda. */
bool disasm_find_nvdisasm(char ret[PATH_MAX]);

struct disasm_line {
	uint64_t address;
	uint32_t size;	 /**< Bytes; never 0. */
	bool decoded;	 /**< Otherwise the text is words. */
	bool has_target; /**< A relative branch to @p target. */
	uint64_t target;
	char text[DISASM_TEXT_SIZE];
};

/**
 * Missing libraries are no failure: see disasm_note().
 * @return 0, -EINVAL (no such name can be a processor's), -ENOMEM, -errno of starting the child.
 */
int disasm_open(const struct disasm_options *o, struct disasm **ret);
/** NULL is allowed. */
void disasm_close(struct disasm *d);

/** What makes the text: "libLLVM-15.so.1", "/usr/bin/nvdisasm"; NULL: only words are shown. */
const char *disasm_source(const struct disasm *d);
/** What the user should know about the text so far, such as why there are only words; NULL: nothing. */
const char *disasm_note(const struct disasm *d);

/** Bytes of the shortest instruction; the others are multiples of it. */
uint32_t disasm_word_size(const struct disasm *d);

/** One instruction.  @param size  Bytes there are, at least 1; never more are looked at. */
void disasm_one(struct disasm *d, const void *bytes, size_t size, uint64_t address,
		struct disasm_line *ret);

/** Which lines: @p before ones in front of @p around, and @p count from there on. */
struct disasm_range {
	uint64_t start; /**< Address of the first byte: some instruction begins there. */
	uint64_t around;
	size_t before, count;
};

/**
 * Lines around an address.  Instructions differ in length, so they are counted from the start;
 * when none begins at @p around, what lies in front of it is shown as words.
 * @param ret    Room for before + count lines.
 * @param ret_at Index of the line at @p around.
 * @return lines; fewer than asked for at either end of the bytes; -EINVAL (@p around is not in the
 *         bytes), -ENOMEM.
 */
ssize_t disasm_lines(struct disasm *d, const void *bytes, size_t size, const struct disasm_range *r,
		     struct disasm_line *ret, size_t *ret_at);

#endif /* DISASM_H */
