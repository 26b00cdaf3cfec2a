/* SPDX-License-Identifier: MIT */
#include "corefile/cuda/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/reader.h"
#include "corefile/cuda/layout.h"

#define TYPE_BASE  UINT32_C(0x80000000)
#define TYPE_COUNT 24u

/* A section that belongs to a row of another table. */
struct item {
	uint32_t parent;  /* Position of that row in its table. */
	uint32_t section;
};

struct loader {
	struct elf_view elf;
	struct cudacore *core;
	Elf64_Shdr strings;
	/*
	 * Bytes of tables that may still be read, at first the size of the file: tables that
	 * overlap would make rows without end.
	 */
	uint64_t budget;
	/* Section numbers by type, in file order: those of type t are [start[t], start[t + 1]). */
	uint32_t *by_type;
	uint32_t start[TYPE_COUNT + 1];
	struct cudacore_range *rows; /* Rows of each section that is a table and was read. */
};

#define PROBLEM(l, section, offset, ...)                                                           \
	corefile_problem_add(&(l)->core->problems, section, offset, __VA_ARGS__)

/* @return the number of a type of the format; 0 for other types. */
static unsigned type_index(uint32_t type)
{
	return type > TYPE_BASE && type < TYPE_BASE + TYPE_COUNT ? type - TYPE_BASE : 0;
}

static void find_strings(struct loader *l, const Elf64_Shdr *section)
{
	if (section->sh_type == SHT_STRTAB &&
	    !strcmp(elf_view_section_name(&l->elf, section), ".strtab"))
		l->strings = *section;
}

/* Sort sections by type.  It is a counting sort, because a full GPU has a million sections. */
static int classify(struct loader *l)
{
	uint32_t n = l->elf.n_sections, at[TYPE_COUNT] = { 0 };

	l->by_type = calloc(n, sizeof(*l->by_type));
	l->rows = calloc(n, sizeof(*l->rows));
	if (!l->by_type || !l->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		Elf64_Shdr section = elf_view_section(&l->elf, i);

		find_strings(l, &section);
		at[type_index(section.sh_type)]++;
	}
	for (unsigned t = 0; t < TYPE_COUNT; t++) {
		l->start[t + 1] = l->start[t] + at[t];
		at[t] = l->start[t];
	}
	for (uint32_t i = 0; i < n; i++) {
		Elf64_Shdr section = elf_view_section(&l->elf, i);

		l->by_type[at[type_index(section.sh_type)]++] = i;
	}
	return 0;
}

/*
 * Find the row that a section belongs to.
 * @return false when there is no such row.
 */
static bool find_parent(struct loader *l, unsigned table, const Elf64_Shdr *s, uint32_t *ret)
{
	Elf64_Shdr link;

	if (table == CUDA_NO_PARENT) {
		*ret = 0;
		return true;
	}
	/*
	 * There is only one device table, and the vendor's reader does not look at the link to it
	 * either.
	 */
	if (table == CUDACORE_DEVICES) {
		*ret = s->sh_info;
		return s->sh_info < l->core->n[CUDACORE_DEVICES];
	}
	if (s->sh_link >= l->elf.n_sections)
		return false;
	link = elf_view_section(&l->elf, s->sh_link);
	*ret = l->rows[s->sh_link].first + s->sh_info;
	return link.sh_type == cuda_tables[table].type && s->sh_info < l->rows[s->sh_link].n;
}

static int by_parent(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	return x->section < y->section ? -1 : x->section > y->section;
}

/* Drop all but the last of several sections for the same row, as the vendor's reader does. */
static size_t drop_doubles(struct loader *l, struct item *items, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (i + 1 < n && items[i + 1].parent == items[i].parent)
			PROBLEM(l, items[i].section, 0, "section %u is for the same thing",
				items[i + 1].section);
		else
			items[kept++] = items[i];
	}
	return kept;
}

