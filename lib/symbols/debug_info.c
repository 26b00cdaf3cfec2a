/* SPDX-License-Identifier: MIT */
/*
 * Source positions and inline chains, with libdw.  The bytes are hostile, so each loop over them is
 * charged to a budget of steps and processor time, and nothing outside the image is ever opened.
 */
#include "symbols/debug_info.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/vec.h"
#include "symbols/die.h"
#include "symbols/die_type.h"
#include "symbols/line_table.h"
#include "symbols/location.h"
#include "symbols/relocate.h"

/* Limits for one image.  A large library with full debug information stays below half of each. */
#define STEPS_MAX	 8000000u /* DIEs and address ranges that are looked at. */
#define CPU_NS_MAX	 UINT64_C(5000000000)
#define SPANS_MAX	 (1u << 20)
#define SCOPES_MAX	 (1u << 22)
/* One byte of a line program can make a row, for which libdw 0.188 needs 130 bytes in between. */
#define LINE_ROWS_MAX	 (1u << 21)
#define LINE_BYTES_MAX	 ((uint64_t)4 << 20)
#define EXPANDED_MAX	 ((uint64_t)128 << 20) /* Bytes of all compressed sections together. */
#define DEPTH_MAX	 256
#define TYPE_TEXT_MAX	 256 /* Bytes of the text of a type; a longer one ends in "...". */

/* A piece of code that a compile unit covers, or one of its functions. */
struct span {
	uint64_t low, high;
	size_t unit;
};

struct span_list {
	struct span *items;
	size_t n, capacity;
};

/*
 * A piece of code that a function, an inlined function, or a block covers.  Parents come before
 * children.
 */
struct scope {
	uint64_t low, high;
	Dwarf_Off die, parent; /**< The entry itself, and the enclosing scope or 0. */
	int tag;
};

struct unit {
	Dwarf_Off die, end;
	bool tried_scopes, tried_lines, has_lines;
	struct scope *scopes;
	size_t n_scopes, capacity;
};

struct debug_info {
	Elf *elf;
	Dwarf *dw;
	bool is_cuda;
	/** All line tables of a cubin, most of which have no compile unit. */
	struct line_table *tables;
	bool tried_tables;
	const uint8_t *info; /**< Content of .debug_info, expanded; libdw points into it. */
	size_t info_size;
	bool lines_fit;
	struct unit *units;
	size_t n_units, unit_capacity;
	struct span_list spans;	    /**< Pieces of code as the units tell them. */
	struct span_list functions; /**< Functions of the first n_searched units. */
	size_t n_searched;
	size_t n_scopes, n_rows; /**< Counts for all units together. */
	uint32_t steps;
	uint64_t cpu_ns, entered_ns;
	bool spent; /**< A limit was hit: nothing more is read. */
	bool gave_up; /**< Not all units were searched. */
};

static uint64_t cpu_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/*
 * Charge one step.  Everything that loops over the target's data pays here.
 * @return false when the budget is spent.
 */
static bool spend(struct debug_info *d)
{
	if (++d->steps >= STEPS_MAX)
		d->spent = true;
	if (d->steps % 1024 == 0 && d->cpu_ns + (cpu_now_ns() - d->entered_ns) > CPU_NS_MAX)
		d->spent = true;
	return !d->spent;
}

static void enter(struct debug_info *d)
{
	d->entered_ns = cpu_now_ns();
}

static void leave(struct debug_info *d)
{
	d->cpu_ns += cpu_now_ns() - d->entered_ns;
	if (d->cpu_ns > CPU_NS_MAX)
		d->spent = true;
}

/* Is this .debug_KIND, or its compressed form .zdebug_KIND? */
static bool is_section(const char *name, const char *kind)
{
	if (!strncmp(name, ".debug_", 7))
		return !strcmp(name + 7, kind);
	return !strncmp(name, ".zdebug_", 8) && !strcmp(name + 8, kind);
}

