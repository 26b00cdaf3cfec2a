/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_MSGPACK_H
#define SYMBOLS_MSGPACK_H

/**
 * @file msgpack.h
 * Cursor over MessagePack bytes (https://github.com/msgpack/msgpack/blob/master/spec.md), big
 * endian.  Internal.  Turns bad at the first byte that does not fit and stays there, as base/reader.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum msgpack_kind {
	MSGPACK_NIL,
	MSGPACK_BOOL,
	MSGPACK_UINT,  /**< Also a positive number of a signed type. */
	MSGPACK_INT,   /**< Negative. */
	MSGPACK_FLOAT, /**< Value skipped. */
	MSGPACK_STRING,
	MSGPACK_BINARY,
	MSGPACK_ARRAY, /**< n elements follow. */
	MSGPACK_MAP,   /**< n pairs follow. */
	MSGPACK_EXTENSION,
	MSGPACK_KIND_COUNT,
};

struct msgpack {
	const uint8_t *p, *end;
	bool bad;
};

struct msgpack_item {
	enum msgpack_kind kind;
	uint64_t number;      /**< Of BOOL, UINT; of INT as two's complement. */
	const uint8_t *bytes; /**< Of STRING, BINARY, EXTENSION: borrowed. */
	size_t n;	      /**< Bytes, elements, or pairs; never more than bytes are left. */
};

void msgpack_init(struct msgpack *m, const void *data, size_t size);
/** @return false at the end or when bad. */
bool msgpack_next(struct msgpack *m, struct msgpack_item *ret);
/** Pass over what is inside @p item, already read; nothing to do for scalars. */
void msgpack_skip_inside(struct msgpack *m, const struct msgpack_item *item);
/** Is it that string? */
bool msgpack_is(const struct msgpack_item *item, const char *text);

#endif /* SYMBOLS_MSGPACK_H */
