/* SPDX-License-Identifier: MIT */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

/** @file nearest.h  What was probably meant by a word with a slip of the keyboard in it. */

#include <stddef.h>

/** Edits (insert, remove, replace, swap neighbours) between two words of up to 31 letters. */
size_t nearest_distance(const char *a, const char *b);

/** Is @p valid at most two edits away, and not made of those alone? */
static inline int nearest_is_near(size_t distance, size_t valid_length)
{
	return distance <= 2 && distance + 1 < valid_length;
}

#endif /* BASE_NEAREST_H */
