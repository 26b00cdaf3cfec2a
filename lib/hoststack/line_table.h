/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_LINE_TABLE_H
#define HOSTSTACK_LINE_TABLE_H

/** @file line_table.h  From a place in the instructions to a line; three formats (3.8, 3.10, 3.11). */

#include <stddef.h>
#include <stdint.h>

/**
 * @param minor   8 for Python 3.8.
 * @param offset  Bytes from the first instruction; negative: none was begun.
 * @param first   The line of the definition.
 * @return the line; 0: that place has none.
 */
uint32_t hoststack_line(unsigned minor, const uint8_t *table, size_t size, int64_t offset, uint32_t first);

#endif /* HOSTSTACK_LINE_TABLE_H */
