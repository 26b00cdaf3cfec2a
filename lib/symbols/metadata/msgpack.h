/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_MSGPACK_H
#define SYMBOLS_MSGPACK_H

/**
 * @file msgpack.h
 * Cursor over MessagePack bytes (https://github.com/msgpack/msgpack/blob/master/spec.md), big
 * endian.  Internal.  It turns bad at the first byte that does not fit and stays bad, as
 * base/reader.h does.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

struct msgpack {
	const uint8_t *p, *end;
	bool bad;
};

/** An item; what is inside an array or map follows it. */
struct msgpack_item {
	enum msgpack_kind kind;
	uint64_t number;      /**< Value of BOOL and UINT; of INT in two's complement. */
	const uint8_t *bytes; /**< Content of STRING, BINARY, EXTENSION; borrowed. */
	/** Number of bytes, elements, or pairs; never more than bytes are left. */
	size_t n;
};

/** Begin at the first of @p size bytes, which are borrowed. */
void msgpack_init(struct msgpack *m, const void *data, size_t size);
/**
 * Read the next item.
 * @return false at the end or when the cursor is bad.
 */
bool msgpack_next(struct msgpack *m, struct msgpack_item *ret);
/** Pass over what is inside @p item, which was just read; scalars have nothing inside. */
void msgpack_skip_inside(struct msgpack *m, const struct msgpack_item *item);
/** Is the item this string? */
bool msgpack_is(const struct msgpack_item *item, const char *text);

#endif /* SYMBOLS_MSGPACK_H */
