/* SPDX-License-Identifier: MIT */
/*
 * Cells are escaped as they are added, and only measured when the table is printed.  The time is
 * linear in the number of cells.
 */
#include "ctl/terminal/table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
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
	out_init(&t->notes, 0);
}

void table_deinit(struct table *t)
{
	out_deinit(&t->text);
	out_deinit(&t->cells);
	out_deinit(&t->notes);
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

void table_note(struct table *t, const char *fmt, ...)
{
	va_list ap;

	if (t->notes.size)
		out_str(&t->notes, "; ");
	va_start(ap, fmt);
	out_vfmt(&t->notes, fmt, ap);
	va_end(ap);
}

/* ------------------------------------------------------------------ columns ------------------ */

#define GAP    2 /* Blanks between two columns. */
#define HIDDEN SIZE_MAX /* Width of a column that is left out. */
/* To what columns are cut, whatever their minimum is, before some are left out; and at last. */
#define NARROW	  8
#define NARROWEST 4

/* How one table is laid out. */
struct layout {
	const struct table *t;
	const struct table_form *form;
	size_t n_cells;
	size_t *widths;	 /* Of each column, or HIDDEN. */
	size_t *natural; /* Widths that need no cut. */
};

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
static size_t column_width(const struct layout *l, size_t column)
{
	size_t width = l->form->legend ? strlen(l->t->columns[column].title) : 0;

	for (size_t i = column; i < l->n_cells; i += l->t->n_columns) {
		struct cell c = get_cell(l->t, i);
		size_t w = text_columns(cell_text(l->t, &c), c.size);

		width = w > width ? w : width;
	}
	return width;
}

static bool is_nothing(const struct table *t, const struct cell *c)
{
	return c->size == 1 && *cell_text(t, c) == '-';
}

/* Whether all cells of a column have the same text; those of an empty table have none. */
static bool is_same(const struct layout *l, size_t column)
{
	struct cell first, c;

	if (l->n_cells <= column)
		return false;
	first = get_cell(l->t, column);
	for (size_t i = column; i < l->n_cells; i += l->t->n_columns) {
		c = get_cell(l->t, i);
		if (c.size != first.size || memcmp(cell_text(l->t, &c), cell_text(l->t, &first), c.size))
			return false;
	}
	return true;
}

/* Whether a column says something.  Scripts count columns, and have no titles to find them by. */
static bool is_shown(const struct layout *l, size_t column)
{
	const struct table_column *k = &l->t->columns[column];
	struct cell first;

	if (!l->form->legend || (!k->optional && !k->same) || !is_same(l, column))
		return true;
	first = get_cell(l->t, column);
	return !k->same && !is_nothing(l->t, &first);
}

/* Columns by which the table is too wide. */
static size_t excess(const struct layout *l)
{
	size_t sum = 0;

	for (size_t i = 0; i < l->t->n_columns; i++)
		if (l->widths[i] != HIDDEN)
			sum += l->widths[i] + (sum ? GAP : 0);
	return sum > l->form->width ? sum - l->form->width : 0;
}

/* Cut a column, though not below its title, or leave it out. */
static void shrink(struct layout *l, size_t column, size_t by, size_t below)
{
	const struct table_column *k = &l->t->columns[column];
	size_t least = k->min < below ? k->min : below, *w = &l->widths[column];
	size_t min = strlen(k->title) > least ? strlen(k->title) : least;

	if (*w == HIDDEN)
		return;
	if (!k->min)
		*w = HIDDEN;
	else if (*w > min)
		*w = *w - min > by ? *w - by : min;
}

/* The highest importance of the columns. */
static unsigned most_important(const struct table *t)
{
	unsigned most = 0;

	for (size_t i = 0; i < t->n_columns; i++)
		most = t->columns[i].importance > most ? t->columns[i].importance : most;
	return most;
}

/* Give the room that a column has left behind to what was cut before it. */
static void regain(struct layout *l, size_t column)
{
	size_t used = l->widths[column], over;

	if (used == HIDDEN || used == l->natural[column])
		return;
	l->widths[column] = l->natural[column];
	over = excess(l);
	l->widths[column] = over > l->natural[column] - used ? used : l->natural[column] - over;
}

/*
 * Cut columns, those that matter least first; among those of the same importance the last one.
 * @param below  Columns that are to have more than that are cut to it.
 */
static void cut_to(struct layout *l, unsigned most, size_t below)
{
	for (unsigned k = 1; k <= most; k++)
		for (size_t i = l->t->n_columns; i-- > 0;)
			if (l->t->columns[i].importance == k && excess(l))
				shrink(l, i, excess(l), below);
}

/* Leave columns out, in the same order, but none of those that matter most. */
static void leave_out(struct layout *l, unsigned most)
{
	for (unsigned k = 1; k < most; k++)
		for (size_t i = l->t->n_columns; i-- > 0;)
			if (l->t->columns[i].importance == k && excess(l))
				l->widths[i] = HIDDEN;
}

/* Make the table as narrow as the terminal. */
static void fit(struct layout *l)
{
	unsigned most = most_important(l->t);

	cut_to(l, most, SIZE_MAX);
	cut_to(l, most, NARROW);
	leave_out(l, most);
	cut_to(l, most, NARROWEST);
	for (unsigned k = most; k > 0; k--)
		for (size_t i = 0; i < l->t->n_columns; i++)
			if (l->t->columns[i].importance == k)
				regain(l, i);
}

/* ------------------------------------------------------------------ rows --------------------- */

/* Lines of one row; a longer cell is cut in the last one. */
#define LINES_MAX 8
/* Blanks in front of the lines below a row's first. */
#define INDENT 2

/* What of a cell is still to be printed. */
struct rest {
	const char *text;
	size_t size;
	size_t indent; /* Blanks in front of the lines below: those of the first one, and INDENT. */
};

/* Bytes of the first so many characters. */
static size_t bytes_of(const char *s, size_t size, size_t characters)
{
	size_t i = 0;

	while (i < size && (((unsigned char)s[i] & 0xc0) == 0x80 || characters--))
		i++;
	return i;
}

/* Where a line may end. */
struct breaks {
	size_t arrow;	/* In front of the last ` <- `. */
	size_t blank;	/* At the last blank outside of <...>. */
	size_t anywhere; /* At the last blank. */
};

/* Look for the last places in the first `end` bytes; the character behind them may be the blank. */
static struct breaks find_breaks(const char *s, size_t size, size_t end)
{
	struct breaks b = { 0 };
	size_t i = 0, depth = 0;

	while (i < end && s[i] == ' ')
		i++;
	for (; i <= end; i++) {
		/* What an arrow points away from stays with it. */
		bool blank = s[i] == ' ' && (i < 2 || memcmp(s + i - 2, "<-", 2) != 0);

		if (blank && size - i > 3 && !memcmp(s + i, " <- ", 4))
			b.arrow = i;
		if (blank)
			b.anywhere = i;
		if (blank && !depth)
			b.blank = i;
		if (s[i] == '<' && size - i > 1 && s[i + 1] != '-')
			depth++;
		if (s[i] == '>' && depth)
			depth--;
	}
	return b;
}

/*
 * Bytes that go into a line of so many columns, when the others follow below: up to the last
 * ` <- `, or else blank, or else as many as there is room for.
 */
static size_t break_at(const char *s, size_t size, size_t width)
{
	size_t end = bytes_of(s, size, width);
	struct breaks b;

	if (end == size)
		return size;
	b = find_breaks(s, size, end);
	return b.arrow ? b.arrow : b.blank ? b.blank : b.anywhere ? b.anywhere : end;
}

static void spaces(struct out *o, size_t n)
{
	while (n--)
		out_char(o, ' ');
}

/* Append a text, cut to a width. */
static void put_cut(const struct layout *l, struct out *o, const char *s, size_t size, size_t width)
{
	const char *mark = l->form->ascii ? "..." : "\xe2\x80\xa6";
	size_t mark_width = text_columns(mark, strlen(mark)), keep = width > mark_width ? width - mark_width : 0;

	if (text_columns(s, size) <= width) {
		out_bytes(o, s, size);
		return;
	}
	out_bytes(o, s, bytes_of(s, size, keep));
	out_bytes(o, mark, bytes_of(mark, strlen(mark), width));
}

/*
 * Append the part of a cell that belongs into this line, and take it from the rest.
 * @return columns it took.
 */
static size_t put_part(const struct layout *l, struct out *o, size_t column, struct rest *rest, bool last)
{
	size_t width = l->widths[column], n = rest->size;

	if (l->t->columns[column].wrap && !last && l->form->width)
		n = break_at(rest->text, rest->size, width);
	put_cut(l, o, rest->text, n, width);
	width = text_columns(rest->text, n) < width ? text_columns(rest->text, n) : width;
	while (n < rest->size && rest->text[n] == ' ')
		n++;
	rest->text += n;
	rest->size -= n;
	return width;
}

/* Append one line of a row.  No line ends with blanks. */
static void put_line(const struct layout *l, struct out *o, struct rest *rests,
		     const enum color_style *styles, unsigned line)
{
	size_t pending = 0;

	for (size_t i = 0; i < l->t->n_columns; i++) {
		size_t width = l->widths[i], used = 0, all;
		size_t indent = line ? rests[i].indent : 0;

		if (width == HIDDEN)
			continue;
		indent = indent < width ? indent : 0;
		all = text_columns(rests[i].text, rests[i].size);
		if (rests[i].size) {
			spaces(o, pending + indent);
			pending = 0;
			if (l->t->columns[i].right && all < width)
				spaces(o, width - all);
			out_str(o, color_begin(styles[i], l->form->color));
			l->widths[i] -= indent;
			used = put_part(l, o, i, &rests[i], line + 1 == LINES_MAX);
			l->widths[i] += indent;
			out_str(o, color_end(styles[i], l->form->color));
			used = l->t->columns[i].right ? width : used + indent;
		}
		pending += width - used + GAP;
	}
	out_char(o, '\n');
}

/* Append one row, in as many lines as its cells need. */
static void put_row(const struct layout *l, struct out *o, struct rest *rests,
		    const enum color_style *styles)
{
	bool more = true;

	for (unsigned line = 0; more; line++) {
		put_line(l, o, rests, styles, line);
		more = false;
		for (size_t i = 0; i < l->t->n_columns; i++)
			more = more || (l->widths[i] != HIDDEN && rests[i].size);
	}
}

/* Append the notes, and what the columns that were left out have in common. */
static void put_notes(const struct layout *l, struct out *o)
{
	auto_out struct out line = { 0 };

	for (size_t i = 0; i < l->t->n_columns; i++) {
		const char *same = l->t->columns[i].same;
		struct cell c;

		if (!same || is_shown(l, i))
			continue;
		c = get_cell(l->t, i);
		if (is_nothing(l->t, &c))
			continue;
		out_fmt(&line, "%s%s ", line.size ? "; " : "", same);
		out_bytes(&line, cell_text(l->t, &c), c.size);
	}
	if (l->t->notes.size) {
		out_str(&line, line.size ? "; " : "");
		out_bytes(&line, l->t->notes.data, l->t->notes.size);
	}
	if (line.error && !o->error)
		o->error = line.error;
	if (line.size)
		text_wrap(o, line.data, line.size, l->form->width, INDENT);
}

static struct rest make_rest(const char *text, size_t size)
{
	struct rest r = { text, size, INDENT };

	for (size_t i = 0; i < size && text[i] == ' '; i++)
		r.indent++;
	return r;
}

static void put_rows(const struct layout *l, struct out *o, struct rest *rests, enum color_style *styles)
{
	size_t n = l->t->n_columns;

	for (size_t i = 0; l->form->legend && i < n; i++) {
		rests[i] = make_rest(l->t->columns[i].title, strlen(l->t->columns[i].title));
		styles[i] = COLOR_HEADER;
	}
	if (l->form->legend)
		put_row(l, o, rests, styles);
	for (size_t row = 0; row + n <= l->n_cells; row += n) {
		for (size_t i = 0; i < n; i++) {
			struct cell c = get_cell(l->t, row + i);

			rests[i] = make_rest(cell_text(l->t, &c), c.size);
			styles[i] = c.style;
		}
		put_row(l, o, rests, styles);
	}
}

int table_print(const struct table *t, struct out *o, const struct table_form *form)
{
	size_t n = t->n_columns;
	auto_free size_t *widths = calloc(2 * n, sizeof(*widths));
	auto_free struct rest *rests = calloc(n, sizeof(*rests));
	auto_free enum color_style *styles = calloc(n, sizeof(*styles));
	struct layout l = { t, form, t->cells.size / sizeof(struct cell), widths, widths + n };

	if (!widths || !rests || !styles)
		return -ENOMEM;
	if (t->text.error || t->cells.error || t->notes.error)
		return t->text.error ? t->text.error : t->cells.error ? t->cells.error : t->notes.error;
	for (size_t i = 0; i < n; i++)
		widths[i] = l.natural[i] = is_shown(&l, i) ? column_width(&l, i) : HIDDEN;
	if (form->width && form->legend)
		fit(&l);
	put_rows(&l, o, rests, styles);
	if (form->legend)
		put_notes(&l, o);
	return out_error(o);
}
