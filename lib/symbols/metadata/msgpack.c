/* SPDX-License-Identifier: MIT */
#include "symbols/metadata/msgpack.h"

#include <string.h>

void msgpack_init(struct msgpack *m, const void *data, size_t size)
{
	const uint8_t *p = data;

	*m = (struct msgpack){ .p = p, .end = p ? p + size : p };
}

static const uint8_t *take(struct msgpack *m, size_t size)
{
	const uint8_t *p = m->p;

	if (m->bad || size > (size_t)(m->end - m->p)) {
		m->bad = true;
		return NULL;
	}
	m->p += size;
	return p;
}

static uint64_t take_number(struct msgpack *m, size_t size)
{
	const uint8_t *p = take(m, size);
	uint64_t v = 0;

	while (p && size--)
		v = v << 8 | *p++;
	return v;
}

static void set_blob(struct msgpack *m, struct msgpack_item *i, enum msgpack_kind kind, size_t n)
{
	i->kind = kind;
	i->n = n;
	i->bytes = take(m, n);
}

/* Set an array or map.  An element takes a byte at least, so a larger count is a lie. */
static void set_container(struct msgpack *m, struct msgpack_item *i, enum msgpack_kind kind,
			  size_t n)
{
	i->kind = kind;
	i->n = n;
	if (n > (size_t)(m->end - m->p) / (kind == MSGPACK_MAP ? 2 : 1))
		m->bad = true;
}

static void set_signed(struct msgpack *m, struct msgpack_item *i, size_t size)
{
	uint64_t v = take_number(m, size);
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

static void decode_tagged(struct msgpack *m, struct msgpack_item *i, uint8_t tag)
{
	switch (tag) {
	case 0xc0:
		i->kind = MSGPACK_NIL;
		break;
	case 0xc2 ... 0xc3:
		set_unsigned(i, MSGPACK_BOOL, tag & 1);
		break;
	case 0xc4 ... 0xc6:
		set_blob(m, i, MSGPACK_BINARY, (size_t)take_number(m, (size_t)1 << (tag - 0xc4)));
		break;
	case 0xc7 ... 0xc9: /* Length, type and data follow. */
		set_blob(m, i, MSGPACK_EXTENSION,
			 (size_t)take_number(m, (size_t)1 << (tag - 0xc7)) + 1);
		break;
	case 0xca ... 0xcb:
		i->kind = MSGPACK_FLOAT;
		(void)take(m, tag == 0xca ? 4 : 8);
		break;
	case 0xcc ... 0xcf:
		set_unsigned(i, MSGPACK_UINT, take_number(m, (size_t)1 << (tag - 0xcc)));
		break;
	case 0xd0 ... 0xd3:
		set_signed(m, i, (size_t)1 << (tag - 0xd0));
		break;
	case 0xd4 ... 0xd8:
		set_blob(m, i, MSGPACK_EXTENSION, ((size_t)1 << (tag - 0xd4)) + 1);
		break;
	case 0xd9 ... 0xdb:
		set_blob(m, i, MSGPACK_STRING, (size_t)take_number(m, (size_t)1 << (tag - 0xd9)));
		break;
	case 0xdc ... 0xdd:
		set_container(m, i, MSGPACK_ARRAY, (size_t)take_number(m, tag == 0xdc ? 2 : 4));
		break;
	case 0xde ... 0xdf:
		set_container(m, i, MSGPACK_MAP, (size_t)take_number(m, tag == 0xde ? 2 : 4));
		break;
	default: /* 0xc1 is never used. */
		m->bad = true;
	}
}

bool msgpack_next(struct msgpack *m, struct msgpack_item *ret)
{
	struct msgpack_item i = { .kind = MSGPACK_NIL };
	uint8_t tag;

	if (m->bad || m->p == m->end)
		return false;
	tag = *m->p++;
	if (tag <= 0x7f)
		set_unsigned(&i, MSGPACK_UINT, tag);
	else if (tag <= 0x8f)
		set_container(m, &i, MSGPACK_MAP, tag & 0xf);
	else if (tag <= 0x9f)
		set_container(m, &i, MSGPACK_ARRAY, tag & 0xf);
	else if (tag <= 0xbf)
		set_blob(m, &i, MSGPACK_STRING, tag & 0x1f);
	else if (tag >= 0xe0)
		set_unsigned(&i, MSGPACK_INT, (uint64_t)(int64_t)(int8_t)tag);
	else
		decode_tagged(m, &i, tag);
	if (m->bad)
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
void msgpack_skip_inside(struct msgpack *m, const struct msgpack_item *item)
{
	uint64_t left = elements_of(item);
	struct msgpack_item i;

	while (left) {
		if (!msgpack_next(m, &i)) {
			m->bad = true;
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
