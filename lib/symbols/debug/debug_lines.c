/* SPDX-License-Identifier: MIT */
/* Source positions, with what is inlined there. */
#include "symbols/debug/debug_internal.h"

#include <errno.h>

#include "symbols/debug/die.h"
#include "symbols/debug/line_source.h"
#include "symbols/debug/line_table.h"
#include "symbols/location.h"

struct position {
	const char *file;
	int line, column;
};

/* Where the line table of a unit begins.  @return false if it has none. */
static bool find_table(struct debug_info *d, Dwarf_Die *cu, Dwarf_Word *ret)
{
	Dwarf_Attribute a;

	return d->lines && dwarf_attr(cu, DW_AT_stmt_list, &a) && dwarf_formudata(&a, ret) == 0;
}

/* May the line program of a unit be read, beside those that have been? */
static bool lines_fit(struct debug_info *d, Dwarf_Die *cu)
{
	Dwarf_Word at;

	if (!find_table(d, cu, &at))
		return false;
	if (d->n_rows + line_program_size(d->lines, d->lines_size, at) <= LINE_ROWS_MAX)
		return true;
	d->lines_cut = true;
	return false;
}

static bool load_lines(struct debug_info *d, struct debug_unit *u, Dwarf_Die *cu)
{
	Dwarf_Lines *lines;
	size_t n;

	if (!u->tried_lines && !d->budget.spent && lines_fit(d, cu) &&
	    dwarf_getsrclines(cu, &lines, &n) == 0 && n) {
		u->has_lines = true;
		d->n_rows += n;
	}
	u->tried_lines = true;
	return u->has_lines;
}

static struct position position_of(Dwarf_Die *cu, uint64_t address)
{
	Dwarf_Line *line = dwarf_getsrc_die(cu, address);
	struct position p = { 0 };

	if (!line)
		return p;
	p.file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &p.line) < 0)
		p.line = 0;
	if (dwarf_linecol(line, &p.column) < 0)
		p.column = 0;
	return p;
}

static struct position call_of(Dwarf_Die *cu, bool has_lines, Dwarf_Die *inlined)
{
	struct position p = { NULL, die_number(inlined, DW_AT_call_line),
			      die_number(inlined, DW_AT_call_column) };
	Dwarf_Files *files;
	size_t n;
	int file = die_number(inlined, DW_AT_call_file);

	if (has_lines && dwarf_getsrcfiles(cu, &files, &n) == 0 && (size_t)file < n)
		p.file = dwarf_filesrc(files, (size_t)file, NULL, NULL);
	return p;
}

static void add_frames(struct debug_info *d, Dwarf_Die *cu, const struct debug_area **chain, size_t n,
		       struct position p, bool has_lines, struct symbols_location *l)
{
	while (n--) {
		struct symbols_frame *f;
		Dwarf_Die die;

		if (chain[n]->tag == DW_TAG_lexical_block)
			continue;
		f = location_add(l);
		if (!f || !dwarf_offdie(d->dw, chain[n]->die, &die))
			return;
		location_set_function(l, f, die_function_name(&die, d->info, d->info_size));
		location_set_position(l, f, p.file, p.line, p.column);
		f->inlined = chain[n]->tag == DW_TAG_inlined_subroutine;
		if (f->inlined)
			p = call_of(cu, has_lines, &die);
	}
}

static void locate(struct debug_info *d, struct debug_unit *u, uint64_t address,
		   struct symbols_location *l)
{
	const struct debug_area *chain[DEPTH_MAX];
	struct position p = { 0 };
	Dwarf_Die cu;
	bool has_lines;
	size_t n;

	if (!dwarf_offdie(d->dw, u->die, &cu))
		return;
	debug_read_scopes(d, u);
	l->cut |= u->is_cut;
	has_lines = load_lines(d, u, &cu);
	if (has_lines)
		p = position_of(&cu, address);
	n = debug_find_chain(u, address, chain);
	if (n) {
		add_frames(d, &cu, chain, n, p, has_lines, l);
	} else if (p.file || p.line) {
		struct symbols_frame *f = location_add(l);

		location_set_position(l, f, p.file, p.line, p.column);
	}
}

bool debug_has_line(struct debug_info *d, struct debug_unit *u, uint64_t address)
{
	Dwarf_Die cu;

	return dwarf_offdie(d->dw, u->die, &cu) && load_lines(d, u, &cu) &&
	       position_of(&cu, address).line;
}

