/* SPDX-License-Identifier: MIT */
#ifndef CTL_STREAM_H
#define CTL_STREAM_H

/** @file stream.h  Verbs that keep a session open: print notifications until something ends it. */

#include <stdbool.h>
#include <stdint.h>

#include "base/argv.h"

struct ctl;

enum stream_end {
	STREAM_END_SIGNAL,
	STREAM_END_INPUT,   /**< Standard input is at its end (until_eof). */
	STREAM_END_TIME,    /**< The deadline came. */
	STREAM_END_SESSION, /**< The session is over. */
	STREAM_END_RESUMED, /**< Queues run again (until_resumed). */
	STREAM_END_READER,  /**< Nobody reads our output any more. */
};

struct stream {
	bool until_eof;
	bool until_resumed;
	uint64_t deadline_ns; /**< 0: none. */
	char notice[120];     /**< For people, once the first data is out. */

	int signal_fd;
	int signo;        /**< After STREAM_END_SIGNAL. */
	int32_t reason;   /**< enum rpc_end_reason or rpc_resume_reason of the end. */
	uint64_t dropped; /**< Notifications that were lost on the way. */
};

/** --for and --until-eof, which the holding verbs share. */
#define STREAM_OPTIONS(for_text, until_eof)                                                        \
	{ "for", 0, ARGV_STRING, &(for_text), "TIME", "let go after TIME" },                       \
	{                                                                                          \
		"until-eof", 0, ARGV_FLAG, &(until_eof), NULL, "let go when standard input ends"   \
	}

/**
 * Before the first request: look at the options; from here on output is delivered line by line.
 * @param for_text  Value of --for or NULL.
 */
int stream_begin(struct ctl *c, struct stream *s, const char *for_text, bool until_eof);
/** Print until something ends it; signals are caught meanwhile.  @return 0, or negative. */
int stream_run(struct ctl *c, struct stream *s, enum stream_end *ret_end);
/** Exit status of a verb whose stream ended so; negative with ctl.err when that is a failure. */
int stream_status(struct ctl *c, const struct stream *s, enum stream_end end);

#endif /* CTL_STREAM_H */
