/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_MSGPACK_H
#define SYMBOLS_MSGPACK_H

/**
 * @file msgpack.h
 * Reads MessagePack items (https://github.com/msgpack/msgpack/blob/master/spec.md), big endian.
 * Internal.  The reader turns bad at the first byte that does not fit.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/reader.h"

/** Kinds of items. */
enum msgpack_kind {
	MSGPACK_NIL,
	MSGPACK_BOOL,
	MSGPACK_UINT,  /**< Unsigned, or a positive number of a signed type. */
	MSGPACK_INT,   /**< Negative. */
	MSGPACK_FLOAT, /**< Its value is skipped. */
	MSGPACK_STRING,
	MSGPACK_BINARY,
	MSGPACK_ARRAY, /**< n elements follow. */
	MSGPACK_MAP,   /**< n pairs follow. */
	MSGPACK_EXTENSION,
	MSGPACK_KIND_COUNT,
};

/** An item; what is inside an array or map follows it. */
struct msgpack_item {
	enum msgpack_kind kind;
	uint64_t number;      /**< Value of BOOL and UINT; of INT in two's complement. */
	const uint8_t *bytes; /**< Content of STRING, BINARY, EXTENSION; borrowed. */
	/** Number of bytes, elements, or pairs; never more than bytes are left. */
	size_t n;
};

/**
 * Read the next item.
 * @return false at the end or when the reader is bad.
 */
bool msgpack_next(struct reader *r, struct msgpack_item *ret);
/** Pass over what is inside @p item, which was just read; scalars have nothing inside. */
void msgpack_skip_inside(struct reader *r, const struct msgpack_item *item);
/** Is the item this string? */
bool msgpack_is(const struct msgpack_item *item, const char *text);

#endif /* SYMBOLS_MSGPACK_H */
