/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_DIE_TYPE_H
#define SYMBOLS_DIE_TYPE_H

/** @file die_type.h  What the type of a variable or parameter is called.  Internal. */

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct die_type {
	Dwarf_Die die;
	uint64_t size; /**< Bytes of a value; 0: not known. */
};

/** Find the type of an entry, also by its abstract instance.  @return 0, -ENOENT. */
int die_type_of(Dwarf_Die *die, struct die_type *ret);
/**
 * Write a type as gdb does: `const float *`.  What has no name is `{struct}`.
 * @param base  Leave out qualifiers of the type itself, and look behind typedefs and enumerations:
 *              those are integers.
 * @param buf   Gets a text that ends in "..." where it does not fit.
 */
void die_type_text(Dwarf_Die *type, const uint8_t *info, size_t info_size, bool base, char *buf,
		   size_t size);

#endif /* SYMBOLS_DIE_TYPE_H */