bool debug_info_is_present(const struct elf_view *v)
{
	bool found = false;

	for (size_t i = 1; i < v->n_sections; i++) {
		Elf64_Shdr s = elf_view_section(v, i);
		const char *name = elf_view_section_name(v, &s);

		/* libdw would open the file that this section names. */
		if (!strcmp(name, ".gnu_debugaltlink"))
			return false;
		if (is_section(name, "info"))
			found = true;
		/* The lines that -lineinfo leaves in a cubin have no .debug_info. */
		if (v->header.e_machine == EM_CUDA && is_section(name, "line"))
			found = true;
	}
	return found;
}

/* @return the bytes of a section once it is expanded; UINT64_MAX when that cannot be told. */
static uint64_t expanded_size(const struct elf_view *v, const Elf64_Shdr *s)
{
	const uint8_t *data = code_elf_section_data(v, s);
	uint64_t size = 0;
	Elf64_Chdr c;

	if (!data)
		return 0;
	if (s->sh_flags & SHF_COMPRESSED) {
		if (s->sh_size < sizeof(c))
			return UINT64_MAX;
		memcpy(&c, data, sizeof(c));
		return c.ch_size;
	}
	if (strncmp(elf_view_section_name(v, s), ".zdebug_", 8))
		return s->sh_size;
	if (s->sh_size < 12)
		return UINT64_MAX;
	for (size_t i = 4; i < 12; i++)
		size = size << 8 | data[i];
	return size;
}

static bool is_expansion_limited(const struct elf_view *v, bool *ret_lines_fit)
{
	uint64_t total = 0;

	*ret_lines_fit = true;
	for (size_t i = 1; i < v->n_sections; i++) {
		Elf64_Shdr s = elf_view_section(v, i);
		uint64_t size = expanded_size(v, &s);

		if (size > EXPANDED_MAX)
			return false;
		if (is_section(elf_view_section_name(v, &s), "line") && size > LINE_BYTES_MAX)
			*ret_lines_fit = false;
		total += size;
	}
	return total <= EXPANDED_MAX;
}

/* Find the content of a section, which libdw has expanded. */
static int find_section(struct debug_info *d, const char *kind, const uint8_t **ret,
			size_t *ret_size)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(d->elf, &names) < 0)
		return -EBADMSG;
	while ((scn = elf_nextscn(d->elf, scn))) {
		const Elf64_Shdr *s = elf64_getshdr(scn);
		const char *name = s ? elf_strptr(d->elf, names, s->sh_name) : NULL;
		const Elf_Data *data;

		if (!name || !is_section(name, kind))
			continue;
		data = elf_rawdata(scn, NULL);
		if (!data || !data->d_buf)
			return -EBADMSG;
		*ret = data->d_buf;
		*ret_size = data->d_size;
		return 0;
	}
	return -ENOENT;
}

/* A walk over the address ranges that a DIE covers. */
struct range_walk {
	Dwarf_Die *die;
	ptrdiff_t at;
	Dwarf_Addr base, low, high;
};

static bool next_range(struct debug_info *d, struct range_walk *w)
{
	do {
		if (!spend(d))
			return false;
		w->at = dwarf_ranges(w->die, w->at, &w->base, &w->low, &w->high);
		if (w->at <= 0)
			return false;
	} while (w->low >= w->high);
	return true;
}

static int add_span(struct span_list *l, struct span s)
{
	if (l->n == SPANS_MAX)
		return 0;
	if (vec_reserve(&l->items, l->n, 1, &l->capacity, sizeof(*l->items)) < 0)
		return -ENOMEM;
	l->items[l->n++] = s;
	return 0;
}

static int add_spans(struct debug_info *d, Dwarf_Die *die, size_t unit)
{
	struct range_walk w = { .die = die };
	int r = 0;

	while (r == 0 && next_range(d, &w))
		r = add_span(&d->spans, (struct span){ w.low, w.high, unit });
	return r;
}

/*
 * Is this a compile unit that is complete?  A skeleton unit would make libdw look for its other
 * half in files that the target names.
 */
static bool is_whole_unit(Dwarf_Die *die)
{
	uint8_t type;

	return dwarf_tag(die) == DW_TAG_compile_unit &&
	       dwarf_cu_info(die->cu, NULL, &type, NULL, NULL, NULL, NULL, NULL) == 0 &&
	       type == DW_UT_compile;
}

