/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_LINE_TABLE_H
#define SYMBOLS_LINE_TABLE_H

/**
 * @file line_table.h
 * Source positions out of all line tables of a file, without .debug_info.  Internal.
 *
 * Code compiled with -lineinfo has that, also where it was linked with code that has more; what was
 * inlined is told by rows of NVIDIA's own, which libdw knows.
 */

#include <elfutils/libdw.h>
#include <stddef.h>

#include "symbols/image.h"

struct line_table;

/**
 * @param rows_max  More are left out.
 * @return 0, also when something was left out; -EBADMSG (nothing could be read), -ENOMEM.
 */
int line_table_create(Dwarf *dw, size_t rows_max, struct line_table **ret);
/** NULL is allowed, here and below. */
void line_table_destroy(struct line_table *t);
size_t line_table_rows(const struct line_table *t);
/** Not all of it could be kept. */
bool line_table_is_cut(const struct line_table *t);

/** Are there rows for code between the two addresses? */
bool line_table_has_lines(const struct line_table *t, uint64_t low, uint64_t high);
/** Add frames, innermost first; the last one's function is left open. */
void line_table_locate(const struct line_table *t, uint64_t address, struct symbols_location *l);

#endif /* SYMBOLS_LINE_TABLE_H */
