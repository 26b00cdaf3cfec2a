/* SPDX-License-Identifier: MIT */
#ifndef CTL_DOCUMENT_WHEN_H
#define CTL_DOCUMENT_WHEN_H

/** @file when.h  Reads and writes points in time as people do, in local time. */

#include <stdbool.h>
#include <stdint.h>

/**
 * Read a time: `now`, `today`, `yesterday`, `tomorrow`, `-1h30m`, `2h ago`, `@1764000000`,
 * `2026-11-21`, `2026-11-21 09:17[:33]`, the same with `T` and, for UTC, a `Z` behind it, or
 * `09:17[:33]` of today.
 * @param now_us  The present, in microseconds since 1970; so is the result.
 * @return 0, -EINVAL (no such time).
 */
int when_parse(const char *text, uint64_t now_us, uint64_t *ret_us);

/**
 * Write a time as `Sat 2026-11-21 09:17:33`; "" for one behind the year 9999.
 * @param us    Microseconds since 1970.
 * @param size  Bytes of @p ret, at least 32.
 */
void when_format(uint64_t us, char *ret, unsigned size);

#endif /* CTL_DOCUMENT_WHEN_H */