static int add_unit(struct debug_info *d, Dwarf_Off first, Dwarf_Off end)
{
	Dwarf_Die die;

	if (end > d->info_size || !dwarf_offdie(d->dw, first, &die) || !is_whole_unit(&die))
		return 0;
	if ((const uint8_t *)die.addr != d->info + first)
		return -EBADMSG;
	if (vec_reserve(&d->units, d->n_units, 1, &d->unit_capacity, sizeof(*d->units)) < 0)
		return -ENOMEM;
	d->units[d->n_units] = (struct unit){ .die = first, .end = end };
	d->n_units++;
	/*
	 * Ranges of units in a cubin are useless: those of nvcc begin at 0 and have no end, those
	 * of clang cover any function or all.
	 */
	return d->is_cuda ? 0 : add_spans(d, &die, d->n_units - 1);
}

static int read_units(struct debug_info *d)
{
	Dwarf_Off at = 0, next;
	size_t header;
	int r = 0;

	/* A header that leads backwards ends the loop, which would not end otherwise. */
	while (r == 0 && spend(d) &&
	       dwarf_next_unit(d->dw, at, &next, &header, NULL, NULL, NULL, NULL, NULL, NULL) ==
		       0 &&
	       next > at) {
		r = add_unit(d, at + header, next);
		at = next;
	}
	return r;
}

static int open_tables(struct debug_info *d)
{
	if (d->tried_tables)
		return 0;
	d->tried_tables = true;
	return line_table_create(d->dw, LINE_ROWS_MAX, &d->tables);
}

static int open_all(struct debug_info *d, uint8_t *bytes, size_t size)
{
	int r;

	elf_version(EV_CURRENT);
	d->elf = elf_memory((char *)bytes, size);
	if (!d->elf || elf_kind(d->elf) != ELF_K_ELF)
		return -EBADMSG;
	d->dw = dwarf_begin_elf(d->elf, DWARF_C_READ, NULL);
	if (!d->dw)
		return -EBADMSG;
	r = find_section(d, "info", &d->info, &d->info_size);
	if (r == -ENOENT) /* A cubin that was compiled with -lineinfo has lines only. */
		return d->lines_fit ? open_tables(d) : -EFBIG;
	return r < 0 ? r : read_units(d);
}

int debug_info_create(const struct elf_view *v, uint8_t *bytes, struct debug_info **ret)
{
	struct debug_info *d;
	bool lines_fit;
	int r;

	if (!is_expansion_limited(v, &lines_fit))
		return -EFBIG;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->lines_fit = lines_fit;
	d->is_cuda = v->header.e_machine == EM_CUDA;
	if (d->is_cuda)
		relocate_debug_sections(v, bytes);
	enter(d);
	r = open_all(d, bytes, v->size);
	leave(d);
	if (r < 0) {
		debug_info_destroy(d);
		return r;
	}
	*ret = d;
	return 0;
}

void debug_info_destroy(struct debug_info *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n_units; i++)
		free(d->units[i].scopes);
	line_table_destroy(d->tables);
	free(d->units);
	free(d->spans.items);
	free(d->functions.items);
	dwarf_end(d->dw);
	elf_end(d->elf);
	free(d);
}

/* Bytes that libdw keeps per row of a line table, by its structures in 0.188. */
#define ROW_BYTES 40

size_t debug_info_bytes(const struct debug_info *d)
{
	if (!d)
		return 0;
	return sizeof(*d) + d->n_units * sizeof(struct unit) + d->n_scopes * sizeof(struct scope) +
	       (d->spans.n + d->functions.n) * sizeof(struct span) +
	       (d->n_rows + line_table_rows(d->tables)) * ROW_BYTES;
}

int debug_info_state(const struct debug_info *d)
{
	return d && (d->spent || d->gave_up || !d->lines_fit || line_table_is_cut(d->tables)) ?
		       -EFBIG :
		       0;
}

