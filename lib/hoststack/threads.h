/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_THREADS_H
#define HOSTSTACK_THREADS_H

/** @file threads.h  The threads that an interpreter knows. */

#include <stdbool.h>

#include "hoststack/python.h"

#define HOSTSTACK_THREADS_MAX	   4096
#define HOSTSTACK_INTERPRETERS_MAX 64

/** A PyThreadState: one thread in one interpreter. */
struct hoststack_thread {
	uint64_t state; /**< Its address. */
	int64_t interpreter;
	uint64_t tid; /**< As the program sees it; up to 3.10 hoststack_find_tids() fills it in.  0: none yet. */
	uint64_t pthread; /**< pthread_t. */
};

/** What was found. */
struct hoststack_threads {
	struct hoststack_thread *list; /**< malloc'ed. */
	size_t n, capacity;
	uint32_t interpreters;
	bool is_cut; /**< There are more than the limits, or the list cannot be followed to its end. */
	bool has_lock;	 /**< There is one: not in a free-threaded interpreter, unless it was asked for. */
	uint64_t holder; /**< Thread state that holds the (main) interpreter's lock; 0: nobody, or there is no lock. */
};

/**
 * List the threads of all interpreters.  The process runs on: the list may have changed while it was read.
 * @return 0, -EBADMSG (not even one interpreter makes sense), -ENOMEM, what hoststack_read() returns.
 */
int hoststack_threads_list(struct hoststack_memory *m, const struct hoststack_python *p,
			   struct hoststack_threads *ret);
void hoststack_threads_free(struct hoststack_threads *t);
/**
 * Up to 3.10 a thread state has no kernel id, but pthread_t: glibc keeps the id in what that points to, at the same
 * offset in all threads.
 * @param tids  Those of the process, as the program sees them, ascending.
 * @return 0; -ENOENT (no offset gives different ids to all); what hoststack_read() returns.
 */
int hoststack_find_tids(struct hoststack_memory *m, struct hoststack_threads *t, const uint32_t *tids, size_t n);

#endif /* HOSTSTACK_THREADS_H */
