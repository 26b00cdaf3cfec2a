/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_COPY_H
#define HOSTSTACK_COPY_H

/**
 * @file copy.h
 * One thread's Python stack, copied at once.
 *
 * From 3.11 on an interpreter keeps the frames of a thread in a few blocks of memory, its data stack.  They are read
 * together, between two readings of the thread's state, in one call: nearer to one moment nobody comes from outside.
 * Frames of generators, those at the ends of calls from C, and all those of 3.10 and before lie elsewhere.  Where the
 * last walk has found some of these, the next copy has them as well.
 */

#include <stdbool.h>

#include "hoststack/threads.h"

#define HOSTSTACK_BLOCKS_MAX  64
#define HOSTSTACK_OUTSIDE_MAX 256

/** What was copied. */
struct hoststack_copy {
	uint64_t frame; /**< The current frame; 0: there is none. */
	struct {
		uint64_t address, size;
		uint8_t *bytes; /**< In `memory`. */
	} blocks[HOSTSTACK_BLOCKS_MAX + HOSTSTACK_OUTSIDE_MAX];
	size_t n_blocks, n_stack; /**< All; and those of the data stack, which come first. */
	uint64_t outside[HOSTSTACK_OUTSIDE_MAX]; /**< Frames that the last walk found elsewhere. */
	size_t n_outside;
	uint8_t *memory; /**< malloc'ed, and kept for the next copy. */
	size_t capacity;
};

/**
 * Copy the stack of a thread.  Zero @p c before the first call.
 * @return 0; -EAGAIN (it changed meanwhile); -EBADMSG; -ENOMEM; what hoststack_read() returns.
 */
int hoststack_copy_take(struct hoststack_memory *m, const struct hoststack_python *p,
			const struct hoststack_thread *thread, struct hoststack_copy *c);
void hoststack_copy_free(struct hoststack_copy *c);
/** Forget where frames of the last thread lay. */
void hoststack_copy_forget(struct hoststack_copy *c);
/**
 * Read a frame from the copy, or else from memory; the next copy has it then.
 * @param ret_live  Set if it was not in the copy.
 */
int hoststack_copy_read(struct hoststack_copy *c, struct hoststack_memory *m, uint64_t address, void *buf, size_t size,
			bool *ret_live);

#endif /* HOSTSTACK_COPY_H */
