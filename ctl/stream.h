/* SPDX-License-Identifier: MIT */
#ifndef CTL_STREAM_H
#define CTL_STREAM_H

/**
 * @file stream.h
 * What the verbs share that keep a session open: they print notifications until something ends it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/argv.h"

struct ctl;

/** What ended a stream. */
enum stream_end {
	STREAM_END_SIGNAL,  /**< One of the signals of signals.h. */
	STREAM_END_INPUT,   /**< Standard input is at its end (until_eof). */
	STREAM_END_TIME,    /**< The deadline came. */
	STREAM_END_SESSION, /**< The session is over. */
	STREAM_END_RESUMED, /**< Queues run again (until_resumed). */
	STREAM_END_READER,  /**< The reader of the output has closed its end. */
};

/** A stream; stream_begin() fills it in, and the verb may change it before stream_run(). */
struct stream {
	bool until_eof;       /**< The end of standard input ends the stream. */
	bool until_resumed;   /**< gpu.resumed ends the stream. */
	uint64_t deadline_ns; /**< Monotonic time of the end; 0: none. */
	char notice[120];     /**< Message for people, printed once the first data is out. */

	int signal_fd;
	int signo;        /**< Number of the signal, after STREAM_END_SIGNAL. */
	int32_t reason;   /**< enum rpc_end_reason or rpc_resume_reason of the end. */
	uint64_t dropped; /**< Notifications that were lost on the way. */
};

/** The options --for and --until-eof, which all these verbs have. */
#define STREAM_OPTIONS(for_text, until_eof)                                                        \
	{ "for", 0, ARGV_STRING, &(for_text), "TIME", "let go after TIME" },                       \
	{                                                                                          \
		"until-eof", 0, ARGV_FLAG, &(until_eof), NULL, "let go when standard input ends"   \
	}

/**
 * Look at the options, before the first request; from here on output is delivered line by line.
 * @param for_text  Value of --for or NULL; the time counts from this call.
 * @return 0, or negative with ctl.err.
 */
int stream_begin(struct ctl *c, struct stream *s, const char *for_text, bool until_eof);
/**
 * Print notifications until something ends the stream; signals are caught meanwhile.
 * It may be called again afterwards, for example with another deadline.
 * @return 0, or negative with ctl.err.
 */
int stream_run(struct ctl *c, struct stream *s, enum stream_end *ret_end);
/**
 * The exit status of a verb whose stream ended so.
 * @return exit status; negative with ctl.err when such an end is a failure.
 */
int stream_status(struct ctl *c, const struct stream *s, enum stream_end end);

#endif /* CTL_STREAM_H */
