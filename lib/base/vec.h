/* SPDX-License-Identifier: MIT */
#ifndef BASE_VEC_H
#define BASE_VEC_H

/**
 * @file vec.h
 * Growing arrays: a pointer, the number of items and the capacity, wherever their owner has them.
 */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/**
 * Make room for @p more items behind the @p n that are there; the array at least doubles.
 * @param list      Address of the pointer to the items, which malloc() allocated, or to NULL.
 * @param capacity  Items that there is room for.
 * @return 0, -ENOMEM; then nothing has changed.
 */
static inline int vec_reserve(void *list, size_t n, size_t more, size_t *capacity, size_t item_size)
{
	size_t wanted = 2 * n + more + 15;
	void *items;

	if (more <= *capacity - n)
		return 0;
	memcpy(&items, list, sizeof(items));
	items = reallocarray(items, wanted, item_size);
	if (!items)
		return -ENOMEM;
	memcpy(list, &items, sizeof(items));
	*capacity = wanted;
	return 0;
}

#endif /* BASE_VEC_H */
