/* SPDX-License-Identifier: MIT */
#ifndef DISASM_BACKEND_H
#define DISASM_BACKEND_H

/**
 * @file backend.h
 * The back ends that turn bytes into text; only for the files of this directory.
 */

#include "disasm/disasm.h"

/** One way to disassemble.  @c ctx is what the back end's open function returned. */
struct disasm_backend {
	/**
	 * Announce what decode() will be asked for next: the bytes from offset @p from to @p end,
	 * where the first of @p bytes is at @p address.  NULL if the back end need not know.
	 */
	void (*prepare)(void *ctx, const uint8_t *bytes, uint64_t address, size_t from, size_t end);
	/**
	 * Decode one instruction.
	 * @param size  At most DISASM_LONGEST.
	 * @param ret_text  Room for DISASM_TEXT_SIZE; always terminated when something was decoded.
	 * @return bytes of the instruction, at most @p size; 0 if the bytes are no instruction.
	 */
	uint32_t (*decode)(void *ctx, const uint8_t *bytes, uint32_t size, uint64_t address,
			   char *ret_text);
	/**
	 * Tell the lengths of consecutive instructions, 0 for a word that is none.
	 * @return the number of lengths; 0 when the first instruction has to be decoded alone.
	 */
	size_t (*measure)(void *ctx, const uint8_t *bytes, size_t size, uint64_t address,
			  uint8_t *ret_sizes, size_t capacity);
	/** Answers disasm_source(). */
	const char *(*source)(void *ctx);
	/** Answers disasm_note(). */
	const char *(*note)(void *ctx);
	/** Release @c ctx. */
	void (*close)(void *ctx);
};

/* child.c: LLVM in a process of its own. */
extern const struct disasm_backend disasm_child;
/**
 * Start the process that runs LLVM.
 * @return 0 (also when there is no LLVM: then every word is shown as such), -errno.
 */
int disasm_child_open(const struct disasm_options *o, void **ret_ctx);

/*
 * nvidia.c: only the length of instructions is known; nvdisasm, if there is one, tells what they
 * are.
 */
extern const struct disasm_backend disasm_nvidia;
/**
 * Make the back end for NVIDIA's processors; nothing is run yet.
 * @return 0, -ENOMEM.
 */
int disasm_nvidia_open(const struct disasm_options *o, void **ret_ctx);
/** @return the bytes of an instruction of "sm_90" and the like; 0 if that is no such name. */
uint32_t disasm_nvidia_size(const char *cpu);
/**
 * Find instructions in the output of nvdisasm.
 * @param start  Address of the first of @p n words of @p word bytes, each of which has a text.
 * @param texts  Filled where they are empty.
 * @return the number of texts that were filled.
 */
size_t disasm_nvidia_parse(const char *text, size_t size, uint64_t start, uint32_t word,
			   char (*texts)[DISASM_TEXT_SIZE], size_t n);
/**
 * Overwrite with zeros the words that nvdisasm says, in @p text, it does not understand.
 * @return how many times it says so of one of the @p n words at @p start.
 */
size_t disasm_nvidia_blank(const char *text, size_t size, uint64_t start, uint32_t word,
			   uint8_t *bytes, size_t n);

/* nvdisasm.c: the program, confined, with bounds on what it takes. */

/** The result of a run of nvdisasm. */
struct disasm_output {
	/* 0 when it ended by itself, also by a signal; -ETIMEDOUT (it was killed), other -errno. */
	int error;
	int status; /* Exit status as wait() has it. */
	char why[160]; /* Text to show when the status is not 0. */
	char *out, *err; /* Standard output and error, with a NUL behind. */
	size_t out_size, err_size;
};

/**
 * Run nvdisasm on bytes whose first is at @p address.
 * @param ms   Time that it may take, in milliseconds.
 * @param ret  Release with disasm_output_free() in any case.
 */
void disasm_nvdisasm_run(const char *program, const char *cpu, const void *bytes, size_t size,
			 uint64_t address, uint32_t ms, struct disasm_output *ret);
/** Free the output; a zeroed object is accepted. */
void disasm_output_free(struct disasm_output *o);

/* llvm.c: LLVM in this process. */

/** A library that was loaded, and the processor that was chosen. */
struct disasm_llvm {
	void *handle, *context;
	size_t (*instruction)(void *context, uint8_t *bytes, uint64_t size, uint64_t pc, char *text,
			      size_t text_size);
};

#define DISASM_LLVM_NAME_SIZE 256

/**
 * Make one of the names that libLLVM can have, newest first.
 * @param library  The only name, if not NULL.
 * @return false behind the last one.
 */
bool disasm_llvm_name(const char *library, size_t i, char buf[DISASM_LLVM_NAME_SIZE]);
/**
 * Load a library.
 * @return 0, -ENOENT (no such library), -ENOTSUP (it cannot disassemble AMD's instructions).
 */
int disasm_llvm_load(const char *name, struct disasm_llvm *ret);
/**
 * Choose the processor.  LLVM may abort() when it does not know it.
 * @return 0, -ENOTSUP.
 */
int disasm_llvm_choose(struct disasm_llvm *l, const char *cpu, uint32_t lanes);
/** Decode one instruction, as disasm_backend.decode. */
uint32_t disasm_llvm_decode(const struct disasm_llvm *l, const uint8_t *bytes, uint32_t size,
			    uint64_t address, char *ret_text);

#endif /* DISASM_BACKEND_H */
