/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_STREAM_H
#define COREFILE_STREAM_H

/**
 * @file stream.h
 * A core on its way from one process to another, through a stream socket: its bytes in order, with
 * pages of zeros told instead of sent.  docs/COREFILES.md describes the format for other readers.
 *
 * The reader may be the writer's enemy, and the other way round: neither waits for the other here, and
 * what is received is checked.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "corefile/sink.h"

enum corefile_stream_kind {
	CORE_STREAM_DATA = 1,  /**< As many bytes follow. */
	CORE_STREAM_HOLE = 2,  /**< As many zeros; nothing follows. */
	CORE_STREAM_END = 3,   /**< The core is whole; of it, so many bytes stand for unreadable memory. */
	CORE_STREAM_ERROR = 4, /**< It never will be; as many bytes of text say why (JSON). */
};

/** Both numbers in the byte order of the machine. */
struct corefile_stream_record {
	uint32_t kind;
	uint32_t zero;
	uint64_t size;
};

/* ------------------------------------------------------------------ writing ------------------ */

/** Most bytes that are given at a time. */
#define CORE_STREAM_PIECE_MAX ((size_t)1 << 20)
#define CORE_STREAM_TEXT_MAX  ((size_t)64 << 10)

struct corefile_stream_out;

/** @param fd  Borrowed; a stream socket.  @return 0, -ENOMEM. */
int corefile_stream_out_create(int fd, struct corefile_stream_out **ret);
void corefile_stream_out_destroy(struct corefile_stream_out *o);
/**
 * The next bytes of the core, of which as many are taken as one step can send.
 * @param data  Borrowed until all is sent.
 * @param size  CORE_STREAM_PIECE_MAX at most.
 */
void corefile_stream_out_data(struct corefile_stream_out *o, const void *data, size_t size);
void corefile_stream_out_end(struct corefile_stream_out *o, uint64_t lost);
/** @param text  Borrowed until all is sent; what is longer than CORE_STREAM_TEXT_MAX is cut off. */
void corefile_stream_out_error(struct corefile_stream_out *o, const char *text, size_t size);
/**
 * Send what was given, without waiting.  Nothing may be given before it is all sent.
 * @return 1 all is sent, 0 the socket is full, -EPIPE nobody reads, other -errno.
 */
int corefile_stream_out_send(struct corefile_stream_out *o);

/* ------------------------------------------------------------------ reading ------------------ */

struct corefile_stream_in;

/**
 * @param fd     Borrowed.
 * @param total  Bytes of the core.
 * @return 0, -ENOMEM.
 */
int corefile_stream_in_create(int fd, uint64_t total, struct corefile_stream_in **ret);
void corefile_stream_in_destroy(struct corefile_stream_in *s);
/**
 * Receive once, which waits where nothing is there, and pass it on.
 * @return 1 the core is whole, 0 there is more to come, -EREMOTEIO the writer has failed (see
 *         corefile_stream_in_error()), -EPIPE it has left, -EPROTO what came is no core of that
 *         size, other -errno.
 */
int corefile_stream_in_read(struct corefile_stream_in *s, struct corefile_sink *sink);
/** Bytes that stand for unreadable memory, when it is whole. */
uint64_t corefile_stream_in_lost(const struct corefile_stream_in *s);
/** What the writer said; not NUL-terminated. */
const char *corefile_stream_in_error(const struct corefile_stream_in *s, size_t *ret_size);

#endif /* COREFILE_STREAM_H */
