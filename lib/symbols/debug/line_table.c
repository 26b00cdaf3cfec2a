/* SPDX-License-Identifier: MIT */
#include "symbols/debug/line_table.h"

#include <errno.h>
#include <stdlib.h>

#include "base/reader.h"
#include "base/vec.h"
#include "symbols/location.h"

/* Most line tables of a file that are read. */
#define TABLES_MAX 4096u

struct table {
	Dwarf_Lines *lines;
	size_t n;
};

struct line_table {
	Dwarf *dw;
	struct table *tables;
	size_t n_tables, capacity, n_rows;
	bool cut;
};

void line_table_destroy(struct line_table *t)
{
	if (!t)
		return;
	free(t->tables);
	free(t);
}

static int add_table(struct line_table *t, Dwarf_Lines *lines, size_t n)
{
	if (vec_reserve(&t->tables, t->n_tables, 1, &t->capacity, sizeof(*t->tables)) < 0)
		return -ENOMEM;
	t->tables[t->n_tables++] = (struct table){ lines, n };
	t->n_rows += n;
	return 0;
}

size_t line_program_size(const uint8_t *section, size_t size, uint64_t at)
{
	struct reader r;
	uint64_t length;

	if (at >= size)
		return 0;
	reader_init(&r, section + at, size - at);
	length = reader_u32(&r);
	if (length == UINT32_MAX)
		length = reader_u64(&r);
	return length < size - at ? (size_t)length : (size_t)(size - at);
}

static int read_tables(struct line_table *t, const uint8_t *section, size_t size, size_t rows_max)
{
	Dwarf_Off at = 0, next = 0;
	Dwarf_Lines *lines = NULL;
	Dwarf_CU *cu = NULL;
	size_t n = 0;
	int r = 0;

	while (r == 0) {
		if (t->n_tables == TABLES_MAX || t->n_rows + line_program_size(section, size, at) > rows_max) {
			t->cut = true;
			return 0;
		}
		if (dwarf_next_lines(t->dw, at, &next, &cu, NULL, NULL, &lines, &n) || next <= at)
			break;
		if (lines && n)
			r = add_table(t, lines, n);
		at = next;
	}
	return r;
}

int line_table_create(Dwarf *dw, const uint8_t *section, size_t size, size_t rows_max, struct line_table **ret)
{
	struct line_table *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->dw = dw;
	r = read_tables(t, section, size, rows_max);
	if (r == 0 && !t->n_tables && !t->cut)
		r = -EBADMSG;
	if (r < 0) {
		line_table_destroy(t);
		return r;
	}
	*ret = t;
	return 0;
}

size_t line_table_rows(const struct line_table *t)
{
	return t ? t->n_rows : 0;
}

bool line_table_is_cut(const struct line_table *t)
{
	return t && t->cut;
}

static uint64_t address_of(const struct table *t, size_t row)
{
	Dwarf_Addr address = UINT64_MAX;

	(void)dwarf_lineaddr(dwarf_onesrcline(t->lines, row), &address);
	return address;
}

static bool is_end(const struct table *t, size_t row)
{
	bool end = true;

	return dwarf_lineendsequence(dwarf_onesrcline(t->lines, row), &end) < 0 || end;
}

#define NO_ROW SIZE_MAX

/* @return the number of rows at or below the address; libdw has sorted them. */
static size_t rows_up_to(const struct table *t, uint64_t address)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (address_of(t, middle) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* @return the row that an address belongs to; NO_ROW if there is none. */
static size_t find_row(const struct table *t, uint64_t address)
{
	size_t n = rows_up_to(t, address);

	return n && !is_end(t, n - 1) ? n - 1 : NO_ROW;
}

/*
 * Find the row of the call that was inlined.  Its number counts from the start of the sequence, as
 * nvcc 12 and 13 write it; libdw 0.188 takes it as one of the whole table.
 */
static size_t caller_of(const struct table *t, size_t row)
{
	const Dwarf_Line *taken = dwarf_linecontext(t->lines, dwarf_onesrcline(t->lines, row));
	size_t number = 0, start = row;

	if (!taken)
		return NO_ROW;
	while (number < row && dwarf_onesrcline(t->lines, number) != taken)
		number++;
	while (start && !is_end(t, start - 1))
		start--;
	/* Only rows further up count, so that no chain leads into itself. */
	return number < row - start ? start + number : NO_ROW;
}

static void add_frame(const struct line_table *t, Dwarf_Line *row, struct symbols_location *l)
{
	const char *inlined = dwarf_linefunctionname(t->dw, row);
	struct symbols_frame *f = location_add(l);
	int line = 0, column = 0;

	if (!f)
		return;
	if (dwarf_lineno(row, &line) < 0)
		line = 0;
	if (dwarf_linecol(row, &column) < 0)
		column = 0;
	if (inlined && *inlined) {
		location_set_function(l, f, inlined);
		f->inlined = true;
	}
	location_set_position(l, f, dwarf_linesrc(row, NULL, NULL), line, column);
}

void line_table_locate(const struct line_table *t, uint64_t address, struct symbols_location *l)
{
	size_t row = NO_ROW, i = 0;

	while (t && row == NO_ROW && i < t->n_tables)
		row = find_row(&t->tables[i++], address);
	for (size_t depth = 0; row != NO_ROW && depth < SYMBOLS_FRAMES_MAX; depth++) {
		add_frame(t, dwarf_onesrcline(t->tables[i - 1].lines, row), l);
		row = caller_of(&t->tables[i - 1], row);
	}
}

bool line_table_has_lines(const struct line_table *t, uint64_t low, uint64_t high)
{
	for (size_t i = 0; t && low < high && i < t->n_tables; i++) {
		const struct table *table = &t->tables[i];
		size_t row = rows_up_to(table, high - 1);

		while (row-- && address_of(table, row) >= low)
			if (!is_end(table, row))
				return true;
	}
	return false;
}
