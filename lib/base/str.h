/* SPDX-License-Identifier: MIT */
#ifndef BASE_STR_H
#define BASE_STR_H

/** @file str.h  Strict number parsing and bounded string helpers. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Whole string is a decimal number in [min, max].  @return 0, -EINVAL, -ERANGE. */
int str_to_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret_value);
/** Whole string is `0x` + 1..16 hex digits.  @return 0, -EINVAL. */
int str_to_hex64(const char *s, uint64_t *ret_value);
/** Decimal or 0x-hex, whole string.  @return 0, -EINVAL, -ERANGE. */
int str_to_u64_any(const char *s, uint64_t *ret_value);
/** `250ms`, `5s`, `2m`, or a bare number of seconds; result in milliseconds, at most one day. */
int str_to_ms(const char *s, uint64_t *ret_ms);

/** `4096`, `0x1000`, `4K`, `64M`, `10G`, `1T` (powers of 1024); whole string.  @return 0, -EINVAL, -ERANGE. */
int str_to_bytes(const char *s, uint64_t *ret_bytes);
/**
 * The same, or a share: `10%` of something that the caller knows.
 * @param ret_percent  1 to 100; 0 when @p ret_bytes was set.
 */
int str_to_size(const char *s, uint64_t *ret_bytes, uint32_t *ret_percent);
/** `90s`, `5m`, `12h`, `14d`, `26w`, or a bare number of seconds.  @return 0, -EINVAL, -ERANGE. */
int str_to_age(const char *s, uint64_t *ret_s);

/** Copy with truncation; always terminates; never splits a UTF-8 sequence. size > 0. */
void str_copy(char *dst, size_t size, const char *src);
bool str_starts_with(const char *s, const char *prefix);
static inline bool str_is_empty(const char *s)
{
	return !s || !*s;
}

/** Length (1..4) of the valid UTF-8 sequence at @p s, 0 if there is none. size >= 1. */
size_t str_utf8_length(const char *s, size_t size);

/**
 * Make text of strangers harmless, in place: no line breaks, which could forge lines, nothing that a
 * terminal obeys (C0, DEL, and C1, which is U+0080 to U+009F), no broken UTF-8; '?' instead.
 */
void str_make_printable(char *text);

#endif /* BASE_STR_H */
