/* SPDX-License-Identifier: MIT */
#ifndef CTL_JOB_COLLECT_H
#define CTL_JOB_COLLECT_H

/**
 * @file collect.h
 * Runs programs side by side and takes what they print, all until one deadline.
 *
 * A program that has not ended by then, or prints too much, is killed with its children.  Each is
 * killed as well when this process ends.  None gets anything on its standard input, or a terminal, also not to ask on.
 * One that fills its standard error finds it closed.
 */

#include <stddef.h>
#include <stdint.h>

#define COLLECT_NOTE_MAX 240 /**< Bytes that are kept of what a program says on standard error. */

enum collect_end {
	COLLECT_ENDED,	     /**< It has ended: status tells how. */
	COLLECT_LATE,	     /**< It was killed at the deadline. */
	COLLECT_NOT_STARTED, /**< The deadline was over before its turn had come. */
	COLLECT_TOO_LARGE,   /**< It printed more than was allowed, and was killed. */
	COLLECT_FAILED,	     /**< It could not be started: status is an errno. */
};

/** One program, and what became of it. */
struct collect_task {
	const char *name;	  /**< Of what it looks at, for messages; borrowed. */
	const char *const *argv;  /**< NULL-terminated; argv[0] is looked for in PATH.  Borrowed. */
	enum collect_end end;
	int status;		  /**< As waitpid() has it. */
	const char *text;	  /**< What it printed, until the end of done(). */
	size_t size;
	char note[COLLECT_NOTE_MAX]; /**< The line on standard error that is an error, or the last one, made printable; "" for none. */
};

struct collect_options {
	unsigned window;      /**< Most programs at a time, at most COLLECT_WINDOW_MAX. */
	uint64_t deadline_ns; /**< Of clock_now_ns(). */
	size_t size_max;      /**< Most bytes that a program may print. */
	/**
	 * Called just before a task is started, whose argv it may fill in; NULL: all have theirs.
	 * @return 0, or negative to stop all.
	 */
	int (*begin)(void *data, struct collect_task *task);
	/** Called for each task, in the order in which they end.  @return 0, or negative to stop all. */
	int (*done)(void *data, const struct collect_task *task);
	void *data;
};

#define COLLECT_WINDOW_MAX 64

/**
 * Run all tasks.
 * @return 0, or what begin() or done() returned; -ENOMEM.  No program of it runs afterwards.
 */
int collect(struct collect_task *tasks, size_t n, const struct collect_options *o);

#endif /* CTL_JOB_COLLECT_H */
