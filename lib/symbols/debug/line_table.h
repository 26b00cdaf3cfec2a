/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_LINE_TABLE_H
#define SYMBOLS_LINE_TABLE_H

/**
 * @file line_table.h
 * Source positions from all line tables of a file, without .debug_info.  Internal.
 *
 * Code compiled with -lineinfo has line tables only, also where it was linked with code that has
 * more.  NVIDIA's own kind of rows, which libdw knows, tell what was inlined.
 */

#include <elfutils/libdw.h>
#include <stddef.h>

#include "symbols/image.h"

/** The line tables of a file. */
struct line_table;

/**
 * Tell how many bytes a line program takes, which are more than it makes rows.
 * @param section  .debug_line, expanded.
 * @param at       Where the program begins, not checked.
 */
size_t line_program_size(const uint8_t *section, size_t size, uint64_t at);

/**
 * Read the line tables.
 * @param dw        Must outlive the object.
 * @param section   As for line_program_size().
 * @param rows_max  Programs that could make more rows together are left out.
 * @param ret       Release with line_table_destroy().
 * @return 0, also when something was left out; -EBADMSG (nothing could be read), -ENOMEM.
 */
int line_table_create(Dwarf *dw, const uint8_t *section, size_t size, size_t rows_max, struct line_table **ret);
/**
 * Release line tables.  NULL is allowed, here and in the functions below, and is an empty table.
 */
void line_table_destroy(struct line_table *t);
/** @return the number of rows that are kept. */
size_t line_table_rows(const struct line_table *t);
/** Was anything left out? */
bool line_table_is_cut(const struct line_table *t);

/** Are there rows for code between the two addresses? */
bool line_table_has_lines(const struct line_table *t, uint64_t low, uint64_t high);
/** Add frames, innermost first; the last one's function is left open. */
void line_table_locate(const struct line_table *t, uint64_t address, struct symbols_location *l);

#endif /* SYMBOLS_LINE_TABLE_H */
