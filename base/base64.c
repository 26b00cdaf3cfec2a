/* SPDX-License-Identifier: MIT */
#include "base/base64.h"

#include <errno.h>

static int digit_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

int base64_decode(const char *text, size_t size, uint8_t *ret, size_t *ret_size)
{
	size_t pad = 0, n = 0;

	if (size % 4)
		return -EINVAL;
	while (pad < 2 && pad < size && text[size - 1 - pad] == '=')
		pad++;
	for (size_t i = 0; i < size; i += 4) {
		size_t digits = i + 4 == size ? 4 - pad : 4;
		uint32_t v = 0;

		for (size_t k = 0; k < 4; k++) {
			int d = k < digits ? digit_value(text[i + k]) : 0;

			if (d < 0)
				return -EINVAL;
			v = v << 6 | (uint32_t)d;
		}
		if (v & (digits == 2 ? 0xffffu : digits == 3 ? 0xffu : 0))
			return -EINVAL;
		for (size_t k = 0; k + 1 < digits; k++)
			ret[n++] = (uint8_t)(v >> (16 - 8 * k));
	}
	*ret_size = n;
	return 0;
}
