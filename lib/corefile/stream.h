/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_STREAM_H
#define COREFILE_STREAM_H

/**
 * @file stream.h
 * A core on its way from one process to another, through a stream socket: its bytes in order, with
 * pages of zeros told instead of sent.  docs/COREFILES.md describes the format for other readers.
 *
 * The reader may be the writer's enemy, and the other way round: the writer does not wait for the
 * reader here, and what is received is checked.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "corefile/sink.h"

/** Kinds of records; the size of a record means something else for each. */
enum corefile_stream_kind {
	CORE_STREAM_DATA = 1,  /**< That many bytes of the core follow. */
	CORE_STREAM_HOLE = 2,  /**< That many zeros are next in the core; nothing follows. */
	/** The core is whole; that many of its bytes stand for memory that could not be read. */
	CORE_STREAM_END = 3,
	/** The core will not become whole; that many bytes of text (JSON) say why. */
	CORE_STREAM_ERROR = 4,
};

/** Head of each part of the stream, in the byte order of the machine. */
struct corefile_stream_record {
	uint32_t kind;
	uint32_t zero;
	uint64_t size;
};

/* ------------------------------------------------------------------ writing ------------------ */

/** Most bytes of a core that are given at a time, and most of the text of an error. */
#define CORE_STREAM_PIECE_MAX ((size_t)1 << 20)
#define CORE_STREAM_TEXT_MAX  ((size_t)64 << 10)

/** The writing end. */
struct corefile_stream_out;

/**
 * Make the writing end.
 * @param fd   Stream socket; borrowed.
 * @param ret  Release with corefile_stream_out_destroy().
 * @return 0, -ENOMEM.
 */
int corefile_stream_out_create(int fd, struct corefile_stream_out **ret);
/** Release a writing end; NULL is allowed.  The socket stays open. */
void corefile_stream_out_destroy(struct corefile_stream_out *o);
/**
 * Give the next bytes of the core; corefile_stream_out_send() sends them.
 * @param data  Borrowed until all is sent.
 * @param size  CORE_STREAM_PIECE_MAX at most.
 */
void corefile_stream_out_data(struct corefile_stream_out *o, const void *data, size_t size);
/**
 * Give the record that ends a whole core.
 * @param lost  Bytes of the core that stand for memory that could not be read.
 */
void corefile_stream_out_end(struct corefile_stream_out *o, uint64_t lost);
/**
 * Give the record that says why the core will not become whole.
 * @param text  Borrowed until all is sent; it is cut to CORE_STREAM_TEXT_MAX bytes.
 */
void corefile_stream_out_error(struct corefile_stream_out *o, const char *text, size_t size);
/**
 * Send what was given, without waiting.  Nothing more may be given before all of it is sent.
 * @return 1 all is sent, 0 the socket is full, -EPIPE nobody reads, other -errno.
 */
int corefile_stream_out_send(struct corefile_stream_out *o);

/* ------------------------------------------------------------------ reading ------------------ */

/** The reading end. */
struct corefile_stream_in;

/**
 * Make the reading end.
 * @param fd     Stream socket; borrowed.
 * @param total  Bytes of the core.
 * @param ret    Release with corefile_stream_in_destroy().
 * @return 0, -ENOMEM.
 */
int corefile_stream_in_create(int fd, uint64_t total, struct corefile_stream_in **ret);
/** Release a reading end; NULL is allowed.  The socket stays open. */
void corefile_stream_in_destroy(struct corefile_stream_in *s);
/**
 * Receive once and pass on what came.  A blocking socket makes the caller wait until something is
 * there.
 * @return 1 the core is whole, 0 there is more to come, -EREMOTEIO the writer has failed (see
 *         corefile_stream_in_error()), -EPIPE the writer has left, -EPROTO what came is no core of
 *         that size, other -errno.
 */
int corefile_stream_in_read(struct corefile_stream_in *s, struct corefile_sink *sink);
/** @return the bytes that stand for memory that could not be read, once the core is whole. */
uint64_t corefile_stream_in_lost(const struct corefile_stream_in *s);
/**
 * @return the text that the writer gave with its error, not NUL-terminated; it lives as long as @p
 *         s.
 */
const char *corefile_stream_in_error(const struct corefile_stream_in *s, size_t *ret_size);

#endif /* COREFILE_STREAM_H */
