/* SPDX-License-Identifier: MIT */
#ifndef RPC_WIRE_H
#define RPC_WIRE_H

/**
 * @file rpc_wire.h
 * Turns the bytes of a connection into messages and back.  It does no input or output of its own.
 *
 * The first byte decides for the life of a connection: `C` or `c` means `Content-Length` headers,
 * everything else one message per line.
 *
 *	rpc_wire_feed(w, bytes, n);
 *	while ((r = rpc_wire_next(w, &body, &size)) > 0)
 *		...
 *	if (r < 0)
 *		close the connection, after a reply that carries rpc_wire_problem(w);
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct out;

#define RPC_WIRE_BODY_MAX   ((size_t)1 << 20)  /**< Bytes of the longest request. */
#define RPC_WIRE_HEADER_MAX ((size_t)4096)     /**< Bytes of all header lines of a message. */
#define RPC_WIRE_SKIP_MAX   ((uint64_t)64 << 20) /**< Longest body skipped to keep a connection. */

enum rpc_wire_mode { RPC_WIRE_UNKNOWN, RPC_WIRE_LINES, RPC_WIRE_HEADERS };

/** Positive results of rpc_wire_next(). */
enum rpc_wire_event {
	RPC_WIRE_BODY = 1,  /**< A message. */
	RPC_WIRE_TOO_LARGE, /**< A body over the limit; it is being skipped. */
};

/** The receiving half of one connection.  Users may set mode before the first byte. */
struct rpc_wire {
	enum rpc_wire_mode mode;
	size_t body_max; /**< Bytes of the longest body accepted. */
	char *data; /**< Not yet consumed bytes are [head, size). */
	size_t head, size, capacity;
	size_t scanned; /**< Bytes from head on that hold no end of line. */
	uint64_t skip;	/**< Bytes of a body still to drop; in line mode, dropped so far. */
	size_t body;	/**< Length of the body that the headers announced. */
	uint8_t state;	/**< Private. */
	const char *problem; /**< Why the stream cannot be followed, or NULL; a constant. */
};

/**
 * Prepare to receive.
 * @param body_max  Bytes of the longest body accepted; 0 means RPC_WIRE_BODY_MAX.
 */
void rpc_wire_init(struct rpc_wire *w, size_t body_max);
/** Free the buffer; a zeroed object is accepted. */
void rpc_wire_deinit(struct rpc_wire *w);

/**
 * Add bytes as they arrive.  Bodies returned earlier are no longer valid.
 * Drain rpc_wire_next() between calls; then no more than one message and one feed are kept, and
 * nothing at all while the connection is idle.
 * @return 0, -ENOMEM.
 */
int rpc_wire_feed(struct rpc_wire *w, const void *data, size_t size);
/**
 * Take the next message out of the bytes that were fed.
 * @param ret_body Valid until the next call; not NUL-terminated.  Only set for RPC_WIRE_BODY.
 * @return enum rpc_wire_event, 0 (more bytes are needed), -EPROTO (the stream cannot be followed
 *         any further; rpc_wire_problem() tells why; stays so).
 */
int rpc_wire_next(struct rpc_wire *w, const char **ret_body, size_t *ret_size);
/**
 * Say that the peer has sent its last byte.  A last line without a line break is a message.
 * @return RPC_WIRE_BODY, 0 (nothing was cut off), -EPROTO (a message was cut off).
 */
int rpc_wire_finish(struct rpc_wire *w, const char **ret_body, size_t *ret_size);
/** How many bytes were fed and are not taken out yet. */
static inline size_t rpc_wire_unread(const struct rpc_wire *w)
{
	return w->size - w->head;
}
/** Whether some of a message has arrived, but not all of it. */
static inline bool rpc_wire_has_part(const struct rpc_wire *w)
{
	return rpc_wire_unread(w) > 0;
}
/** Why the stream cannot be followed, as one sentence; "" unless -EPROTO was returned. */
const char *rpc_wire_problem(const struct rpc_wire *w);

/** Append a message in its frame; RPC_WIRE_UNKNOWN counts as lines. */
void rpc_wire_write(struct out *o, enum rpc_wire_mode mode, const char *text, size_t size);
/**
 * Append what goes in front of a body of @p size bytes, which the caller sends from elsewhere;
 * rpc_wire_end() follows.
 */
void rpc_wire_begin(struct out *o, enum rpc_wire_mode mode, size_t size);
/** Append what goes behind a body. */
void rpc_wire_end(struct out *o, enum rpc_wire_mode mode);

#endif /* RPC_WIRE_H */
