/* SPDX-License-Identifier: MIT */
/*
 * Cells are escaped as they are added, and only measured when the table is printed: the widths of
 * the columns are known then.
 */
#include "ctl/terminal/table.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "ctl/terminal/text.h"

/* One cell: where its text is in table.text, and its style. */
struct cell {
	size_t start, size;
	enum color_style style;
};

void table_init(struct table *t, const struct table_column *columns, size_t n_columns)
{
	*t = (struct table){ .columns = columns, .n_columns = n_columns };
	out_init(&t->text, 0);
	out_init(&t->cells, 0);
}

void table_deinit(struct table *t)
{
	out_deinit(&t->text);
	out_deinit(&t->cells);
}

/* Add the cell whose text was appended from start on. */
static void cell_end(struct table *t, size_t start, enum color_style style)
{
	struct cell c = { start, t->text.size - start, style };

	out_bytes(&t->cells, &c, sizeof(c));
}

void table_style(struct table *t, enum color_style style, const char *s)
{
	size_t start = t->text.size;

	if (str_is_empty(s))
		s = "-";
	text_put(&t->text, "", s, "");
	cell_end(t, start, style);
}

void table_str(struct table *t, const char *s)
{
	table_style(t, COLOR_PLAIN, s);
}

/* Add a cell with a number as a function writes it, or "-". */
static void table_number(struct table *t, bool has, void (*write)(struct out *, uint64_t),
			 uint64_t v)
{
	size_t start = t->text.size;

	if (has)
		write(&t->text, v);
	else
		out_char(&t->text, '-');
	cell_end(t, start, COLOR_PLAIN);
}

void table_u64_if(struct table *t, bool has, uint64_t v)
{
	table_number(t, has, out_u64, v);
}

void table_hex_if(struct table *t, bool has, uint64_t v)
{
	table_number(t, has, out_hex, v);
}

void table_size_if(struct table *t, bool has, uint64_t bytes)
{
	table_number(t, has, text_size, bytes);
}

void table_u64(struct table *t, uint64_t v)
{
	table_u64_if(t, true, v);
}

void table_hex(struct table *t, uint64_t v)
{
	table_hex_if(t, true, v);
}

void table_size(struct table *t, uint64_t bytes)
{
	table_size_if(t, true, bytes);
}

#define HIDDEN SIZE_MAX /* Width of a column that is left out. */

/* Cells are copied out: the buffer has no alignment to speak of. */
static struct cell get_cell(const struct table *t, size_t i)
{
	struct cell c;

	memcpy(&c, t->cells.data + i * sizeof(c), sizeof(c));
	return c;
}

static const char *cell_text(const struct table *t, const struct cell *c)
{
	return t->text.data + c->start;
}

/* The widest cell of a column, or its title where that is printed and wider. */
static size_t column_width(const struct table *t, size_t column, size_t n_cells, bool legend)
{
	size_t width = legend ? strlen(t->columns[column].title) : 0;

	for (size_t i = column; i < n_cells; i += t->n_columns) {
		struct cell c = get_cell(t, i);
		size_t w = text_columns(cell_text(t, &c), c.size);

		width = w > width ? w : width;
	}
	return width;
}

/* Whether a column is printed: an optional one is not when all of its cells are "-". */
static bool is_shown(const struct table *t, size_t column, size_t n_cells)
{
	for (size_t i = column; i < n_cells; i += t->n_columns) {
		struct cell c = get_cell(t, i);

		if (c.size != 1 || *cell_text(t, &c) != '-')
			return true;
	}
	return !t->columns[column].optional || !n_cells;
}

static void spaces(struct out *o, size_t n)
{
	while (n--)
		out_char(o, ' ');
}

/*
 * Append one cell.  The last column, when aligned to the left, gets no padding: no line ends with
 * blanks.
 */
static void print_cell(const struct table *t, struct out *o, size_t column, size_t width,
		       const char *s, size_t size, enum color_style style, bool color)
{
	size_t pad = width - text_columns(s, size);
	bool right = t->columns[column].right, last = column + 1 == t->n_columns;

	/* The last column is never an optional one. */
	if (width == HIDDEN)
		return;
	if (right)
		spaces(o, pad);
	out_str(o, color_begin(style, color));
	out_bytes(o, s, size);
	out_str(o, color_end(style, color));
	if (!right && !last)
		spaces(o, pad);
	out_str(o, last ? "\n" : "  ");
}

int table_print(const struct table *t, struct out *o, bool legend, bool color)
{
	size_t n_cells = t->cells.size / sizeof(struct cell);
	auto_free size_t *widths = calloc(t->n_columns, sizeof(*widths));

	if (!widths)
		return -ENOMEM;
	if (t->text.error || t->cells.error)
		return t->text.error ? t->text.error : t->cells.error;
	for (size_t i = 0; i < t->n_columns; i++)
		widths[i] = is_shown(t, i, n_cells) ? column_width(t, i, n_cells, legend) : HIDDEN;
	for (size_t i = 0; legend && i < t->n_columns; i++)
		print_cell(t, o, i, widths[i], t->columns[i].title, strlen(t->columns[i].title),
			   COLOR_HEADER, color);
	for (size_t i = 0; i < n_cells; i++) {
		struct cell c = get_cell(t, i);

		print_cell(t, o, i % t->n_columns, widths[i % t->n_columns], cell_text(t, &c),
			   c.size, c.style, color);
	}
	return out_error(o);
}
