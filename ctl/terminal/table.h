/* SPDX-License-Identifier: MIT */
#ifndef CTL_TERMINAL_TABLE_H
#define CTL_TERMINAL_TABLE_H

/**
 * @file table.h
 * Prints rows of cells in aligned columns.
 *
 * Cells are added from left to right and may come from a target process: their text is escaped.
 * Memory failures are remembered and given by table_print().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"
#include "ctl/terminal/color.h"

struct table_column {
	const char *title;
	bool right;    /**< Cells are aligned to the right, as numbers are. */
	bool optional; /**< Left out when no row has a value: devices of one vendor lack some. */
};

struct table {
	const struct table_column *columns; /**< Borrowed. */
	size_t n_columns;
	struct out text;  /**< Escaped text of all cells, one after the other. */
	struct out cells; /**< An array of the private struct cell. */
};

/** Begin a table.  @param columns  Borrowed; the last one must not be optional. */
void table_init(struct table *t, const struct table_column *columns, size_t n_columns);
/** Free the cells; a zeroed object is accepted. */
void table_deinit(struct table *t);

/** Add the next cell of the row; NULL and "" become "-". */
void table_str(struct table *t, const char *s);
/** Add a cell as table_str() does, in a style. */
void table_style(struct table *t, enum color_style style, const char *s);
/** Add a cell with a decimal number. */
void table_u64(struct table *t, uint64_t v);
/** Add a cell with a hexadecimal number, as `0x7f00`. */
void table_hex(struct table *t, uint64_t v);
/** Add a cell with a size; see text_size(). */
void table_size(struct table *t, uint64_t bytes);
/** Add a cell as table_u64() where there is a value, else "-". */
void table_u64_if(struct table *t, bool has, uint64_t v);
/** Add a cell as table_hex() where there is a value, else "-". */
void table_hex_if(struct table *t, bool has, uint64_t v);
/** Add a cell as table_size() where there is a value, else "-". */
void table_size_if(struct table *t, bool has, uint64_t bytes);

/**
 * Append the table.
 * @param legend  Print the titles.
 * @return 0, -ENOMEM, -EFBIG.
 */
int table_print(const struct table *t, struct out *o, bool legend, bool color);

/** A local table that is freed where its scope ends; initialize it before any return. */
#define auto_table __attribute__((cleanup(table_deinit)))

#endif /* CTL_TERMINAL_TABLE_H */
