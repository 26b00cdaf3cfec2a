/* SPDX-License-Identifier: MIT */
#ifndef CTL_TERMINAL_TABLE_H
#define CTL_TERMINAL_TABLE_H

/**
 * @file table.h
 * Prints rows of cells in aligned columns that fit the terminal.
 *
 * Cells are added from left to right and may come from a target process: their text is escaped.
 * Memory failures are remembered and given by table_print().
 *
 * A table without titles is for scripts: every column is there, nothing is cut, and a row is a line.
 * With titles a column that says nothing is left out, and where the terminal is too narrow those of
 * the lowest importance are cut first.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"
#include "ctl/terminal/color.h"

/** One column; members that are not given leave it as wide as its widest cell. */
struct table_column {
	const char *title;
	bool right;    /**< Cells are aligned to the right, as numbers are. */
	bool optional; /**< Left out when no row has a value: devices of one vendor lack some. */
	/** 0: it is never cut.  Otherwise columns of importance 1 are cut first, then those of 2, ... */
	unsigned char importance;
	/**
	 * Columns it may be cut to; with 0, a column that has an importance is left out instead.  Where the terminal
	 * has no room for that, columns get even less, and then those of less than the highest importance are left out.
	 */
	unsigned char min;
	bool wrap; /**< Goes on in lines below its row, broken before ` <- ` or a blank, before it is cut. */
	/**
	 * When all rows have the same value, the column is left out, and the value told below the
	 * table after these words: `all on GPU`.
	 */
	const char *same;
};

/** How a table is printed. */
struct table_form {
	unsigned width; /**< Columns of the terminal; 0: lines may have any length. */
	bool legend;	/**< Print titles, and notes below the table. */
	bool color;
	bool ascii; /**< The terminal has no ellipsis, only dots. */
};

struct table {
	const struct table_column *columns; /**< Borrowed. */
	size_t n_columns;
	struct out text;  /**< Escaped text of all cells, one after the other. */
	struct out cells; /**< An array of the private struct cell. */
	struct out notes; /**< See table_note(). */
};

/** Begin a table.  @param columns  Borrowed. */
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

/** Add a sentence, without its full stop, to the line below the table. */
void table_note(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** Append the table.  @return 0, -ENOMEM, -EFBIG. */
int table_print(const struct table *t, struct out *o, const struct table_form *form);

/** A local table that is freed where its scope ends; initialize it before any return. */
#define auto_table __attribute__((cleanup(table_deinit)))

#endif /* CTL_TERMINAL_TABLE_H */