static struct line_table *tables_of(struct debug_info *d)
{
	if (!d->budget.spent)
		(void)debug_open_tables(d);
	return d->tables;
}

static void locate_in_cubin(struct debug_info *d, uint64_t address, struct symbols_location *l)
{
	bool found;
	struct debug_unit *u = debug_search(d, address, &found);

	if (!found)
		line_table_locate(tables_of(d), address, l);
	if (u && !l->n_frames)
		locate(d, u, address, l);
}

void debug_info_locate(struct debug_info *d, uint64_t address, struct symbols_location *l)
{
	struct debug_unit *u;
	bool found;

	debug_enter(d);
	if (d->is_cuda) {
		locate_in_cubin(d, address, l);
	} else {
		u = debug_find_unit(d, address);
		if (u)
			locate(d, u, address, l);
		if (!l->n_frames && (u = debug_search(d, address, &found)))
			locate(d, u, address, l);
	}
	if (d->budget.spent || (d->gave_up && !l->n_frames))
		l->cut = true;
	debug_leave(d);
}

static bool has_lines_of(struct debug_info *d, const struct debug_span_list *list, size_t first,
			 uint64_t low, uint64_t high)
{
	for (size_t i = first; i < list->n && debug_spend(d); i++) {
		const struct debug_span *s = &list->items[i];
		struct debug_unit *u = &d->units[s->unit];
		Dwarf_Die cu;

		if (s->piece.low < high && s->piece.high > low && dwarf_offdie(d->dw, u->die, &cu) &&
		    load_lines(d, u, &cu))
			return true;
	}
	return false;
}

bool debug_info_has_lines(struct debug_info *d, uint64_t low, uint64_t high)
{
	bool found;

	debug_enter(d);
	if (d->is_cuda) {
		found = line_table_has_lines(tables_of(d), low, high);
	} else {
		found = has_lines_of(d, &d->spans, 0, low, high) ||
			has_lines_of(d, &d->functions, 0, low, high);
		while (!found && debug_may_search(d)) {
			size_t known = d->functions.n;

			debug_search_unit(d);
			found = has_lines_of(d, &d->functions, known, low, high);
		}
	}
	debug_leave(d);
	return found;
}

/* @return the first row at or behind an address; n if there is none.  libdw has sorted them. */
static size_t first_row(Dwarf_Lines *lines, size_t n, uint64_t address)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		Dwarf_Addr at;

		if (dwarf_lineaddr(dwarf_onesrcline(lines, middle), &at) == 0 && at < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The end of a prologue, as its compiler marks it; else where the second line begins. */
static uint64_t body_of(struct debug_info *d, Dwarf_Lines *lines, size_t n, uint64_t low,
			uint64_t high)
{
	uint64_t second = low;

	for (size_t i = first_row(lines, n, low); i < n && debug_spend(d); i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		bool statement, end;
		Dwarf_Addr at;

		if (dwarf_lineaddr(line, &at) < 0 || at >= high)
			break;
		if (dwarf_lineprologueend(line, &end) == 0 && end)
			return at;
		if (second == low && at > low && dwarf_linebeginstatement(line, &statement) == 0 &&
		    statement)
			second = at;
	}
	return second;
}

uint64_t debug_info_body(struct debug_info *d, uint64_t low, uint64_t high)
{
	struct debug_unit *u;
	Dwarf_Lines *lines;
	Dwarf_Die cu;
	size_t n;

	debug_enter(d);
	u = debug_unit_of(d, low);
	if (u && dwarf_offdie(d->dw, u->die, &cu) && load_lines(d, u, &cu) &&
	    dwarf_getsrclines(&cu, &lines, &n) == 0)
		low = body_of(d, lines, n, low, high);
	debug_leave(d);
	return low;
}

int debug_info_source(struct debug_info *d, uint64_t address, const char *file, const char **ret, size_t *ret_size)
{
	struct line_sections s = { .line = { d->lines, d->lines_size } };
	struct debug_unit *u;
	Dwarf_Word at;
	Dwarf_Die cu;
	int r = -ENOENT;

	s.line_str.data = debug_info_section(d, "line_str", &s.line_str.size);
	s.str.data = debug_info_section(d, "str", &s.str.size);
	debug_enter(d);
	u = debug_unit_of(d, address);
	if (u && dwarf_offdie(d->dw, u->die, &cu) && find_table(d, &cu, &at))
		r = line_source_find(&s, at, file, ret, ret_size);
	debug_leave(d);
	return r;
}
