/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_WALK_H
#define HOSTSTACK_WALK_H

/** @file walk.h  From frame to frame, innermost first. */

#include "hoststack/copy.h"

#define HOSTSTACK_DEPTH_MAX 8192

/** One frame of Python code. */
struct hoststack_frame {
	uint64_t frame, code; /**< Addresses. */
	uint64_t at;	      /**< The instruction's address; up to 3.10 its number. */
	uint64_t tlbc; /**< Which copy of the instructions; 0 if there are none. */
	uint64_t is_entry; /**< 1: the evaluation function was called for it; what it calls may run in the same call. */
};

/** The frames of one thread in one interpreter. */
struct hoststack_walk {
	struct hoststack_frame *frames; /**< malloc'ed, and kept for the next walk. */
	size_t n, capacity;
	bool is_live; /**< A frame was not in the copy: it was read at another moment. */
	/** 0, -ELOOP, -E2BIG (deeper than the limit), -EBADMSG, -EFAULT: why it does not reach the outermost frame. */
	int end;
};

/**
 * Walk a copied stack.  Zero @p w before the first call.
 * @return 0, also if it had to end early; -ENOMEM; what hoststack_read() returns if nothing more can be read.
 */
int hoststack_walk(struct hoststack_memory *m, const struct hoststack_python *p, struct hoststack_copy *c,
		   struct hoststack_walk *w);
void hoststack_walk_free(struct hoststack_walk *w);
/** Have two walks found the same? */
bool hoststack_walk_equal(const struct hoststack_walk *a, const struct hoststack_walk *b);

#endif /* HOSTSTACK_WALK_H */
