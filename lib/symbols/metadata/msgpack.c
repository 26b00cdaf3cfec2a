/* SPDX-License-Identifier: MIT */
#include "symbols/metadata/msgpack.h"

#include <string.h>

static uint64_t take_number(struct reader *r, size_t size)
{
	const uint8_t *p = reader_bytes(r, size);
	uint64_t v = 0;

	while (p && size--)
		v = v << 8 | *p++;
	return v;
}

static void set_blob(struct reader *r, struct msgpack_item *i, enum msgpack_kind kind, size_t n)
{
	i->kind = kind;
	i->n = n;
	i->bytes = reader_bytes(r, n);
}

/* Set an array or map.  An element takes a byte at least, so a larger count is a lie. */
static void set_container(struct reader *r, struct msgpack_item *i, enum msgpack_kind kind,
			  size_t n)
{
	i->kind = kind;
	i->n = n;
	if (n > reader_left(r) / (kind == MSGPACK_MAP ? 2 : 1))
		reader_fail(r);
}

static void set_signed(struct reader *r, struct msgpack_item *i, size_t size)
{
	uint64_t v = take_number(r, size);
	unsigned shift = 64 - 8 * (unsigned)size;

	/* The shift to the right spreads the sign bit. */
	i->number = (uint64_t)((int64_t)(v << shift) >> shift);
	i->kind = i->number >> 63 ? MSGPACK_INT : MSGPACK_UINT;
}

static void set_unsigned(struct msgpack_item *i, enum msgpack_kind kind, uint64_t v)
{
	i->kind = kind;
	i->number = v;
}

static void decode_tagged(struct reader *r, struct msgpack_item *i, uint8_t tag)
{
	switch (tag) {
	case 0xc0:
		i->kind = MSGPACK_NIL;
		break;
	case 0xc2 ... 0xc3:
		set_unsigned(i, MSGPACK_BOOL, tag & 1);
		break;
	case 0xc4 ... 0xc6:
		set_blob(r, i, MSGPACK_BINARY, (size_t)take_number(r, (size_t)1 << (tag - 0xc4)));
		break;
	case 0xc7 ... 0xc9: /* Length, type and data follow. */
		set_blob(r, i, MSGPACK_EXTENSION,
			 (size_t)take_number(r, (size_t)1 << (tag - 0xc7)) + 1);
		break;
	case 0xca ... 0xcb:
		i->kind = MSGPACK_FLOAT;
		reader_skip(r, tag == 0xca ? 4 : 8);
		break;
	case 0xcc ... 0xcf:
		set_unsigned(i, MSGPACK_UINT, take_number(r, (size_t)1 << (tag - 0xcc)));
		break;
	case 0xd0 ... 0xd3:
		set_signed(r, i, (size_t)1 << (tag - 0xd0));
		break;
	case 0xd4 ... 0xd8:
		set_blob(r, i, MSGPACK_EXTENSION, ((size_t)1 << (tag - 0xd4)) + 1);
		break;
	case 0xd9 ... 0xdb:
		set_blob(r, i, MSGPACK_STRING, (size_t)take_number(r, (size_t)1 << (tag - 0xd9)));
		break;
	case 0xdc ... 0xdd:
		set_container(r, i, MSGPACK_ARRAY, (size_t)take_number(r, tag == 0xdc ? 2 : 4));
		break;
	case 0xde ... 0xdf:
		set_container(r, i, MSGPACK_MAP, (size_t)take_number(r, tag == 0xde ? 2 : 4));
		break;
	default: /* 0xc1 is never used. */
		reader_fail(r);
	}
}

bool msgpack_next(struct reader *r, struct msgpack_item *ret)
{
	struct msgpack_item i = { .kind = MSGPACK_NIL };
	uint8_t tag;

	if (!reader_left(r))
		return false;
	tag = reader_u8(r);
	if (tag <= 0x7f)
		set_unsigned(&i, MSGPACK_UINT, tag);
	else if (tag <= 0x8f)
		set_container(r, &i, MSGPACK_MAP, tag & 0xf);
	else if (tag <= 0x9f)
		set_container(r, &i, MSGPACK_ARRAY, tag & 0xf);
	else if (tag <= 0xbf)
		set_blob(r, &i, MSGPACK_STRING, tag & 0x1f);
	else if (tag >= 0xe0)
		set_unsigned(&i, MSGPACK_INT, (uint64_t)(int64_t)(int8_t)tag);
	else
		decode_tagged(r, &i, tag);
	if (reader_is_bad(r))
		return false;
	*ret = i;
	return true;
}

static uint64_t elements_of(const struct msgpack_item *i)
{
	if (i->kind == MSGPACK_ARRAY)
		return i->n;
	return i->kind == MSGPACK_MAP ? 2 * (uint64_t)i->n : 0;
}

/*
 * A count serves instead of recursion: nesting costs no stack, and each element takes at least a
 * byte.
 */
void msgpack_skip_inside(struct reader *r, const struct msgpack_item *item)
{
	uint64_t left = elements_of(item);
	struct msgpack_item i;

	while (left) {
		if (!msgpack_next(r, &i)) {
			reader_fail(r);
			return;
		}
		left += elements_of(&i);
		left--;
	}
}

bool msgpack_is(const struct msgpack_item *item, const char *text)
{
	return item->kind == MSGPACK_STRING && item->n == strlen(text) &&
	       !memcmp(item->bytes, text, item->n);
}
