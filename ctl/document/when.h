/* SPDX-License-Identifier: MIT */
#ifndef CTL_DOCUMENT_WHEN_H
#define CTL_DOCUMENT_WHEN_H

/** @file when.h  Points in time as people write them, in local time. */

#include <stdbool.h>
#include <stdint.h>

/**
 * `now`, `today`, `yesterday`, `tomorrow`, `-1h30m`, `2h ago`, `@1764000000`, `2026-11-21`,
 * `2026-11-21 09:17[:33]`, the same with `T` and, for UTC, a `Z` behind it, `09:17[:33]` of today.
 * @param now_us  Microseconds since 1970.
 * @return 0, -EINVAL.
 */
int when_parse(const char *text, uint64_t now_us, uint64_t *ret_us);

/** `Sat 2026-11-21 09:17:33`; at least 32 bytes. */
void when_format(uint64_t us, char *ret, unsigned size);

#endif /* CTL_DOCUMENT_WHEN_H */
