/* SPDX-License-Identifier: MIT */
#include "base/base64.h"

#include <errno.h>

/* One more than the value of each base64 digit; 0 for characters that are not digits. */
static const uint8_t digits_plus_1[256] = {
	['A'] = 1, ['B'] = 2, ['C'] = 3, ['D'] = 4, ['E'] = 5, ['F'] = 6, ['G'] = 7, ['H'] = 8,
	['I'] = 9, ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15,
	['P'] = 16, ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22,
	['W'] = 23, ['X'] = 24, ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29,
	['d'] = 30, ['e'] = 31, ['f'] = 32, ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36,
	['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40, ['o'] = 41, ['p'] = 42, ['q'] = 43,
	['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48, ['w'] = 49, ['x'] = 50,
	['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56, ['4'] = 57,
	['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};

static int digit_value(char c)
{
	return digits_plus_1[(uint8_t)c] - 1;
}

/*
 * Decode groups of four digits up to the first group that has another character.
 * @return the number of characters decoded, a multiple of four.
 */
static size_t decode_whole(const char *text, size_t size, uint8_t *ret)
{
	size_t i = 0;

	for (; size - i >= 4; i += 4, ret += 3) {
		uint32_t a = digits_plus_1[(uint8_t)text[i]];
		uint32_t b = digits_plus_1[(uint8_t)text[i + 1]];
		uint32_t c = digits_plus_1[(uint8_t)text[i + 2]];
		uint32_t d = digits_plus_1[(uint8_t)text[i + 3]], v;

		if (!a || !b || !c || !d)
			break;
		v = (a - 1) << 18 | (b - 1) << 12 | (c - 1) << 6 | (d - 1);
		ret[0] = (uint8_t)(v >> 16);
		ret[1] = (uint8_t)(v >> 8);
		ret[2] = (uint8_t)v;
	}
	return i;
}

int base64_decode(const char *text, size_t size, uint8_t *ret, size_t *ret_size)
{
	size_t pad = 0, whole, n;

	if (size % 4)
		return -EINVAL;
	while (pad < 2 && pad < size && text[size - 1 - pad] == '=')
		pad++;
	whole = decode_whole(text, size, ret);
	n = whole / 4 * 3;
	for (size_t i = whole; i < size; i += 4) {
		size_t digits = i + 4 == size ? 4 - pad : 4;
		uint32_t v = 0;

		for (size_t k = 0; k < 4; k++) {
			int d = k < digits ? digit_value(text[i + k]) : 0;

			if (d < 0)
				return -EINVAL;
			v = v << 6 | (uint32_t)d;
		}
		/* The bits of the last digit that belong to no byte must be 0. */
		if (v & (digits == 2 ? 0xffffu : digits == 3 ? 0xffu : 0))
			return -EINVAL;
		for (size_t k = 0; k + 1 < digits; k++)
			ret[n++] = (uint8_t)(v >> (16 - 8 * k));
	}
	*ret_size = n;
	return 0;
}
