/* SPDX-License-Identifier: MIT */
#include "hoststack/string.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define HEAD_MAX 320
#define REPLACEMENT 0xfffd

static size_t put(char *to, uint32_t c)
{
	if (c >= 0xdc80 && c <= 0xdcff)
		return (size_t)sprintf(to, "\\x%02x", c - 0xdc00);
	if (!c || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		c = REPLACEMENT;
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

char *hoststack_utf8(const uint8_t *data, size_t n, unsigned kind)
{
	/* No character takes more than four bytes, and sprintf() adds a NUL. */
	char *text = malloc(4 * n + 1);
	size_t size = 0;

	for (size_t i = 0; text && i < n; i++)
		size += put(text + size, (uint32_t)hoststack_number(data, i * kind, kind));
	if (text)
		text[size] = '\0';
	return text;
}

/*
 * Where the bits of PyASCIIObject.state are: free-threaded builds have a byte for `interned` in front of them from 3.14
 * on, and two bits in 3.13, like others (Include/cpython/unicodeobject.h).
 */
static bool parse_state(const struct hoststack_layout *l, uint32_t state, unsigned *ret_kind, bool *ret_ascii)
{
	unsigned kind_at = l->free_threaded && l->minor >= 14 ? 8 : 2;

	*ret_kind = state >> kind_at & 7;
	*ret_ascii = state >> (kind_at + 4) & 1;
	return (*ret_kind == 1 || *ret_kind == 2 || *ret_kind == 4) && state >> (kind_at + 3) & 1 &&
	       (!*ret_ascii || *ret_kind == 1);
}

int hoststack_string(struct hoststack_memory *m, const struct hoststack_layout *l, uint64_t address, uint64_t type,
		     char **ret)
{
	auto_free uint8_t *data = NULL;
	uint8_t head[HEAD_MAX];
	unsigned kind;
	uint64_t n;
	bool ascii;
	int r = hoststack_read(m, address, head, l->str_ascii);

	if (r < 0)
		return r;
	n = hoststack_number(head, l->str_length, 8);
	if ((type && hoststack_number(head, l->object_type, 8) != type) || n > INT64_MAX ||
	    !parse_state(l, (uint32_t)hoststack_number(head, l->str_state, 4), &kind, &ascii))
		return -EBADMSG;
	if (n > HOSTSTACK_CHARACTERS_MAX)
		n = HOSTSTACK_CHARACTERS_MAX;
	data = malloc(n * kind + 1);
	if (!data)
		return -ENOMEM;
	r = hoststack_read(m, address + (ascii ? l->str_ascii : l->str_compact), data, n * kind);
	if (r < 0)
		return r;
	*ret = hoststack_utf8(data, n, kind);
	return *ret ? 0 : -ENOMEM;
}
