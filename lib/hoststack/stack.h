/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_STACK_H
#define HOSTSTACK_STACK_H

/**
 * @file stack.h
 * One thread's stack with names, and what proves that it is one.
 *
 * A thread runs on while it is read.  If it has not been on a processor from before the reading until after it,
 * the stack is certain.  Of a thread that runs, two equal copies of its data stack in a row are likely.  One copy is
 * right more often than frames that were read one by one, but either may be of two different moments.
 */

#include "hoststack/code.h"

/* Places of a deep stack that are told: the innermost, and the outermost. */
#define HOSTSTACK_INNER_MAX 192
#define HOSTSTACK_OUTER_MAX 64
#define HOSTSTACK_PLACES_MAX (HOSTSTACK_INNER_MAX + HOSTSTACK_OUTER_MAX)

enum hoststack_proof {
	HOSTSTACK_NOT_SCHEDULED, /**< Certain: the thread was not on a processor meanwhile. */
	HOSTSTACK_TWO_READINGS,	 /**< Likely: two readings in a row are equal. */
	HOSTSTACK_ONE_READING,	 /**< None: one copy, between two equal readings of the thread's state. */
	HOSTSTACK_TORN,		 /**< None: frames of different moments may stand together. */
};

/** Whether threads stand still; the kernel knows. */
struct hoststack_watch {
	/** Is the thread off the processors now?  Remember how often it has been put on one. */
	bool (*rests)(void *ctx, uint64_t tid);
	/** Has it not been put on one since rests() said so? */
	bool (*rested)(void *ctx, uint64_t tid);
	void *ctx;
};

/** What reads the stacks of a process; zero what is not named below. */
struct hoststack_reader {
	struct hoststack_memory *memory;
	const struct hoststack_python *python;
	struct hoststack_watch watch;
	struct hoststack_codes codes; /* The names that were told are here. */
	struct hoststack_copy copy;
	struct hoststack_walk walk, last;
};

struct hoststack_stack {
	struct hoststack_place places[HOSTSTACK_PLACES_MAX]; /**< Innermost first. */
	size_t n;
	size_t n_inner; /**< Behind so many places frames are left out, */
	size_t elided;	/**< if this is not 0. */
	enum hoststack_proof proof;
	bool is_cut; /**< Outer frames are missing: deeper than HOSTSTACK_DEPTH_MAX, or they could not be read. */
};

/**
 * Read one thread.
 * @return 0; -EBADMSG (nothing of it makes sense); -ENOMEM; what hoststack_read() returns if nothing more can be read.
 */
int hoststack_stack_read(struct hoststack_reader *r, const struct hoststack_thread *thread,
			 struct hoststack_stack *ret);
/** The names that were told are gone then. */
void hoststack_reader_deinit(struct hoststack_reader *r);

#endif /* HOSTSTACK_STACK_H */
