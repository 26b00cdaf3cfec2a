/* SPDX-License-Identifier: MIT */
#ifndef DISASM_BACKEND_H
#define DISASM_BACKEND_H

/** @file backend.h  What makes text of bytes; for disasm/ only. */

#include "disasm/disasm.h"

struct disasm_backend {
	/**
	 * What decode() is asked for next: from @p from to @p end of bytes whose first is at @p address.
	 * NULL: it need not know.
	 */
	void (*prepare)(void *ctx, const uint8_t *bytes, uint64_t address, size_t from, size_t end);
	/**
	 * @param size  At most DISASM_LONGEST.
	 * @param ret_text  DISASM_TEXT_SIZE; always terminated when something was decoded.
	 * @return bytes of the instruction, at most @p size; 0 if it is none.
	 */
	uint32_t (*decode)(void *ctx, const uint8_t *bytes, uint32_t size, uint64_t address,
			   char *ret_text);
	/**
	 * Lengths of consecutive instructions, 0 for a word that is none.
	 * @return how many; 0 when the first one has to be decoded alone.
	 */
	size_t (*measure)(void *ctx, const uint8_t *bytes, size_t size, uint64_t address,
			  uint8_t *ret_sizes, size_t capacity);
	const char *(*source)(void *ctx);
	const char *(*note)(void *ctx);
	void (*close)(void *ctx);
};

/* child.c: LLVM in a process of its own. */
extern const struct disasm_backend disasm_child;
/** @return 0 (also when there is no LLVM: then every word stays one), -errno. */
int disasm_child_open(const struct disasm_options *o, void **ret_ctx);

/* nvidia.c: only the length of instructions is known; what they are a program tells, if there is one. */
extern const struct disasm_backend disasm_nvidia;
/** @return 0, -ENOMEM. */
int disasm_nvidia_open(const struct disasm_options *o, void **ret_ctx);
/** Bytes of an instruction of "sm_90" and the like; 0 if that is no such name. */
uint32_t disasm_nvidia_size(const char *cpu);
/**
 * Instructions out of what nvdisasm prints.
 * @param start  Address of the first of @p n words of @p word bytes, each of which has a text.
 * @param texts  Filled where they are empty.
 * @return how many were filled.
 */
size_t disasm_nvidia_parse(const char *text, size_t size, uint64_t start, uint32_t word,
			   char (*texts)[DISASM_TEXT_SIZE], size_t n);
/**
 * Zeros for the words that it says it does not understand.
 * @return how many times it says so of one of them.
 */
size_t disasm_nvidia_blank(const char *text, size_t size, uint64_t start, uint32_t word,
			   uint8_t *bytes, size_t n);

/* nvdisasm.c: that program, confined, with bounds on what it takes. */

struct disasm_output {
	int error;  /* 0 when it has ended by itself, or because of what it did; -ETIMEDOUT, -errno */
	int status; /* as wait() has it */
	char why[160]; /* when that is not 0 */
	char *out, *err; /* with a NUL behind */
	size_t out_size, err_size;
};

/** @param ret  For disasm_output_free() in any case. */
void disasm_nvdisasm_run(const char *program, const char *cpu, const void *bytes, size_t size,
			 uint64_t address, uint32_t ms, struct disasm_output *ret);
void disasm_output_free(struct disasm_output *o);

/* llvm.c: LLVM in this process. */

struct disasm_llvm {
	void *handle, *context;
	size_t (*instruction)(void *context, uint8_t *bytes, uint64_t size, uint64_t pc, char *text,
			      size_t text_size);
};

#define DISASM_LLVM_NAME_SIZE 256

/**
 * One of the names that libLLVM can have, newest first.
 * @return false behind the last one.
 */
bool disasm_llvm_name(const char *library, size_t i, char buf[DISASM_LLVM_NAME_SIZE]);
/** @return 0, -ENOENT (no such library), -ENOTSUP (it cannot do this). */
int disasm_llvm_load(const char *name, struct disasm_llvm *ret);
/** May abort.  @return 0, -ENOTSUP. */
int disasm_llvm_choose(struct disasm_llvm *l, const char *cpu, uint32_t lanes);
/** As disasm_backend.decode. */
uint32_t disasm_llvm_decode(const struct disasm_llvm *l, const uint8_t *bytes, uint32_t size,
			    uint64_t address, char *ret_text);

#endif /* DISASM_BACKEND_H */