/* Collect all sections of a type, in the order of the rows that they belong to. */
static int gather(struct loader *l, uint32_t type, unsigned parent, struct item **ret,
		  size_t *ret_n)
{
	unsigned t = type_index(type);
	size_t n = 0, room = l->start[t + 1] - l->start[t];
	struct item *items = calloc(room ? room : 1, sizeof(*items));

	if (!items)
		return -ENOMEM;
	for (uint32_t i = l->start[t]; i < l->start[t + 1]; i++) {
		struct item item = { .section = l->by_type[i] };
		Elf64_Shdr s = elf_view_section(&l->elf, item.section);

		if (find_parent(l, parent, &s, &item.parent))
			items[n++] = item;
		else
			PROBLEM(l, item.section, s.sh_offset, "no row %u in section %u for it",
				s.sh_info, s.sh_link);
	}
	qsort(items, n, sizeof(*items), by_parent);
	*ret_n = drop_doubles(l, items, n);
	*ret = items;
	return 0;
}

static size_t smallest_record(const struct cuda_table *t)
{
	size_t i = 0;

	while (!t->sizes[i])
		i++;
	return t->sizes[i];
}

/* @return the bytes of a section; NULL (and a problem) when none of them lie in the file. */
static const uint8_t *section_bytes(struct loader *l, uint32_t number, const Elf64_Shdr *s,
				    size_t *ret_size)
{
	const void *p = NULL;

	*ret_size = 0;
	if (s->sh_size) {
		p = elf_view_bytes(&l->elf, s, ret_size);
		if (*ret_size < s->sh_size)
			PROBLEM(l, number, s->sh_offset, "%zu of its %llu bytes lie in the file",
				*ret_size, (unsigned long long)s->sh_size);
	}
	return p;
}

/* The header of a section with the rows of a table. */
static Elf64_Shdr table_section(const struct loader *l, const struct cuda_table *t, uint32_t number)
{
	Elf64_Shdr s = elf_view_section(&l->elf, number);

	if (t->single && !s.sh_entsize)
		s.sh_entsize = s.sh_size;
	return s;
}

/* @return the number of rows in a table section; 0 when it cannot be used. */
static size_t count_rows(struct loader *l, const struct cuda_table *t, uint32_t number,
			 const Elf64_Shdr *s, const uint8_t **ret)
{
	size_t size;

	*ret = section_bytes(l, number, s, &size);
	if (!size)
		return 0;
	if (s->sh_entsize < smallest_record(t)) {
		PROBLEM(l, number, s->sh_offset, "%s: records of %llu bytes, %zu is the least",
			t->section, (unsigned long long)s->sh_entsize, smallest_record(t));
		return 0;
	}
	if (size > l->budget) {
		PROBLEM(l, number, s->sh_offset, "%s: lies over other tables", t->section);
		return 0;
	}
	l->budget -= size;
	if (size % s->sh_entsize)
		PROBLEM(l, number, s->sh_offset + size - size % s->sh_entsize,
			"%s: half a record at the end", t->section);
	return (size_t)(size / s->sh_entsize);
}

static void decode_strings(struct loader *l, const struct cuda_table *t, uint32_t number,
			   const uint8_t *from, size_t size, void *row)
{
	for (const struct cuda_field *f = t->fields; f->count; f++) {
		const char *s = NULL;
		struct reader r;
		uint64_t at;

		if (f->kind != CUDA_STRING)
			continue;
		reader_init(&r, from, size);
		reader_seek(&r, f->at);
		at = reader_u64(&r);
		if (!reader_is_bad(&r)) {
			s = elf_view_string(&l->elf, &l->strings, at);
			if (!s)
				PROBLEM(l, number, (uint64_t)(from - l->elf.data) + f->at,
					"%s: no string at 0x%llx", t->section,
					(unsigned long long)at);
		}
		if (!s)
			s = "";
		memcpy((char *)row + f->member, &s, sizeof(s));
	}
}

