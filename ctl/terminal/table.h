/* SPDX-License-Identifier: MIT */
#ifndef CTL_TERMINAL_TABLE_H
#define CTL_TERMINAL_TABLE_H

/**
 * @file table.h
 * Rows of cells, printed in aligned columns.
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
	bool right;    /**< Numbers. */
	bool optional; /**< Left out where no row has anything in it: what devices of one vendor lack. */
};

struct table {
	const struct table_column *columns; /**< Borrowed. */
	size_t n_columns;
	struct out text;  /**< Escaped text of all cells, one after the other. */
	struct out cells; /**< struct cell each. */
};

void table_init(struct table *t, const struct table_column *columns, size_t n_columns);
/** Accepts a zeroed object. */
void table_deinit(struct table *t);

/** Next cell; NULL and "" become "-". */
void table_str(struct table *t, const char *s);
void table_style(struct table *t, enum color_style style, const char *s);
void table_u64(struct table *t, uint64_t v);
void table_hex(struct table *t, uint64_t v);
void table_size(struct table *t, uint64_t bytes);

/**
 * @param legend  Print the titles.
 * @return 0, -ENOMEM, -EFBIG.
 */
int table_print(const struct table *t, struct out *o, bool legend, bool color);

#define auto_table __attribute__((cleanup(table_deinit)))

#endif /* CTL_TERMINAL_TABLE_H */
