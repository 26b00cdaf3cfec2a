/* SPDX-License-Identifier: MIT */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

/**
 * @file base64.h
 * Decoding of the base64 in JSON strings (RFC 4648, with padding).
 */

#include <stddef.h>
#include <stdint.h>

/**
 * Decode a text.  Only the canonical form is accepted: padding is required and unused bits are 0.
 * @param size      Characters in @p text.
 * @param ret       Room for size / 4 * 3 bytes; may be the text itself, because a byte is written
 *                  only after the digits that it is made of have been read.
 * @param ret_size  Bytes decoded.
 * @return 0, -EINVAL (not canonical base64; @p ret may have been written to).
 */
int base64_decode(const char *text, size_t size, uint8_t *ret, size_t *ret_size);

#endif /* BASE_BASE64_H */
