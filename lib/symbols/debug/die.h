/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_DIE_H
#define SYMBOLS_DIE_H

/**
 * @file die.h
 * Tells of a DIE (an entry of DWARF) what libdw does not tell, or does not tell safely.  Internal.
 */

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Tell how many bytes a DIE takes, up to its first child or the next DIE.
 *
 * dwarf_siblingof() follows DW_AT_sibling wherever it points, also backwards and for ever; walking
 * DIE by DIE in the order of the file always ends.
 * @param end  End of the unit.
 * @return 0 when the DIE is broken, does not end before @p end, or has more attributes than are looked at.
 */
size_t die_size(Dwarf_Die *die, const uint8_t *end);

/**
 * Have a DIE and the abstract instances behind it no more attributes than are looked at?  libdw searches all of
 * them for each that is asked for, and 30 MiB have room for millions.
 */
bool die_is_small(Dwarf_Die *die);

/**
 * Read a string attribute, also of the abstract instance behind the DIE.
 * @param info  The section that DIEs lie in: strings inside it are checked to end there.
 * @return NULL when there is none.
 */
const char *die_string(Dwarf_Die *die, unsigned attribute, const uint8_t *info, size_t info_size);
/** @return the linkage name if there is one, else the plain name, else NULL. */
const char *die_function_name(Dwarf_Die *die, const uint8_t *info, size_t info_size);
/** @return the plain name; NULL when there is none. */
const char *die_name(Dwarf_Die *die, const uint8_t *info, size_t info_size);
/** @return the value of a numeric attribute; 0 when there is none or it does not fit. */
int die_number(Dwarf_Die *die, unsigned attribute);

#endif /* SYMBOLS_DIE_H */
