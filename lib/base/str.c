/* SPDX-License-Identifier: MIT */
#include "base/str.h"

#include <errno.h>
#include <string.h>

int str_to_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret_value)
{
	uint64_t v = 0;

	if (str_is_empty(s))
		return -EINVAL;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(v, UINT64_C(10), &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return -ERANGE;
	}
	if (v < min || v > max)
		return -ERANGE;
	*ret_value = v;
	return 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int str_to_hex64(const char *s, uint64_t *ret_value)
{
	uint64_t v = 0;
	size_t n = 0;

	if (!s || s[0] != '0' || (s[1] != 'x' && s[1] != 'X'))
		return -EINVAL;
	for (s += 2; *s; s++, n++) {
		int d = hex_digit(*s);

		if (d < 0 || n == 16)
			return -EINVAL;
		v = v << 4 | (uint64_t)d;
	}
	if (!n)
		return -EINVAL;
	*ret_value = v;
	return 0;
}

int str_to_u64_any(const char *s, uint64_t *ret_value)
{
	if (s && s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
		return str_to_hex64(s, ret_value);
	return str_to_u64(s, 0, UINT64_MAX, ret_value);
}

int str_to_ms(const char *s, uint64_t *ret_ms)
{
	static const struct {
		const char *suffix;
		uint64_t ms;
	} units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "", 1000 } };
	const uint64_t day_ms = UINT64_C(86400000);
	char digits[16];
	uint64_t v;
	size_t n;
	int r;

	n = s ? strspn(s, "0123456789") : 0;
	if (!n || n >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, s, n);
	digits[n] = '\0';
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(s + n, units[i].suffix))
			continue;
		r = str_to_u64(digits, 0, day_ms / units[i].ms, &v);
		if (!r)
			*ret_ms = v * units[i].ms;
		return r;
	}
	return -EINVAL;
}

/*
 * Split a number from the suffix that follows it.
 * @param any  Hexadecimal numbers with `0x` are accepted as well.
 */
static int split_number(const char *s, bool any, uint64_t *ret_value, const char **ret_suffix)
{
	bool hex = any && s && s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
	size_t n = !s ? 0 : hex ? 2 + strspn(s + 2, "0123456789abcdefABCDEF") : strspn(s, "0123456789");
	char digits[24];

	if (!n || n >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, s, n);
	digits[n] = '\0';
	*ret_suffix = s + n;
	return str_to_u64_any(digits, ret_value);
}

int str_to_bytes(const char *s, uint64_t *ret_bytes)
{
	static const char suffixes[] = "KMGT";
	const char *suffix, *found;
	uint64_t v;
	unsigned shift = 0;
	int r = split_number(s, true, &v, &suffix);

	if (r < 0)
		return r;
	if (*suffix) {
		found = strchr(suffixes, *suffix);
		if (!found || suffix[1])
			return -EINVAL;
		shift = 10 * (unsigned)(found - suffixes + 1);
	}
	if (v > UINT64_MAX >> shift)
		return -ERANGE;
	*ret_bytes = v << shift;
	return 0;
}

int str_to_size(const char *s, uint64_t *ret_bytes, uint32_t *ret_percent)
{
	const char *suffix;
	uint64_t v;
	int r = split_number(s, false, &v, &suffix);

	if (r == 0 && !strcmp(suffix, "%")) {
		if (v < 1 || v > 100)
			return -ERANGE;
		*ret_percent = (uint32_t)v;
		return 0;
	}
	r = str_to_bytes(s, ret_bytes);
	if (r == 0)
		*ret_percent = 0;
	return r;
}

int str_to_age(const char *s, uint64_t *ret_s)
{
	static const struct {
		const char *suffix;
		uint64_t s;
	} units[] = { { "", 1 },     { "s", 1 },     { "m", 60 },
		      { "h", 3600 }, { "d", 86400 }, { "w", 604800 } };
	const char *suffix;
	uint64_t v;
	int r = split_number(s, false, &v, &suffix);

	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(suffix, units[i].suffix))
			return __builtin_mul_overflow(v, units[i].s, ret_s) ? -ERANGE : 0;
	return -EINVAL;
}

void str_copy(char *dst, size_t size, const char *src)
{
	size_t n = strlen(src);

	if (n >= size) {
		n = size - 1;
		while (n && ((unsigned char)src[n] & 0xc0) == 0x80)
			n--;
	}
	memcpy(dst, src, n);
	dst[n] = '\0';
}

const char *str_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

bool str_starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

size_t str_utf8_length(const char *s, size_t size)
{
	const unsigned char *u = (const unsigned char *)s;
	uint32_t c = u[0], min;
	size_t n;

	/* 0xc0 and 0xc1 begin no sequence: they would be longer forms of ASCII. */
	if (c < 0x80)
		return 1;
	if (c >= 0xc2 && c < 0xe0)
		n = 2, c &= 0x1f, min = 0x80;
	else if ((c & 0xf0) == 0xe0)
		n = 3, c &= 0x0f, min = 0x800;
	else if (c >= 0xf0 && c < 0xf5)
		n = 4, c &= 0x07, min = 0x10000;
	else
		return 0;
	if (size < n)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (u[i] & 0x3f);
	}
	/* A longer form than needed is not valid, nor is a surrogate. */
	if (c < min || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	return n;
}

uint32_t str_utf8_code(const char *s, size_t n)
{
	const unsigned char *u = (const unsigned char *)s;
	uint32_t c = n == 1 ? u[0] : u[0] & (0x7fU >> n);

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (u[i] & 0x3f);
	return c;
}

void str_make_printable(char *text)
{
	size_t left = strlen(text), n;

	for (; left; text += n, left -= n) {
		const unsigned char *u = (const unsigned char *)text;

		n = str_utf8_length(text, left);
		/* In UTF-8, C1 is 0xc2 0x80 to 0xc2 0x9f. */
		if (n == 0 || u[0] < 0x20 || u[0] == 0x7f || (u[0] == 0xc2 && u[1] < 0xa0)) {
			n = n ? n : 1;
			memset(text, '?', n);
		}
	}
}
