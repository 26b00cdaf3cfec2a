/* SPDX-License-Identifier: MIT */
/*
 * Opens debug information, with libdw.  The bytes are hostile, and nothing outside the image is ever
 * opened.
 */
#include "symbols/debug/debug_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "symbols/debug/die.h"
#include "symbols/debug/line_table.h"
#include "symbols/debug/relocate.h"

/* Limits for one image. */
#define SPANS_MAX	 (1u << 20)
#define EXPANDED_MAX	 ((uint64_t)128 << 20) /* Bytes of all compressed sections together. */

void debug_enter(struct debug_info *d)
{
	budget_enter(&d->budget);
}

void debug_leave(struct debug_info *d)
{
	budget_leave(&d->budget);
	d->was_spent = d->was_spent || d->budget.spent;
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

static bool is_expansion_limited(const struct elf_view *v)
{
	uint64_t total = 0;

	for (size_t i = 1; i < v->n_sections; i++) {
		Elf64_Shdr s = elf_view_section(v, i);
		uint64_t size = expanded_size(v, &s);

		if (size > EXPANDED_MAX)
			return false;
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

bool debug_next_range(struct debug_info *d, struct debug_ranges *w)
{
	do {
		if (!debug_spend(d))
			return false;
		w->at = dwarf_ranges(w->die, w->at, &w->base, &w->low, &w->high);
		if (w->at <= 0)
			return false;
	} while (w->low >= w->high);
	return true;
}

int debug_add_span(struct debug_span_list *l, struct debug_span s)
{
	if (l->n == SPANS_MAX)
		return 0;
	if (vec_reserve(&l->items, l->n, 1, &l->capacity, sizeof(*l->items)) < 0)
		return -ENOMEM;
	l->items[l->n++] = s;
	return 0;
}

void debug_sort_spans(struct debug_span_list *l)
{
	if (l->n_sorted != l->n)
		pieces_sort(l->items, l->n, sizeof(*l->items));
	l->n_sorted = l->n;
}

static int add_spans(struct debug_info *d, Dwarf_Die *die, size_t unit)
{
	struct debug_ranges w = { .die = die };
	int r = 0;

	while (r == 0 && debug_next_range(d, &w))
		r = debug_add_span(&d->spans, (struct debug_span){ { w.low, w.high, 0 }, unit });
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
	d->units[d->n_units] = (struct debug_unit){ .die = first, .end = end };
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
	while (r == 0 && debug_spend(d) &&
	       dwarf_next_unit(d->dw, at, &next, &header, NULL, NULL, NULL, NULL, NULL, NULL) ==
		       0 &&
	       next > at) {
		r = add_unit(d, at + header, next);
		at = next;
	}
	debug_sort_spans(&d->spans);
	return r;
}

int debug_open_tables(struct debug_info *d)
{
	if (d->tried_tables)
		return 0;
	d->tried_tables = true;
	if (!d->lines)
		return -EBADMSG;
	return line_table_create(d->dw, d->lines, d->lines_size, LINE_ROWS_MAX, &d->tables);
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
	(void)find_section(d, "line", &d->lines, &d->lines_size);
	r = find_section(d, "info", &d->info, &d->info_size);
	if (r == -ENOENT) /* A cubin that was compiled with -lineinfo has lines only. */
		return debug_open_tables(d);
	return r < 0 ? r : read_units(d);
}

int debug_info_create(const struct elf_view *v, uint8_t *bytes, struct debug_info **ret)
{
	struct debug_info *d;
	int r;

	if (!is_expansion_limited(v))
		return -EFBIG;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->is_cuda = v->header.e_machine == EM_CUDA;
	if (d->is_cuda)
		relocate_debug_sections(v, bytes);
	budget_init(&d->budget);
	debug_enter(d);
	r = open_all(d, bytes, v->size);
	debug_leave(d);
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
	return sizeof(*d) + d->n_units * sizeof(struct debug_unit) + d->n_scopes * sizeof(struct debug_area) +
	       (d->spans.n + d->functions.n) * sizeof(struct debug_span) +
	       (d->n_rows + line_table_rows(d->tables)) * ROW_BYTES;
}

int debug_info_state(const struct debug_info *d)
{
	return d && (d->was_spent || d->gave_up || d->lines_cut || line_table_is_cut(d->tables)) ?
		       -EFBIG :
		       0;
}

bool debug_info_unit(struct debug_info *d, size_t at, Dwarf_Die *ret)
{
	return at < d->n_units && debug_info_die(d, d->units[at].die, ret);
}

bool debug_info_die(struct debug_info *d, Dwarf_Off offset, Dwarf_Die *ret)
{
	return offset < d->info_size && dwarf_offdie(d->dw, offset, ret);
}

bool debug_info_is_small(Dwarf_Die *die)
{
	return die_is_small(die);
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

