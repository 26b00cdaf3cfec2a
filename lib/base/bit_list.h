/* SPDX-License-Identifier: MIT */
#ifndef BASE_BIT_LIST_H
#define BASE_BIT_LIST_H

/** @file bit_list.h  Sets of up to 64 numbers as text: `0-3,8`. */

#include <stdint.h>

#include "base/out.h"

/**
 * Parse numbers from 0 to 63, and ranges of them, with commas between.
 * @return 0, -EINVAL (then @p ret is untouched).
 */
int bit_list_parse(const char *text, uint64_t *ret);
/** Append the numbers of the bits that are set; nothing where none is. */
void bit_list_print(uint64_t bits, struct out *o);

#endif /* BASE_BIT_LIST_H */
