/* SPDX-License-Identifier: MIT */
#include "base/bit_list.h"

#include <errno.h>

#define BITS 64u

/* @return what follows the number; NULL when there is none, or it is too large. */
static const char *parse_number(const char *at, unsigned *ret)
{
	unsigned n = 0;

	if (*at < '0' || *at > '9')
		return NULL;
	for (; *at >= '0' && *at <= '9'; at++) {
		n = n * 10 + (unsigned)(*at - '0');
		if (n >= BITS)
			return NULL;
	}
	*ret = n;
	return at;
}

static uint64_t range(unsigned first, unsigned last)
{
	return (UINT64_MAX >> (BITS - 1 - (last - first))) << first;
}

int bit_list_parse(const char *text, uint64_t *ret)
{
	uint64_t bits = 0;

	for (;; text++) {
		unsigned first, last;

		text = parse_number(text, &first);
		if (!text)
			return -EINVAL;
		last = first;
		if (*text == '-')
			text = parse_number(text + 1, &last);
		if (!text || last < first)
			return -EINVAL;
		bits |= range(first, last);
		if (!*text)
			break;
		if (*text != ',')
			return -EINVAL;
	}
	*ret = bits;
	return 0;
}

void bit_list_print(uint64_t bits, struct out *o)
{
	const char *comma = "";

	while (bits) {
		unsigned first = (unsigned)__builtin_ctzll(bits), last = first;

		while (last + 1 < BITS && bits >> (last + 1) & 1)
			last++;
		out_fmt(o, last == first ? "%s%u" : "%s%u-%u", comma, first, last);
		bits &= ~range(first, last);
		comma = ",";
	}
}
