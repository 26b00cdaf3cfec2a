/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_SINK_H
#define COREFILE_SINK_H

/**
 * @file sink.h
 * The one way by which bytes of a core reach a descriptor: in order, small ones buffered, pages of
 * zeros skipped where the file can have holes, compressed when asked.
 *
 * Failure is sticky: later calls do nothing and corefile_sink_finish() says what went wrong.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct corefile_sink;

/** How a sink writes. */
struct corefile_sink_options {
	/** Compress to one zstd frame, which cannot have holes. */
	bool zstd;
	uint64_t total; /**< Bytes that will be written; must be exact with @c zstd. */
	/**
	 * Called after each piece; may be NULL.
	 * @return false to cancel: the sink fails with -ECANCELED.
	 */
	bool (*progress)(void *arg, uint64_t done, uint64_t total);
	void *arg;
};

/**
 * Make a sink.
 * @param fd   Borrowed; blocking, positioned where the core begins.
 * @param ret  Release with corefile_sink_destroy().
 * @return 0, -ENOMEM.
 */
int corefile_sink_create(int fd, const struct corefile_sink_options *o, struct corefile_sink **ret);
/** Release a sink, NULL is allowed.  What is still in its buffer is lost unless it was finished. */
void corefile_sink_destroy(struct corefile_sink *s);

/** Write the next bytes of the core; they may be used again when this returns. */
void corefile_sink_write(struct corefile_sink *s, const void *data, size_t size);
/** Write zeros up to the offset @p position, counted from the beginning of the core. */
void corefile_sink_pad(struct corefile_sink *s, uint64_t position);
/** @return the bytes written so far, before compression. */
uint64_t corefile_sink_position(const struct corefile_sink *s);
/** Has anything gone wrong so far? */
bool corefile_sink_failed(const struct corefile_sink *s);
/**
 * Write what is still buffered, and end the frame or the hole at the end of the file.
 * @return 0, -ECANCELED, -ENOSPC, other -errno of write(2).
 */
int corefile_sink_finish(struct corefile_sink *s);

#endif /* COREFILE_SINK_H */
