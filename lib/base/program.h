/* SPDX-License-Identifier: MIT */
#ifndef BASE_PROGRAM_H
#define BASE_PROGRAM_H

/**
 * @file program.h
 * Starting another program that gets nothing of ours but what is named, and does not outlive us.
 */

#include <stddef.h>
#include <sys/types.h>

/** Most descriptors that a program gets, its standard ones among them. */
#define PROGRAM_FDS_MAX 5
/** The exit status of one that could not be run. */
#define PROGRAM_NOT_FOUND 127

struct program {
	const char *path; /**< Looked for in PATH if it has no slash. */
	const char *const *argv;
	int fds[PROGRAM_FDS_MAX]; /**< Borrowed; they become 0, 1, 2 and so on.  -1: /dev/null. */
	size_t n_fds;		  /**< At least 3. */
	/** What its standard error says before "cannot run". */
	const char *prefix;
};

/**
 * Start a program: in a session of its own, without the terminal of the user, on which it could put a question; with no
 * signal blocked or SIGPIPE ignored.  It is killed when the thread that calls this ends.
 * @return its number, or -errno: -EINVAL (more descriptors than PROGRAM_FDS_MAX).
 */
pid_t program_start(const struct program *p);

#endif /* BASE_PROGRAM_H */
