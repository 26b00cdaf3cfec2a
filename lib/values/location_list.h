/* SPDX-License-Identifier: MIT */
#ifndef VALUES_LOCATION_LIST_H
#define VALUES_LOCATION_LIST_H

/**
 * @file location_list.h
 * Finds the expression that holds at an address in .debug_loc (DWARF 2 to 4) or .debug_loclists (5).
 *
 * libdw's own calls parse expressions, and refuse all of a list with one operation of AMD's dialect.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "values/evaluate.h"

/** A list and what its entries refer to. */
struct location_list {
	const uint8_t *section; /**< .debug_loc or .debug_loclists. */
	size_t size;
	uint64_t offset; /**< Of the list. */
	bool is_old;	 /**< It is in .debug_loc. */
	uint64_t base;	 /**< Of the unit. */
	const uint8_t *addresses;
	size_t n_addresses; /**< Of 8 bytes each. */
};

/**
 * Find the first entry that covers an address.
 * @return 0, -ENOENT (none does), -EBADMSG.
 */
int location_list_find(const struct location_list *l, uint64_t address,
		       struct values_operations *ret);

#endif /* VALUES_LOCATION_LIST_H */