static bool is_scope_tag(int tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ||
	       tag == DW_TAG_lexical_block;
}

/*
 * Add the pieces of code of a function or block.
 * @return false when there is no room or no time.
 */
static bool add_scopes(struct debug_info *d, struct unit *u, Dwarf_Die *die, const struct scope *s)
{
	struct range_walk w = { .die = die };

	while (next_range(d, &w)) {
		struct scope *scope;

		if (d->n_scopes == SCOPES_MAX ||
		    vec_reserve(&u->scopes, u->n_scopes, 1, &u->capacity, sizeof(*scope)) < 0)
			return false;
		scope = &u->scopes[u->n_scopes++];
		*scope = *s;
		scope->low = w.low;
		scope->high = w.high;
		d->n_scopes++;
	}
	return !d->spent;
}

/* The state of a walk through the DIEs of a unit. */
struct die_walk {
	Dwarf_Off at;
	Dwarf_Off parents[DEPTH_MAX + 1]; /**< Enclosing scope at each depth. */
	size_t depth;
};

/*
 * Visit one DIE.
 * @return false when the walk has to end: the DIE is broken, or a limit was hit.
 */
static bool walk_die(struct debug_info *d, struct unit *u, struct die_walk *w)
{
	Dwarf_Off inside = w->parents[w->depth];
	Dwarf_Die die;
	size_t size;
	int tag;

	if (!dwarf_offdie(d->dw, w->at, &die))
		return false;
	tag = dwarf_tag(&die);
	size = tag == DW_TAG_invalid ? 0 : die_size(&die, d->info + u->end);
	if (!size)
		return false;
	if (is_scope_tag(tag)) {
		struct scope s = { .die = w->at, .parent = inside, .tag = tag };

		if (!add_scopes(d, u, &die, &s))
			return false;
		inside = w->at;
	}
	w->at += size;
	if (dwarf_haschildren(&die) > 0) {
		if (w->depth == DEPTH_MAX)
			return false;
		w->parents[++w->depth] = inside;
	}
	return true;
}

static void read_scopes(struct debug_info *d, struct unit *u)
{
	struct die_walk w = { .at = u->die };

	u->tried_scopes = true;
	do {
		if (!spend(d))
			return;
		if (!d->info[w.at]) { /* The end of a list of children. */
			w.at++;
			w.depth--;
		} else if (!walk_die(d, u, &w)) {
			return;
		}
	} while (w.depth && w.at < u->end);
}

/*
 * Find the unit of an address.  A removed function may leave a piece at address 0, so the tightest
 * piece is taken.
 */
static struct unit *find_unit(struct debug_info *d, uint64_t address)
{
	const struct span *best = NULL;

	for (size_t i = 0; i < d->spans.n; i++) {
		const struct span *s = &d->spans.items[i];

		if (address >= s->low && address < s->high &&
		    (!best || s->high - s->low < best->high - best->low))
			best = s;
	}
	return best ? &d->units[best->unit] : NULL;
}

/* Find the scopes around the address, outermost first; the function is chain[0]. */
static size_t find_chain(const struct unit *u, uint64_t address, const struct scope **chain)
{
	size_t n = 0;

	for (size_t i = 0; i < u->n_scopes; i++) {
		const struct scope *s = &u->scopes[i];

		if (address < s->low || address >= s->high)
			continue;
		if (s->tag == DW_TAG_subprogram && (!n || s->parent == chain[n - 1]->die)) {
			n = 0;
			chain[n++] = s;
		} else if (n && n < DEPTH_MAX && s->parent == chain[n - 1]->die) {
			chain[n++] = s;
		}
	}
	return n;
}

struct position {
	const char *file;
	int line, column;
};

