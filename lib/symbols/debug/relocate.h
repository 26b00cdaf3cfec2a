/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_RELOCATE_H
#define SYMBOLS_RELOCATE_H

/**
 * @file relocate.h
 * Puts addresses into the debug information of a cubin.  Internal.
 */

#include <stdint.h>

#include "symbols/code_elf.h"

/**
 * Apply relocations of .debug_* sections that were not applied when the code got its addresses.
 *
 * A driver that hands out a loaded cubin has applied them, and leaves them in the file.  So each
 * place is looked at: one that has an address of its section's code is left alone, and nothing is
 * ever applied twice.  Without addresses (a cubin as compiled) nothing is done.
 * @param v      A file whose sections are sane.
 * @param bytes  The bytes that @p v looks at.  A section that shares bytes with anything else of
 *               the file is left as it is.
 */
void relocate_debug_sections(const struct elf_view *v, uint8_t *bytes);

#endif /* SYMBOLS_RELOCATE_H */