static int load_rows(struct loader *l, enum cudacore_table table, const struct item *item)
{
	const struct cuda_table *t = &cuda_tables[table];
	Elf64_Shdr s = table_section(l, t, item->section);
	const uint8_t *from;
	size_t n;

	n = count_rows(l, t, item->section, &s, &from);
	if (n > UINT32_MAX - l->core->n[table])
		return -ENOMEM;
	l->rows[item->section] = (struct cudacore_range){ l->core->n[table], (uint32_t)n };
	for (size_t i = 0; i < n; i++, from += s.sh_entsize) {
		void *row = cudacore_add(l->core, table, item->parent);

		if (!row)
			return -ENOMEM;
		cuda_decode(t, from, (size_t)s.sh_entsize, row);
		decode_strings(l, t, item->section, from, (size_t)s.sh_entsize, row);
	}
	return 0;
}

/*
 * Reserve memory for all rows of a table at once; growing step by step would need half as much
 * again.
 */
static int reserve_rows(struct loader *l, enum cudacore_table table, const struct item *items,
			size_t n)
{
	uint64_t total = 0;

	for (size_t i = 0; i < n; i++) {
		Elf64_Shdr s = table_section(l, &cuda_tables[table], items[i].section);
		size_t size = 0;

		if (s.sh_entsize >= smallest_record(&cuda_tables[table]) &&
		    elf_view_bytes(&l->elf, &s, &size))
			total += size / s.sh_entsize;
	}
	/*
	 * More rows than the file can hold mean overlapping tables, most of which will be refused.
	 */
	if (total > l->budget / smallest_record(&cuda_tables[table]))
		return 0;
	return total ? cudacore_reserve(l->core, table, (uint32_t)total) : 0;
}

static int load_table(struct loader *l, enum cudacore_table table)
{
	auto_free struct item *items = NULL;
	size_t n;
	int r = gather(l, cuda_tables[table].type, cuda_tables[table].parent, &items, &n);

	if (r == 0)
		r = reserve_rows(l, table, items, n);
	/* Items come in the order of their parents, as cudacore_add() demands. */
	for (size_t i = 0; i < n && r == 0; i++)
		r = load_rows(l, table, &items[i]);
	return r;
}

static int load_blobs(struct loader *l, const struct cuda_blob *b)
{
	auto_free struct item *items = NULL;
	size_t n;
	int r = gather(l, b->type, b->parent, &items, &n);

	for (size_t i = 0; i < n && r == 0; i++) {
		char *row = cuda_row(l->core, b->parent, items[i].parent);
		Elf64_Shdr s = elf_view_section(&l->elf, items[i].section);
		struct corefile_blob blob = { 0 };
		size_t size;

		blob.data = section_bytes(l, items[i].section, &s, &size);
		blob.size = size;
		memcpy(row + b->member, &blob, sizeof(blob));
		if (b->address)
			memcpy(row + b->address, &s.sh_addr, sizeof(s.sh_addr));
	}
	return r;
}

static int load_memory(struct loader *l, uint32_t type)
{
	unsigned t = type_index(type);

	for (uint32_t i = l->start[t]; i < l->start[t + 1]; i++) {
		Elf64_Shdr s = elf_view_section(&l->elf, l->by_type[i]);
		struct cudacore_memory *m;
		const uint8_t *data;
		size_t size;

		data = section_bytes(l, l->by_type[i], &s, &size);
		if (!size)
			continue;
		m = cudacore_add_memory(l->core);
		if (!m)
			return -ENOMEM;
		m->address = s.sh_addr;
		m->managed = type == CUDA_SHT_MANAGED;
		m->blob = (struct corefile_blob){ .data = data, .size = size };
	}
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct cudacore_memory *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (uintptr_t)x->blob.data < (uintptr_t)y->blob.data ? -1 : 1;
}

static void sort_memory(struct loader *l)
{
	struct cudacore *c = l->core;

	if (c->n_memory)
		qsort(c->memory, c->n_memory, sizeof(*c->memory), by_address);
	for (uint32_t i = 1; i < c->n_memory; i++)
		if (c->memory[i].address - c->memory[i - 1].address < c->memory[i - 1].blob.size)
			PROBLEM(l, COREFILE_NO_SECTION,
				(uint64_t)((const uint8_t *)c->memory[i].blob.data - l->elf.data),
				"two sections for the memory at 0x%llx",
				(unsigned long long)c->memory[i].address);
}

