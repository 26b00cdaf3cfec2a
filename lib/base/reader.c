/* SPDX-License-Identifier: MIT */
#include "base/reader.h"

#include <endian.h>
#include <string.h>

void reader_init(struct reader *r, const void *data, size_t size)
{
	*r = (struct reader){ .data = data, .size = size };
}

static void set_bad(struct reader *r, size_t at)
{
	if (!r->bad) {
		r->bad = true;
		r->bad_at = at;
	}
}

const void *reader_bytes(struct reader *r, size_t size)
{
	const uint8_t *p;

	if (r->bad || size > r->size - r->pos) {
		set_bad(r, r->pos);
		return NULL;
	}
	p = r->data + r->pos;
	r->pos += size;
	return p;
}

void reader_copy(struct reader *r, void *dst, size_t size)
{
	const void *p = reader_bytes(r, size);

	if (size == 0)
		return;
	if (p)
		memcpy(dst, p, size);
	else
		memset(dst, 0, size);
}

uint8_t reader_u8(struct reader *r)
{
	uint8_t v;

	reader_copy(r, &v, sizeof(v));
	return v;
}

uint16_t reader_u16(struct reader *r)
{
	uint16_t v;

	reader_copy(r, &v, sizeof(v));
	return le16toh(v);
}

uint32_t reader_u32(struct reader *r)
{
	uint32_t v;

	reader_copy(r, &v, sizeof(v));
	return le32toh(v);
}

uint64_t reader_u64(struct reader *r)
{
	uint64_t v;

	reader_copy(r, &v, sizeof(v));
	return le64toh(v);
}

uint64_t reader_uleb(struct reader *r)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint8_t byte = reader_u8(r);

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return r->bad ? 0 : v;
	}
	reader_fail(r);
	return 0;
}

int64_t reader_sleb(struct reader *r)
{
	uint64_t v = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = reader_u8(r);
		v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && shift < 64 && !reader_is_bad(r));
	if (byte & 0x80)
		reader_fail(r);
	if (byte & 0x40 && shift < 64)
		v |= UINT64_MAX << shift;
	return (int64_t)v;
}

const char *reader_string(struct reader *r)
{
	size_t left = reader_left(r);
	const uint8_t *nul = left ? memchr(r->data + r->pos, '\0', left) : NULL;

	if (!nul) {
		reader_fail(r);
		return NULL;
	}
	return reader_bytes(r, (size_t)(nul - (r->data + r->pos)) + 1);
}

void reader_fail(struct reader *r)
{
	set_bad(r, r->pos);
}

void reader_seek(struct reader *r, size_t pos)
{
	if (pos > r->size)
		set_bad(r, pos);
	else if (!r->bad)
		r->pos = pos;
}

void reader_skip(struct reader *r, size_t size)
{
	(void)reader_bytes(r, size);
}

struct reader reader_slice(const struct reader *r, size_t offset, size_t size)
{
	struct reader s;

	if (offset > r->size || size > r->size - offset) {
		reader_init(&s, r->data, 0);
		set_bad(&s, offset);
		return s;
	}
	reader_init(&s, r->data ? r->data + offset : NULL, size);
	return s;
}
