/* SPDX-License-Identifier: MIT */
#include "corefile/cuda/walk.h"

#include <elf.h>
#include <string.h>

/* Sections of a page or more begin at a page, so that holes in memory become holes in the file. */
#define PAGE_BYTES 4096u
#define GLOBAL	   ".cudbg.global"

static int visit(struct cuda_walk *w, struct cuda_section *s)
{
	s->number = ++w->number;
	s->align = s->part == CUDA_PART_BULK && s->size >= PAGE_BYTES ? PAGE_BYTES :
		   !s->table && s->entry_size ? s->entry_size : 8;
	return w->visit(w, s);
}

/*
 * Append a label such as `.dev0` to the suffix.  It is made by hand, for there are a million of
 * them.
 */
static void push_label(struct cuda_walk *w, const char *label, size_t length, uint32_t number)
{
	char digits[10];
	size_t n = 0;

	w->suffix[w->suffix_size++] = '.';
	memcpy(w->suffix + w->suffix_size, label, length);
	w->suffix_size += length;
	do
		digits[n++] = (char)('0' + number % 10);
	while (number /= 10);
	while (n)
		w->suffix[w->suffix_size++] = digits[--n];
}

static int visit_blob(struct cuda_walk *w, const struct cuda_blob *b, const void *row,
		      uint32_t link, uint32_t info)
{
	const struct corefile_blob *blob = (const void *)((const char *)row + b->member);
	struct cuda_section s = { .type = b->type, .link = link, .info = info, .name = b->section,
				  .name_size = b->section_size, .entry_size = b->entry_size,
				  .part = b->bulk ? CUDA_PART_BULK : CUDA_PART_REGISTERS,
				  .blob = blob, .size = blob->size };

	if (b->address)
		memcpy(&s.address, (const char *)row + b->address, sizeof(s.address));
	return visit(w, &s);
}

static int walk_blobs(struct cuda_walk *w, enum cudacore_table table, const void *row,
		      uint32_t link, uint32_t info)
{
	int r = 0;

	for (unsigned i = w->first_blob[table]; i < w->first_blob[table + 1] && r == 0; i++) {
		const struct cuda_blob *b = &cuda_blobs[i];
		const struct corefile_blob *blob = (const void *)((const char *)row + b->member);

		if (b->since <= w->layout && (b->always || blob->size))
			r = visit_blob(w, b, row, link, info);
	}
	return r;
}

static int walk_table(struct cuda_walk *w, enum cudacore_table table, struct cudacore_range range,
		      uint32_t link, uint32_t info);

static int walk_children(struct cuda_walk *w, enum cudacore_table table, const void *row,
			 uint32_t link, uint32_t info)
{
	int r = w->only_tables ? 0 : walk_blobs(w, table, row, link, info);

	for (unsigned t = table + 1; t < CUDACORE_TABLE_COUNT && r == 0; t++) {
		struct cudacore_range range;

		if (cuda_tables[t].parent != table)
			continue;
		memcpy(&range, (const char *)row + cuda_tables[t].children, sizeof(range));
		if (range.n || cuda_tables[t].always)
			r = walk_table(w, t, range, link, info);
	}
	return r;
}

static int walk_table(struct cuda_walk *w, enum cudacore_table table, struct cudacore_range range,
		      uint32_t link, uint32_t info)
{
	const struct cuda_table *t = &cuda_tables[table];
	size_t suffix_size = w->suffix_size;
	struct cuda_section s = {
		.type = t->type, .link = link, .info = info, .name = t->section,
		.name_size = t->section_size,
		.part = CUDA_PART_TABLES, .entry_size = t->sizes[w->layout],
		.table = t, .first = range.first, .n = range.n,
		.size = (uint64_t)range.n * t->sizes[w->layout],
	};
	int r;

	if (!s.entry_size)
		return 0;
	r = visit(w, &s);
	for (uint32_t i = 0; i < range.n && r == 0; i++) {
		if (t->label && !w->only_tables)
			push_label(w, t->label, t->label_size, i);
		if (table == CUDACORE_WARPS && w->warp)
			r = w->warp(w, range.first + i, s.number, i);
		else
			r = walk_children(w, table, cuda_row(w->core, table, range.first + i),
					  s.number, i);
		w->suffix_size = suffix_size;
	}
	return r;
}

static bool is_next(const struct cudacore_memory *a, const struct cudacore_memory *b)
{
	return a->managed == b->managed && a->address + a->blob.size == b->address;
}

static int walk_memory(struct cuda_walk *w)
{
	const struct cudacore_memory *const *m = w->memory;
	uint32_t n = w->core->n_memory, end;
	int r = 0;

	for (uint32_t i = 0, index = 0; i < n && r == 0; i = end, index++) {
		struct cuda_section s = {
			.type = m[i]->managed ? CUDA_SHT_MANAGED : CUDA_SHT_GLOBAL,
			.name = GLOBAL, .name_size = sizeof(GLOBAL) - 1,
			.part = CUDA_PART_BULK, .first = i,
			.address = m[i]->address, .size = m[i]->blob.size,
		};

		for (end = i + 1; end < n && is_next(m[end - 1], m[end]); end++)
			s.size += m[end]->blob.size;
		s.n = end - i;
		push_label(w, "", 0, index);
		r = visit(w, &s);
		w->suffix_size = 0;
	}
	return r;
}

static int walk_agent(struct cuda_walk *w)
{
	struct cuda_section s = { .type = SHT_PROGBITS, .name = COREFILE_AGENT_SECTION,
				  .name_size = sizeof(COREFILE_AGENT_SECTION) - 1,
				  .part = CUDA_PART_REGISTERS, .blob = &w->core->agent,
				  .size = w->core->agent.size };

	return s.size ? visit(w, &s) : 0;
}

/* Find the blobs of each table; cuda_blobs is in the order of the tables. */
static void find_blobs(struct cuda_walk *w)
{
	uint8_t i = 0;

	for (unsigned t = 0; t < CUDACORE_TABLE_COUNT; t++) {
		w->first_blob[t] = i;
		while (i < CUDA_BLOB_COUNT && cuda_blobs[i].parent == t)
			i++;
	}
	w->first_blob[CUDACORE_TABLE_COUNT] = i;
}

int cuda_walk_warp(struct cuda_walk *w, uint32_t row, uint32_t link, uint32_t info)
{
	find_blobs(w);
	return walk_children(w, CUDACORE_WARPS, &w->core->warps[row], link, info);
}

int cuda_walk(struct cuda_walk *w)
{
	int r = 0;

	find_blobs(w);

	w->number = 0;
	w->suffix_size = 0;
	for (unsigned t = 0; t < CUDACORE_TABLE_COUNT && r == 0; t++)
		if (cuda_tables[t].parent == CUDA_NO_PARENT &&
		    (w->core->n[t] || cuda_tables[t].always))
			r = walk_table(w, t, (struct cudacore_range){ 0, w->core->n[t] }, 0, 0);
	if (r == 0)
		r = walk_memory(w);
	return r < 0 ? r : walk_agent(w);
}
