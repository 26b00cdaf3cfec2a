/* SPDX-License-Identifier: MIT */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

/** @file base64.h  Bytes out of JSON strings (RFC 4648, with padding). */

#include <stddef.h>
#include <stdint.h>

/**
 * @param ret  Room for size / 4 * 3 bytes; may be the text itself.
 * @return 0, -EINVAL (not canonical base64).
 */
int base64_decode(const char *text, size_t size, uint8_t *ret, size_t *ret_size);

#endif /* BASE_BASE64_H */
