/* SPDX-License-Identifier: MIT */
#ifndef CTL_MCP_CHILD_H
#define CTL_MCP_CHILD_H

/**
 * @file child.h
 * A program that runs for a call.  It has pipes of its own and no other descriptor of the server, so that nothing of it
 * gets among the messages; it is killed when the server ends, however that happens.
 */

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/out.h"

/** Bytes of the longest output, and of what is kept of standard error. */
#define CHILD_TEXT_MAX ((size_t)16 << 20)
#define CHILD_NOTE_MAX ((size_t)16 << 10)
/** Descriptors that poll() looks at for each. */
#define CHILD_FDS 3
/** Most descriptors that a program gets besides its standard ones. */
#define CHILD_EXTRA_MAX 2

struct child {
	pid_t pid; /**< 0: there is none. */
	int pidfd, in_fd, out_fd, err_fd; /**< -1: there is none. */
	struct out text, note; /**< What it printed, and said on standard error. */
	int status;	       /**< As waitpid() has it, once it has ended. */
};

struct child_options {
	const char *program;
	const char *const *argv;
	bool has_input; /**< Its standard input is a pipe: in_fd is the other end.  Otherwise it is empty. */
	int extra[CHILD_EXTRA_MAX]; /**< Borrowed; they become 3 and 4. */
	size_t n_extra;
};

/** Start a program.  @return 0, -errno. */
int child_start(struct child *c, const struct child_options *o);
/** Fill CHILD_FDS places for poll(). */
void child_list(const struct child *c, struct pollfd fds[CHILD_FDS]);
/** Take what has arrived.  @return whether the program has ended: status, text and note are complete. */
bool child_serve(struct child *c, const struct pollfd fds[CHILD_FDS]);
/** Whether it has printed more than is kept. */
static inline bool child_is_too_large(const struct child *c)
{
	return out_error(&c->text) != 0;
}
/** Send a signal to the program and those that it has started. */
void child_signal(const struct child *c, int signo);
/** Free what belongs to it; a program that runs is killed.  A zeroed object is accepted. */
void child_deinit(struct child *c);

#endif /* CTL_MCP_CHILD_H */
