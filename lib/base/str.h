/* SPDX-License-Identifier: MIT */
#ifndef BASE_STR_H
#define BASE_STR_H

/** @file str.h  Strict number parsing and bounded string helpers. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Parse a whole string as a decimal number in [min, max].
 * @return 0, -EINVAL (empty, or not digits only), -ERANGE.
 */
int str_to_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret_value);
/**
 * Parse a whole string as `0x` and 1 to 16 hexadecimal digits.
 * @return 0, -EINVAL.
 */
int str_to_hex64(const char *s, uint64_t *ret_value);
/**
 * Parse a whole string as a decimal number or as `0x` and hexadecimal digits.
 * @return 0, -EINVAL, -ERANGE.
 */
int str_to_u64_any(const char *s, uint64_t *ret_value);
/**
 * Parse a time: `250ms`, `5s`, `2m`, or a bare number of seconds.
 * @param ret_ms  Milliseconds, at most one day.
 * @return 0, -EINVAL, -ERANGE.
 */
int str_to_ms(const char *s, uint64_t *ret_ms);

/**
 * Parse a size, the whole string: `4096`, `0x1000`, `4K`, `64M`, `10G`, `1T` (powers of 1024).
 * @return 0, -EINVAL, -ERANGE.
 */
int str_to_bytes(const char *s, uint64_t *ret_bytes);
/**
 * The same, or a share: `10%` of a size that the caller knows.
 * @param ret_bytes    Set unless a share was given.
 * @param ret_percent  1 to 100; 0 when @p ret_bytes was set.
 * @return 0, -EINVAL, -ERANGE.
 */
int str_to_size(const char *s, uint64_t *ret_bytes, uint32_t *ret_percent);
/**
 * Parse an age: `90s`, `5m`, `12h`, `14d`, `26w`, or a bare number of seconds.
 * @return 0, -EINVAL, -ERANGE.
 */
int str_to_age(const char *s, uint64_t *ret_s);

/**
 * Copy a string and truncate it to @p size bytes with its NUL, never within a UTF-8 sequence.
 * @param size  Greater than 0.
 */
void str_copy(char *dst, size_t size, const char *src);
/** The last part of a path; all of it where that is empty. */
const char *str_base_name(const char *path);
/** Does the string begin with this prefix? */
bool str_starts_with(const char *s, const char *prefix);
/** Is the string NULL or ""? */
static inline bool str_is_empty(const char *s)
{
	return !s || !*s;
}

/**
 * @return the length (1 to 4) of the valid UTF-8 sequence at @p s; 0 if there is none.
 * @param size  Bytes that may be read at @p s, at least 1.
 */
size_t str_utf8_length(const char *s, size_t size);
/** The character of a sequence of @p n bytes that str_utf8_length() has accepted; of one byte, that byte. */
uint32_t str_utf8_code(const char *s, size_t n);

/**
 * Make text of strangers harmless, in place.  Line breaks, which could forge lines, what a terminal
 * obeys (C0, DEL, and C1, which is U+0080 to U+009F), and broken UTF-8 become '?'.
 */
void str_make_printable(char *text);

#endif /* BASE_STR_H */
