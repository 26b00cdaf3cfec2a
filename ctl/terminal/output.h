/* SPDX-License-Identifier: MIT */
#ifndef CTL_TERMINAL_OUTPUT_H
#define CTL_TERMINAL_OUTPUT_H

/**
 * @file output.h
 * Delivers data: to standard output, a pager, or a file that appears complete or not at all.
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

/** The output of one verb. */
struct output {
	struct out text; /**< What was not delivered yet; verbs append to it. */
	enum output_json json;
	const char *path; /**< The file of -o; NULL is standard output. */
	bool pager;	  /**< A pager may be started. */
	bool legend;	  /**< Tables have titles. */
	bool color;
	unsigned width;	      /**< Columns that text has; 0: lines may have any length. */
	bool ascii;	      /**< The terminal shows no other characters. */
	bool stream;	      /**< output_begin_stream() was called. */
	bool delivered;       /**< Something left the program already. */
	int fd;               /**< The file being written; -1 before the first byte. */
	char final[PATH_MAX]; /**< The file's name without symbolic links. */
	char temp[PATH_MAX];  /**< Name of the temporary file, or "".  A signal handler reads it. */
};

/** Prepare for text on standard output, with a pager and legends. */
void output_init(struct output *o);
/** Free the text; an unfinished file is removed.  A zeroed object is accepted. */
void output_deinit(struct output *o);

/**
 * Choose the style of JSON, or none.
 * @param mode  `pretty`, `short`, `off`; "" picks pretty on a terminal and short elsewhere.
 * @return 0, -EINVAL (no such mode).
 */
int output_set_json(struct output *o, const char *mode);

/**
 * Find out how wide text may be: COLUMNS, or what the terminal says; any width where standard output
 * is no terminal, or a file is written: nothing is lost to what reads it.
 */
void output_set_width(struct output *o);

/** Append one JSON document and a line break, in the style asked for.  @return 0, -errno. */
int output_json(struct output *o, const char *text, size_t size);

/** Make output_flush() deliver at once from here on, without a pager and one document a line. */
void output_begin_stream(struct output *o);
/**
 * Deliver what is there, if this is a stream.  Otherwise a large text goes to the temporary file,
 * if one is to be written, and a small one stays.
 * @return 0, -EPIPE (the reader has closed its end), other -errno.
 */
int output_flush(struct output *o);
/** Deliver everything, and give a file its name.  @return as output_flush(). */
int output_finish(struct output *o);
/** Forget what was not delivered; an unfinished file is removed. */
void output_drop(struct output *o);

#endif /* CTL_TERMINAL_OUTPUT_H */