static bool load_lines(struct debug_info *d, struct unit *u, Dwarf_Die *cu)
{
	Dwarf_Lines *lines;
	size_t n;

	if (d->n_rows >= LINE_ROWS_MAX)
		d->lines_fit = false;
	if (!u->tried_lines && d->lines_fit && !d->spent &&
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

static void add_frames(struct debug_info *d, Dwarf_Die *cu, const struct scope **chain, size_t n,
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

static void locate(struct debug_info *d, struct unit *u, uint64_t address,
		   struct symbols_location *l)
{
	const struct scope *chain[DEPTH_MAX];
	struct position p = { 0 };
	Dwarf_Die cu;
	bool has_lines;
	size_t n;

	if (!dwarf_offdie(d->dw, u->die, &cu))
		return;
	if (!u->tried_scopes)
		read_scopes(d, u);
	has_lines = load_lines(d, u, &cu);
	if (has_lines)
		p = position_of(&cu, address);
	n = find_chain(u, address, chain);
	if (n) {
		add_frames(d, &cu, chain, n, p, has_lines, l);
	} else if (p.file || p.line) {
		struct symbols_frame *f = location_add(l);

		location_set_position(l, f, p.file, p.line, p.column);
	}
}

/* ------------------------------------------------------------------ by function -------------- */

/*
 * May another unit be searched for its functions?  What units tell of their extent may be nothing,
 * or not all.  Looking at the functions of all units takes time that other addresses need as well,
 * so it may take no more than half of the budget, except in a cubin.
 */
static bool may_search(struct debug_info *d)
{
	bool half = d->steps < STEPS_MAX / 2 &&
		    d->cpu_ns + (cpu_now_ns() - d->entered_ns) < CPU_NS_MAX / 2;

	if (d->n_searched == d->n_units || d->spent)
		return false;
	if (!half && !d->is_cuda)
		d->gave_up = true;
	return half || d->is_cuda;
}

static void search_unit(struct debug_info *d)
{
	size_t unit = d->n_searched++;
	struct unit *u = &d->units[unit];

	if (!u->tried_scopes)
		read_scopes(d, u);
	for (size_t i = 0; i < u->n_scopes && spend(d); i++) {
		const struct scope *s = &u->scopes[i];

		if (s->tag == DW_TAG_subprogram &&
		    add_span(&d->functions, (struct span){ s->low, s->high, unit }) < 0)
			d->spent = true;
	}
}

static bool has_line(struct debug_info *d, struct unit *u, uint64_t address)
{
	Dwarf_Die cu;

	return dwarf_offdie(d->dw, u->die, &cu) && load_lines(d, u, &cu) &&
	       position_of(&cu, address).line;
}

/*
 * Find the unit with the tightest function around the address.  When a linker keeps one of several
 * equal functions, all their units claim it, and only one of them has its lines.
 */
static struct unit *search(struct debug_info *d, uint64_t address, bool *ret_has_line)
{
	const struct span *s;
	struct unit *best = NULL;
	uint64_t size = UINT64_MAX;
	size_t i = 0;

	*ret_has_line = false;
	for (;;) {
		for (; i < d->functions.n; i++) {
			s = &d->functions.items[i];
			if (address < s->low || address >= s->high)
				continue;
			if (*ret_has_line && s->high - s->low >= size)
				continue;
			if (spend(d) && has_line(d, &d->units[s->unit], address))
				*ret_has_line = true;
			else if (best)
				continue;
			best = &d->units[s->unit];
			size = s->high - s->low;
		}
		if (*ret_has_line || !may_search(d))
			return best;
		search_unit(d);
	}
}

static struct line_table *tables_of(struct debug_info *d)
{
	if (d->lines_fit && !d->spent)
		(void)open_tables(d);
	return d->tables;
}

static void locate_in_cubin(struct debug_info *d, uint64_t address, struct symbols_location *l)
{
	bool found;
	struct unit *u = search(d, address, &found);

	if (!found)
		line_table_locate(tables_of(d), address, l);
	if (u && !l->n_frames)
		locate(d, u, address, l);
}

void debug_info_locate(struct debug_info *d, uint64_t address, struct symbols_location *l)
{
	struct unit *u;
	bool found;

	enter(d);
	if (d->is_cuda) {
		locate_in_cubin(d, address, l);
	} else {
		u = find_unit(d, address);
		if (u)
			locate(d, u, address, l);
		if (!l->n_frames && (u = search(d, address, &found)))
			locate(d, u, address, l);
	}
	if (d->spent || (d->gave_up && !l->n_frames))
		l->cut = true;
	leave(d);
}

/* ------------------------------------------------------------------ parameters --------------- */

/* Find the function around an address, not what is inlined into it. */
static bool find_subprogram(struct debug_info *d, struct unit *u, uint64_t address, Dwarf_Die *ret)
{
	const struct scope *chain[DEPTH_MAX];

	if (!u)
		return false;
	if (!u->tried_scopes)
		read_scopes(d, u);
	return find_chain(u, address, chain) && dwarf_offdie(d->dw, chain[0]->die, ret);
}

static int visit_parameter(struct debug_info *d, Dwarf_Die *die,
			   int (*visit)(void *arg, const struct symbols_parameter *p), void *arg)
{
	const char *name = die_name(die, d->info, d->info_size);
	char type[TYPE_TEXT_MAX], base[TYPE_TEXT_MAX];
	struct symbols_parameter p = { .name = name ? name : "", .type = type, .base = base };
	struct die_type t;

	if (die_type_of(die, &t) < 0) {
		type[0] = base[0] = '\0';
	} else {
		die_type_text(&t.die, d->info, d->info_size, false, type, sizeof(type));
		die_type_text(&t.die, d->info, d->info_size, true, base, sizeof(base));
		p.size = t.size;
	}
	return visit(arg, &p);
}

/* Walk DIE by DIE: parameters are children of the function, but not of what is inside of it. */
static int walk_parameters(struct debug_info *d, Dwarf_Die *function, const uint8_t *end,
			   int (*visit)(void *arg, const struct symbols_parameter *p), void *arg)
{
	const uint8_t *at = (const uint8_t *)function->addr;
	Dwarf_Die die = *function;
	size_t depth = 0;
	int r = 0;

	do {
		size_t size;

		if (!spend(d))
			return -EBADMSG;
		if (depth && !*at) {
			at++;
			depth--;
			continue;
		}
		size = dwarf_offdie(d->dw, (Dwarf_Off)(at - d->info), &die) ? die_size(&die, end) : 0;
		if (!size)
			return -EBADMSG;
		if (depth == 1 && dwarf_tag(&die) == DW_TAG_formal_parameter)
			r = visit_parameter(d, &die, visit, arg);
		at += size;
		depth += dwarf_haschildren(&die) > 0;
	} while (r == 0 && depth && at < end);
	return r;
}

int debug_info_parameters(struct debug_info *d, uint64_t address,
			  int (*visit)(void *arg, const struct symbols_parameter *p), void *arg)
{
	struct unit *u = d->is_cuda ? NULL : find_unit(d, address);
	Dwarf_Die die;
	bool found;
	int r = -ENOENT;

	enter(d);
	if (!find_subprogram(d, u, address, &die)) {
		u = search(d, address, &found);
		if (!find_subprogram(d, u, address, &die))
			u = NULL;
	}
	if (u)
		r = walk_parameters(d, &die, d->info + u->end, visit, arg);
	leave(d);
	return r;
}

/* ------------------------------------------------------------------ lines -------------------- */

static bool has_lines_of(struct debug_info *d, const struct span_list *list, size_t first,
			 uint64_t low, uint64_t high)
{
	for (size_t i = first; i < list->n && spend(d); i++) {
		const struct span *s = &list->items[i];
		struct unit *u = &d->units[s->unit];
		Dwarf_Die cu;

		if (s->low < high && s->high > low && dwarf_offdie(d->dw, u->die, &cu) &&
		    load_lines(d, u, &cu))
			return true;
	}
	return false;
}

bool debug_info_has_lines(struct debug_info *d, uint64_t low, uint64_t high)
{
	bool found;

	enter(d);
	if (d->is_cuda) {
		found = line_table_has_lines(tables_of(d), low, high);
	} else {
		found = has_lines_of(d, &d->spans, 0, low, high) ||
			has_lines_of(d, &d->functions, 0, low, high);
		while (!found && may_search(d)) {
			size_t known = d->functions.n;

			search_unit(d);
			found = has_lines_of(d, &d->functions, known, low, high);
		}
	}
	leave(d);
	return found;
}

/* ------------------------------------------------------------------ for values --------------- */

static struct unit *unit_of(struct debug_info *d, uint64_t address)
{
	struct unit *u = d->is_cuda ? NULL : find_unit(d, address);
	bool found;

	return u ? u : search(d, address, &found);
}

size_t debug_info_scopes(struct debug_info *d, uint64_t address, struct debug_scope *ret,
			 size_t max)
{
	const struct scope *chain[DEPTH_MAX];
	struct unit *u;
	size_t n = 0;

	enter(d);
	u = unit_of(d, address);
	if (u && !u->tried_scopes)
		read_scopes(d, u);
	if (u && !d->spent)
		n = find_chain(u, address, chain);
	leave(d);
	if (n > max)
		n = max;
	for (size_t i = 0; i < n; i++)
		ret[i] = (struct debug_scope){ chain[i]->low, chain[i]->high, chain[i]->die,
						 chain[i]->tag };
	return n;
}

/* The end of a prologue, as its compiler marks it; else where the second line begins. */
static uint64_t body_of(struct debug_info *d, Dwarf_Lines *lines, size_t n, uint64_t low,
			uint64_t high)
{
	uint64_t second = low;

	for (size_t i = 0; i < n && spend(d); i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		bool statement, end;
		Dwarf_Addr at;

		if (dwarf_lineaddr(line, &at) < 0 || at < low || at >= high)
			continue;
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
	struct unit *u;
	Dwarf_Lines *lines;
	Dwarf_Die cu;
	size_t n;

	enter(d);
	u = unit_of(d, low);
	if (u && dwarf_offdie(d->dw, u->die, &cu) && load_lines(d, u, &cu) &&
	    dwarf_getsrclines(&cu, &lines, &n) == 0)
		low = body_of(d, lines, n, low, high);
	leave(d);
	return low;
}

bool debug_info_die(struct debug_info *d, Dwarf_Off offset, Dwarf_Die *ret)
{
	return offset < d->info_size && dwarf_offdie(d->dw, offset, ret);
}

bool debug_info_is_cuda(const struct debug_info *d)
{
	return d->is_cuda;
}

const char *debug_info_string(struct debug_info *d, Dwarf_Die *die, unsigned attribute)
{
	return die_string(die, attribute, d->info, d->info_size);
}

const uint8_t *debug_info_section(struct debug_info *d, const char *kind, size_t *ret_size)
{
	const uint8_t *data = NULL;

	*ret_size = 0;
	return find_section(d, kind, &data, ret_size) == 0 ? data : NULL;
}

/* Pass over a DIE.  @return false when it is broken. */
static bool pass_die(struct debug_children *c, Dwarf_Die *die)
{
	size_t size = dwarf_tag(die) == DW_TAG_invalid ?
			      0 :
			      die_size(die, c->d->info + c->end);

	c->at += size;
	if (size && dwarf_haschildren(die) > 0)
		c->depth++;
	return size;
}

void debug_children_init(struct debug_children *c, struct debug_info *d, Dwarf_Die *parent,
			 uint32_t steps)
{
	*c = (struct debug_children){ .d = d, .at = dwarf_dieoffset(parent), .steps = steps };
	for (size_t i = 0; i < d->n_units; i++)
		if (c->at >= d->units[i].die && c->at < d->units[i].end)
			c->end = d->units[i].end;
	if (!pass_die(c, parent))
		c->depth = 0;
}

bool debug_children_next(struct debug_children *c, Dwarf_Die *ret)
{
	while (c->depth && c->at < c->end && c->steps) {
		size_t depth = c->depth;

		c->steps--;
		if (!c->d->info[c->at]) { /* The end of a list of children. */
			c->at++;
			c->depth--;
			continue;
		}
		if (!dwarf_offdie(c->d->dw, c->at, ret) || !pass_die(c, ret) ||
		    c->depth > DEPTH_MAX)
			break;
		if (depth == 1)
			return true;
	}
	c->depth = 0;
	return false;
}
