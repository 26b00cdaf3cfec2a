/* SPDX-License-Identifier: MIT */
#ifndef BASE_READER_H
#define BASE_READER_H

/**
 * @file reader.h
 * Bounded cursor over untrusted bytes (little endian).
 *
 * Reading past the end never touches memory outside the buffer: the reader turns "bad", remembers
 * the offset of the first failure, and every later read gives zero.  Call reader_is_bad() once at
 * the end instead of after each field.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader {
	const uint8_t *data;
	size_t size;
	size_t pos;
	bool bad;
	size_t bad_at; /**< Offset of the first failed read; valid when bad. */
};

/** Begin at the first of @p size bytes, which are borrowed as long as the reader is used. */
void reader_init(struct reader *r, const void *data, size_t size);

/** Has any read gone past the end? */
static inline bool reader_is_bad(const struct reader *r)
{
	return r->bad;
}
/** @return the number of bytes that are still to be read; 0 once the reader is bad. */
static inline size_t reader_left(const struct reader *r)
{
	return r->bad ? 0 : r->size - r->pos;
}

/** Read the next byte; 0 when none is left. */
uint8_t reader_u8(struct reader *r);
/** Read 2 bytes, little endian, at any alignment; 0 when fewer are left. */
uint16_t reader_u16(struct reader *r);
/** Read 4 bytes, little endian, at any alignment; 0 when fewer are left. */
uint32_t reader_u32(struct reader *r);
/** Read 8 bytes, little endian, at any alignment; 0 when fewer are left. */
uint64_t reader_u64(struct reader *r);

/** Read an unsigned LEB128 number of at most 10 bytes (DWARF 5, 7.6); 0 when it does not end. */
uint64_t reader_uleb(struct reader *r);
/** Read a signed LEB128 number of at most 10 bytes. */
int64_t reader_sleb(struct reader *r);
/** @return the string that begins here, borrowed; NULL (and the reader is bad) when it has no end. */
const char *reader_string(struct reader *r);
/** Turn the reader bad: what was read makes no sense. */
void reader_fail(struct reader *r);

/**
 * @return a borrowed view of the next @p size bytes; NULL (and the reader is bad) when fewer are
 *         left.
 */
const void *reader_bytes(struct reader *r, size_t size);
/** Copy the next @p size bytes; on failure @p dst is filled with zeros. */
void reader_copy(struct reader *r, void *dst, size_t size);
/** Move to an absolute offset; one beyond the end turns the reader bad. */
void reader_seek(struct reader *r, size_t pos);
/** Move @p size bytes forward; fewer than that turn the reader bad. */
void reader_skip(struct reader *r, size_t size);
/**
 * @return a reader of its own over the range [offset, offset + size) of the same buffer; it is bad
 *         from the start if the range is not inside.
 */
struct reader reader_slice(const struct reader *r, size_t offset, size_t size);

#endif /* BASE_READER_H */
