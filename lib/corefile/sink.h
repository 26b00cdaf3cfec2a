/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_SINK_H
#define COREFILE_SINK_H

/**
 * @file sink.h
 * The one way that bytes of a core reach a descriptor: in order, small ones buffered, pages of zeros
 * skipped where the file can have holes, compressed when asked.
 *
 * Failure is sticky: later calls do nothing and corefile_sink_finish() says what went wrong.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct corefile_sink;

struct corefile_sink_options {
	bool zstd;
	uint64_t total; /**< Bytes that will come; must be exact with @c zstd. */
	/** After each piece.  @return false to cancel: the sink fails with -ECANCELED. */
	bool (*progress)(void *arg, uint64_t done, uint64_t total);
	void *arg;
};

/**
 * @param fd  Borrowed; blocking, at the place where the core begins.
 * @return 0, -ENOMEM.
 */
int corefile_sink_create(int fd, const struct corefile_sink_options *o, struct corefile_sink **ret);
void corefile_sink_destroy(struct corefile_sink *s);

void corefile_sink_write(struct corefile_sink *s, const void *data, size_t size);
/** Zeros up to the offset @p position, counted from the beginning of the core. */
void corefile_sink_pad(struct corefile_sink *s, uint64_t position);
/** Bytes taken so far, before compression. */
uint64_t corefile_sink_position(const struct corefile_sink *s);
bool corefile_sink_failed(const struct corefile_sink *s);
/**
 * Everything is out.
 * @return 0, -ECANCELED, -ENOSPC, other -errno of write(2).
 */
int corefile_sink_finish(struct corefile_sink *s);

#endif /* COREFILE_SINK_H */
