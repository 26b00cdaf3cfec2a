/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_PIECES_H
#define SYMBOLS_PIECES_H

/**
 * @file pieces.h
 * Finds the pieces of code around an address without passing all of them.  Internal.
 *
 * Items of any kind whose first member is a struct piece lie in an array, which is sorted once.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A piece of code. */
struct piece {
	uint64_t low, high; /**< The first address, and the one behind the last. */
	uint64_t reach;	    /**< For pieces_around(). */
};

/** Sort items by where they begin, which pieces_around() needs. */
void pieces_sort(void *items, size_t n, size_t size);
/**
 * Call @p visit for each item that contains the address, the one that begins last first, until it
 * returns false.
 */
void pieces_around(const void *items, size_t n, size_t size, uint64_t address,
		   bool (*visit)(void *arg, const void *item), void *arg);

#endif /* SYMBOLS_PIECES_H */
