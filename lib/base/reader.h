/* SPDX-License-Identifier: MIT */
#ifndef BASE_READER_H
#define BASE_READER_H

/**
 * @file reader.h
 * Bounded cursor over untrusted bytes (little endian).
 *
 * Reading past the end never touches memory outside the buffer: the reader turns "bad", remembers
 * the offset of the first failure, and every later read gives zero.  Check reader_is_bad() once
 * at the end instead of after each field.
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

void reader_init(struct reader *r, const void *data, size_t size);

static inline bool reader_is_bad(const struct reader *r)
{
	return r->bad;
}
static inline size_t reader_left(const struct reader *r)
{
	return r->bad ? 0 : r->size - r->pos;
}

uint8_t reader_u8(struct reader *r);
uint16_t reader_u16(struct reader *r);
uint32_t reader_u32(struct reader *r);
uint64_t reader_u64(struct reader *r);

/** Borrowed view of the next @p size bytes; NULL (and bad) when fewer are left. */
const void *reader_bytes(struct reader *r, size_t size);
/** Copy @p size bytes; on failure @p dst is zero-filled. */
void reader_copy(struct reader *r, void *dst, size_t size);
/** Move to an absolute offset; beyond the end turns the reader bad. */
void reader_seek(struct reader *r, size_t pos);
void reader_skip(struct reader *r, size_t size);
/** Sub-range [offset, offset+size) of the same buffer as a reader of its own; bad if outside. */
struct reader reader_slice(const struct reader *r, size_t offset, size_t size);

#endif /* BASE_READER_H */