static void check_file(struct loader *l)
{
	const struct elf_view *e = &l->elf;
	const uint8_t osabi = e->header.e_ident[EI_OSABI], version = e->header.e_ident[EI_ABIVERSION];

	if (e->n_sections < e->n_sections_promised)
		PROBLEM(l, COREFILE_NO_SECTION, e->size, "cut short: %u of %u section headers",
			e->n_sections, e->n_sections_promised);
	if (!(osabi == CUDA_ELFOSABI && version == CUDA_ABI_VERSION) &&
	    !(osabi == CUDA_ELFOSABI_13 && version == CUDA_ABI_VERSION_13))
		PROBLEM(l, COREFILE_NO_SECTION, EI_OSABI, "unknown ABI 0x%x, version %u", osabi,
			version);
	if (l->strings.sh_type != SHT_STRTAB)
		PROBLEM(l, COREFILE_NO_SECTION, 0, "no section .strtab");
}

/* Find the agent's own section by its name; debuggers pass over a type that they do not know. */
static void find_agent(struct loader *l)
{
	for (uint32_t i = l->start[0]; i < l->start[1]; i++) {
		Elf64_Shdr s = elf_view_section(&l->elf, l->by_type[i]);
		size_t size;

		if (s.sh_type != SHT_PROGBITS ||
		    strcmp(elf_view_section_name(&l->elf, &s), COREFILE_AGENT_SECTION) != 0)
			continue;
		l->core->agent.data = section_bytes(l, l->by_type[i], &s, &size);
		l->core->agent.size = size;
		return;
	}
}

static int load(struct loader *l)
{
	int r = classify(l);

	if (r < 0)
		return r;
	check_file(l);
	for (unsigned t = 0; t < CUDACORE_TABLE_COUNT && r == 0; t++)
		r = load_table(l, t);
	for (size_t i = 0; i < CUDA_BLOB_COUNT && r == 0; i++)
		r = load_blobs(l, &cuda_blobs[i]);
	if (r == 0)
		r = load_memory(l, CUDA_SHT_MANAGED);
	if (r == 0)
		r = load_memory(l, CUDA_SHT_GLOBAL);
	if (r < 0)
		return r;
	sort_memory(l);
	find_agent(l);
	return 0;
}

static bool is_cuda(const struct elf_view *e)
{
	return e->header.e_type == ET_CORE && e->header.e_machine == CUDA_EM_CUDA;
}

bool cudacore_is(const void *data, size_t size)
{
	struct elf_view e;

	return corefile_elf_open(data, size, &e, NULL) == 0 && is_cuda(&e);
}

int cudacore_read(const void *data, size_t size, struct cudacore *ret,
		  struct corefile_problem *error)
{
	struct cudacore core = { 0 };
	struct loader l = { .core = &core, .budget = size };
	int r = corefile_elf_open(data, size, &l.elf, error);

	if (r < 0)
		return r;
	if (!is_cuda(&l.elf) || !l.elf.n_sections) {
		corefile_problem_set(error, COREFILE_NO_SECTION, offsetof(Elf64_Ehdr, e_type),
				     "not a CUDA core: ELF type %u, machine %u, %u sections",
				     l.elf.header.e_type, l.elf.header.e_machine, l.elf.n_sections);
		return -ENOEXEC;
	}
	r = load(&l);
	free(l.by_type);
	free(l.rows);
	if (r == 0 && !core.n[CUDACORE_DEVICES])
		r = -EBADMSG;
	if (r < 0) {
		corefile_problem_set(error, COREFILE_NO_SECTION, 0, "%s",
				     r == -EBADMSG ? "no device table that can be read"
						   : "not enough memory");
		cudacore_deinit(&core);
		return r;
	}
	*ret = core;
	return 0;
}
