/* SPDX-License-Identifier: MIT */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

/**
 * @file nearest.h
 * Finds the word that was probably meant by one with a slip of the keyboard in it.
 */

#include <stddef.h>

/**
 * @return the number of edits (insert, remove, replace, swap neighbours) between two words of up to
 *         31 letters; 31 if one of them is longer.
 */
size_t nearest_distance(const char *a, const char *b);

/**
 * Is a valid word of @p valid_length letters at most two edits away, and not made of those alone?
 */
static inline int nearest_is_near(size_t distance, size_t valid_length)
{
	return distance <= 2 && distance + 1 < valid_length;
}

#endif /* BASE_NEAREST_H */
