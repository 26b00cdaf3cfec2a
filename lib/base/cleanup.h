/* SPDX-License-Identifier: MIT */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

/**
 * @file cleanup.h
 * Scope-bound release of memory and descriptors.
 *
 *	auto_free char *name = NULL;
 *	auto_close int fd = -1;
 *
 * A variable declared so must be initialised.  Hand ownership out with TAKE_PTR() or TAKE_FD().
 */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/** Cleanup handler of auto_free: frees the memory that the variable points to. */
static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

/** Cleanup handler of auto_close: closes the descriptor unless it is negative, and keeps errno. */
static inline void cleanup_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	errno = saved;
}

/** Frees, or closes, what a variable holds when the variable goes out of scope. */
#define auto_free  __attribute__((cleanup(cleanup_free)))
#define auto_close __attribute__((cleanup(cleanup_close)))

/**
 * Calls a destructor at the end of the scope: `auto_call(foo_destroyp) struct foo *f = NULL;` where
 * DEFINE_AUTO(struct foo *, foo_destroy) has defined foo_destroyp().
 */
#define auto_call(fn) __attribute__((cleanup(fn)))
#define DEFINE_AUTO(type, fn)                                                                      \
	static inline void fn##p(type *p)                                                          \
	{                                                                                          \
		if (*p)                                                                            \
			fn(*p);                                                                    \
	}                                                                                          \
	struct cleanup_semicolon

/** Take ownership out of a variable: the value is returned and the variable becomes NULL, or -1. */
#define TAKE_PTR(p)                                                                                \
	({                                                                                         \
		__typeof__(p) take_ptr_ = (p);                                                     \
		(p) = NULL;                                                                        \
		take_ptr_;                                                                         \
	})
#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int take_fd_ = (fd);                                                               \
		(fd) = -1;                                                                         \
		take_fd_;                                                                          \
	})

/** Number of elements of an array, not of a pointer. */
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#endif /* BASE_CLEANUP_H */
