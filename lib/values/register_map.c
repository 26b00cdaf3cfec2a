/* SPDX-License-Identifier: MIT */
/*
 * The section is a list of functions: name, count, then entries of part, name of the PTX register,
 * place, first and last offset.  gdb/cuda/cuda-regmap.c in NVIDIA's cuda-gdb reads it so.
 */
#include "values/register_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "base/vec.h"

#define ENTRIES_MAX   (1u << 22)
#define ENTRY_BYTES   18u /* The shortest one: its name is "%". */
#define PARTS_USED    2u  /* Those of 128-bit registers have four; NVIDIA's debugger takes two. */
#define OPERAND(word) ((word)&0xffffffu)

struct entry {
	uint64_t name;
	uint32_t place, first, last;
	uint32_t part;
};

struct function {
	const char *name;
	size_t first, n;
};

struct register_map {
	struct entry *entries;
	struct function *functions;
	size_t n_entries, n_functions, entry_capacity, function_capacity;
};

/* Registers are named by numbers in DWARF; longer names have none. */
static bool name_to_number(const char *name, uint64_t *ret)
{
	size_t n = strlen(name);

	*ret = 0;
	if (!n || n > sizeof(*ret))
		return false;
	for (size_t i = 0; i < n; i++)
		*ret = *ret << 8 | (uint8_t)name[i];
	return true;
}

static int read_entry(struct register_map *m, struct reader *r)
{
	struct entry e = { .part = reader_u32(r) & 3 };
	const char *name = reader_string(r);

	e.place = reader_u32(r);
	e.first = reader_u32(r);
	e.last = reader_u32(r);
	if (reader_is_bad(r))
		return -EBADMSG;
	if (!name_to_number(name, &e.name) || e.part >= PARTS_USED)
		return 0;
	if (m->n_entries == ENTRIES_MAX)
		return -EFBIG;
	if (vec_reserve(&m->entries, m->n_entries, 1, &m->entry_capacity, sizeof(e)) < 0)
		return -ENOMEM;
	m->entries[m->n_entries++] = e;
	return 0;
}

static int read_function(struct register_map *m, struct reader *r)
{
	struct function f = { .name = reader_string(r), .first = m->n_entries };
	uint32_t n = reader_u32(r);
	int error = 0;

	if (reader_is_bad(r) || n > reader_left(r) / ENTRY_BYTES)
		return -EBADMSG;
	for (uint32_t i = 0; i < n && !error; i++)
		error = read_entry(m, r);
	if (error)
		return error;
	f.n = m->n_entries - f.first;
	if (vec_reserve(&m->functions, m->n_functions, 1, &m->function_capacity, sizeof(f)) < 0)
		return -ENOMEM;
	m->functions[m->n_functions++] = f;
	return 0;
}

static int compare_functions(const void *a, const void *b)
{
	const struct function *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	return r ? r : (x->first > y->first) - (x->first < y->first);
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

int register_map_create(const void *data, size_t size, struct register_map **ret)
{
	struct register_map *m = calloc(1, sizeof(*m));
	struct reader r;
	int error = 0;

	if (!m)
		return -ENOMEM;
	reader_init(&r, data, size);
	while (!error && reader_left(&r))
		error = read_function(m, &r);
	if (error) {
		register_map_destroy(m);
		return error;
	}
	if (m->n_functions)
		qsort(m->functions, m->n_functions, sizeof(*m->functions), compare_functions);
	for (size_t i = 0; i < m->n_functions; i++)
		if (m->functions[i].n)
			qsort(m->entries + m->functions[i].first, m->functions[i].n,
			      sizeof(*m->entries), compare_entries);
	*ret = m;
	return 0;
}

void register_map_destroy(struct register_map *m)
{
	if (!m)
		return;
	free(m->entries);
	free(m->functions);
	free(m);
}

size_t register_map_bytes(const struct register_map *m)
{
	if (!m)
		return 0;
	return sizeof(*m) + m->entry_capacity * sizeof(*m->entries) + m->function_capacity * sizeof(*m->functions);
}

/* Compare with a wanted name, which ends at the parameters that a demangled one has. */
static int compare_name(const char *wanted, const char *name)
{
	size_t n = strcspn(wanted, "(");
	int r = strncmp(wanted, name, n);

	return r ? r : -(name[n] != '\0');
}

static const struct function *find_function(const struct register_map *m, const char *name)
{
	size_t low = 0, high = m->n_functions;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_name(name, m->functions[middle].name) > 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < m->n_functions && !compare_name(name, m->functions[low].name) ?
		       &m->functions[low] :
		       NULL;
}

/* @return the first entry of a name at or behind the place where it should be. */
static size_t find_entry(const struct entry *list, size_t n, uint64_t name)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list[middle].name < name)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int register_map_find(const struct register_map *m, const char *function, uint64_t name,
		      uint64_t offset, struct register_map_part *ret, size_t *ret_n,
		      unsigned *ret_parts)
{
	const struct function *f = m ? find_function(m, function) : NULL;
	/* A map of functions without entries has none at all. */
	const struct entry *list = f && f->n ? m->entries + f->first : NULL;

	*ret_n = 0;
	*ret_parts = 0;
	for (size_t i = f ? find_entry(list, f->n, name) : 0; f && i < f->n; i++) {
		const struct entry *e = &list[i];

		if (e->name != name)
			break;
		*ret_parts = e->part + 1;
		if (offset < e->first || offset > e->last)
			continue;
		if (*ret_n == REGISTER_MAP_PARTS_MAX)
			return -E2BIG;
		ret[(*ret_n)++] = (struct register_map_part){ (uint8_t)(e->place >> 24),
							      (uint8_t)e->part,
							      OPERAND(e->place) };
	}
	return *ret_n ? 0 : -ENOENT;
}
