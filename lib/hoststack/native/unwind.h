/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_NATIVE_UNWIND_H
#define HOSTSTACK_NATIVE_UNWIND_H

/**
 * @file unwind.h
 * From frame to frame, innermost first, by unwind tables.
 *
 * The kernel tells two registers of a thread that waits: the stack pointer and the instruction.  Where tables need no
 * other, or one that an inner frame has saved, each frame is certain as long as the thread has not run meanwhile.
 * Code with frame pointers needs that register (%rbp, x29), which is then searched for in the stack (recovery.h).  On
 * aarch64 a function that calls no other keeps its return address in a register, x30, and its caller is searched for
 * (leaf.h).
 */

#include "hoststack/native/module.h"
#include "hoststack/native/registers.h"
#include "hoststack/native/stack_copy.h"

#define NATIVE_DEPTH_MAX 256

/** Why there are no more frames. */
enum native_end {
	NATIVE_END_OUTERMOST, /**< The tables say that nobody has called the last frame. */
	NATIVE_END_REGISTER,  /**< The next one needs a register that is not known. */
	NATIVE_END_AMBIGUOUS, /**< It was found in several ways that do not agree from there on. */
	NATIVE_END_TABLE,     /**< The code has no unwind table, or one that makes no sense. */
	NATIVE_END_MEMORY,    /**< The stack could not be read, or makes no sense. */
	NATIVE_END_DEPTH,     /**< There are more than NATIVE_DEPTH_MAX. */
	NATIVE_END_COPY,      /**< The next one lies beyond the copy of the stack, which is all there is. */
};

/** One frame. */
struct native_frame {
	uint64_t pc;
	bool is_exact;	 /**< The instruction is the next one; else it is the one behind a call. */
	bool is_guessed; /**< It follows from a search that may have erred. */
	uint64_t function; /**< Where its code begins by its unwind table; 0: not known. */
	struct native_module *module; /**< NULL: the code is of no file. */
};

struct native_walk {
	struct native_frame frames[NATIVE_DEPTH_MAX];
	size_t n;
	enum native_end end;
	unsigned missing; /**< The register; NATIVE_END_REGISTER. */
};

struct native_row;

/** Where a function calls a leaf (leaf.h). */
struct native_leaf_calls {
	uint64_t leaf, function;
	uint64_t first; /**< Behind its first call. */
	int n;		/**< At most 2. */
};

#define NATIVE_LEAF_CALLS 32

/** What unwinds the threads of a process; zero what is not named below. */
struct native_unwinder {
	const struct native_processor *processor; /**< What the process runs on. */
	struct native_module *modules; /**< By base; borrowed. */
	size_t n_modules;
	struct native_stack_copy stack; /**< Its memory is that of the process. */
	struct native_row *rows; /* Rules that were found: all threads run the same code. */
	struct native_leaf_calls leaf_calls[NATIVE_LEAF_CALLS]; /* The last that were looked for. */
	size_t n_leaf_calls;
};

/** Begin a thread's walk with its innermost frame.  @param pc  Its next instruction. */
void native_walk_begin(struct native_walk *w, uint64_t pc);
/**
 * Walk on from the last frame to the outermost.
 * @param registers  Of the last frame; those of the frame at which it ends afterwards.
 * @return 0, also if it had to end early; -ENOMEM; what hoststack_read() returns if nothing more can be read.
 */
int native_walk_on(struct native_unwinder *u, struct native_walk *w, struct native_registers *registers);
/** The rules at an instruction of a module.  @return what native_module_find_rules() does. */
int native_unwinder_rules(struct native_unwinder *u, const struct native_module *module, uint64_t pc,
			  const struct native_rules **ret);
/** The module that has this code.  @return NULL: none, or it cannot be read. */
struct native_module *native_unwinder_find(struct native_unwinder *u, uint64_t pc);
void native_unwinder_deinit(struct native_unwinder *u);

#endif /* HOSTSTACK_NATIVE_UNWIND_H */
