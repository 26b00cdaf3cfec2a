/* SPDX-License-Identifier: MIT */
#ifndef WORKER_INSPECT_COMMAND_LINE_H
#define WORKER_INSPECT_COMMAND_LINE_H

/** @file command_line.h  What a process was started with, or has put there, as a line of text. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** Longest line. */
#define COMMAND_LINE_MAX 4096

/** A line. */
struct command_line {
	char text[COMMAND_LINE_MAX + 1]; /**< Harmless text (str_make_printable()); empty: there is none. */
	bool is_cut;			 /**< It goes on. */
};

/** Join the arguments of the beginning of /proc/PID/cmdline, each of which has a NUL behind it, with blanks. */
void command_line_parse(const char *text, size_t size, struct command_line *ret);
/** Read and parse /proc/PID/cmdline.  The call may never return (relay.h).  @return 0 or -errno. */
int command_line_read(pid_t pid, struct command_line *ret);

#endif /* WORKER_INSPECT_COMMAND_LINE_H */
