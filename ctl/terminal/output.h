/* SPDX-License-Identifier: MIT */
#ifndef CTL_TERMINAL_OUTPUT_H
#define CTL_TERMINAL_OUTPUT_H

/**
 * @file output.h
 * Where data goes: standard output, a pager, or a file that appears complete or not at all.
 *
 * A verb appends to output.text (or uses output_json()); nothing leaves the program before
 * output_finish(), so that a failure can still take everything back.  Streams call
 * output_begin_stream() and output_flush() after each line instead; their file grows in place.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/out.h"

enum output_json { OUTPUT_JSON_OFF, OUTPUT_JSON_SHORT, OUTPUT_JSON_PRETTY };

struct output {
	struct out text;
	enum output_json json;
	const char *path; /**< -o; NULL is standard output. */
	bool pager;
	bool legend;
	bool color;
	bool stream;
	bool delivered;       /**< Something left the program already. */
	int fd;               /**< Of the file being written; -1 before the first byte. */
	char final[PATH_MAX]; /**< The file's name without symbolic links. */
	char temp[PATH_MAX];  /**< Empty unless a temporary file exists. */
};

void output_init(struct output *o);
/** Accepts a zeroed object; an unfinished file is removed. */
void output_deinit(struct output *o);

/**
 * @param mode  `pretty`, `short`, `off`; "" picks pretty on a terminal and short elsewhere.
 * @return 0, -EINVAL.
 */
int output_set_json(struct output *o, const char *mode);

/** Append one JSON document and a line break, in the style asked for.  @return 0, -errno. */
int output_json(struct output *o, const char *text, size_t size);

/** From here on output_flush() delivers at once: no pager, one document a line. */
void output_begin_stream(struct output *o);
/**
 * Streams deliver what is there.  Others hand a large text to their temporary file, if they write
 * one, and otherwise do nothing.
 * @return 0, -EPIPE (nobody reads any more), other -errno.
 */
int output_flush(struct output *o);
/** Deliver everything.  @return as output_flush(). */
int output_finish(struct output *o);
/** Forget what was not delivered. */
void output_drop(struct output *o);

#endif /* CTL_TERMINAL_OUTPUT_H */
