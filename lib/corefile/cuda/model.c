/* SPDX-License-Identifier: MIT */
#include "corefile/cuda/model.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "corefile/cuda/layout.h"

#define LARGE_PAGE ((uintptr_t)2 << 20)

/*
 * Pointers to rows are copied with memcpy(), because their types differ from table to table
 * although all look alike in memory.
 */
static void *rows_of(const struct cudacore *c, enum cudacore_table table)
{
	void *rows;

	memcpy(&rows, (const char *)c + cuda_tables[table].array_at, sizeof(rows));
	return rows;
}

static void rows_set(struct cudacore *c, enum cudacore_table table, void *rows)
{
	memcpy((char *)c + cuda_tables[table].array_at, &rows, sizeof(rows));
}

void cudacore_deinit(struct cudacore *c)
{
	for (unsigned t = 0; t < CUDACORE_TABLE_COUNT; t++)
		free(rows_of(c, t));
	free(c->memory);
	corefile_problems_deinit(&c->problems);
	*c = (struct cudacore){ 0 };
}

/*
 * A table of a core is read once; without large pages, faulting its pages in takes longer than
 * reading them.
 */
static void use_large_pages(const void *rows, size_t size)
{
	uintptr_t begin = ((uintptr_t)rows + LARGE_PAGE - 1) & -LARGE_PAGE;
	uintptr_t end = ((uintptr_t)rows + size) & -LARGE_PAGE;

	if (end > begin)
		(void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

static int resize(struct cudacore *c, enum cudacore_table table, uint64_t capacity)
{
	void *rows;

	if (capacity > UINT32_MAX)
		return -ENOMEM;
	rows = reallocarray(rows_of(c, table), capacity, cuda_tables[table].row_size);
	if (!rows)
		return -ENOMEM;
	use_large_pages(rows, capacity * cuda_tables[table].row_size);
	rows_set(c, table, rows);
	c->capacity[table] = (uint32_t)capacity;
	return 0;
}

int cudacore_reserve(struct cudacore *c, enum cudacore_table table, uint32_t n)
{
	uint64_t want = (uint64_t)c->n[table] + n;

	return want > c->capacity[table] ? resize(c, table, want) : 0;
}

static void join_parent(struct cudacore *c, enum cudacore_table table, uint32_t parent)
{
	const struct cuda_table *t = &cuda_tables[table];
	struct cudacore_range range;
	char *at;

	if (t->parent == CUDA_NO_PARENT)
		return;
	assert(parent < c->n[t->parent]);
	at = (char *)cuda_row(c, t->parent, parent) + t->children;
	memcpy(&range, at, sizeof(range));
	if (range.n == 0)
		range.first = c->n[table];
	assert(range.first + range.n == c->n[table]);
	range.n++;
	memcpy(at, &range, sizeof(range));
}

void *cudacore_add(struct cudacore *c, enum cudacore_table table, uint32_t parent)
{
	const struct cuda_table *t = &cuda_tables[table];
	uint64_t have = c->capacity[table];
	char *row;

	if (c->n[table] == have && resize(c, table, have ? have + have / 2 + 1 : 4) < 0)
		return NULL;
	join_parent(c, table, parent);
	row = cuda_row(c, table, c->n[table]++);
	memset(row, 0, t->row_size);
	if (t->parent != CUDA_NO_PARENT)
		memcpy(row + t->parent_at, &parent, sizeof(parent));
	return row;
}

struct cudacore_memory *cudacore_add_memory(struct cudacore *c)
{
	if (c->n_memory == c->memory_capacity) {
		uint32_t have = c->memory_capacity, want = have ? have + have / 2 : 16;
		struct cudacore_memory *grown;

		grown = want > have ? reallocarray(c->memory, want, sizeof(*grown)) : NULL;
		if (!grown)
			return NULL;
		c->memory = grown;
		c->memory_capacity = want;
	}
	c->memory[c->n_memory] = (struct cudacore_memory){ 0 };
	return &c->memory[c->n_memory++];
}

/* @return the number of ranges that begin at or before the address. */
static uint32_t ranges_until(const struct cudacore *c, uint64_t address)
{
	uint32_t low = 0, high = c->n_memory;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (c->memory[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t cudacore_read_memory(const struct cudacore *c, uint64_t address, void *buf, size_t size)
{
	size_t done = 0;

	while (done < size) {
		uint32_t i = ranges_until(c, address + done);
		const struct cudacore_memory *m = i ? &c->memory[i - 1] : NULL;
		uint64_t offset = m ? address + done - m->address : 0;
		size_t n = size - done;

		if (!m || offset >= m->blob.size || address + done < address)
			break;
		if (m->blob.size - offset < n)
			n = (size_t)(m->blob.size - offset);
		memcpy((char *)buf + done, (const char *)m->blob.data + offset, n);
		done += n;
	}
	return done;
}

/*
 * A file may claim that a warp has a million lanes, and this is called for each of them: no more
 * than 32 are looked at.
 */
static bool has_own_exception(const struct cudacore *c, const struct cudacore_warp *w)
{
	for (uint32_t i = 0; i < w->lanes.n && i < 32; i++)
		if (c->lanes[w->lanes.first + i].exception)
			return true;
	return false;
}

uint32_t cudacore_lane_exception(const struct cudacore *c, uint32_t lane)
{
	const struct cudacore_lane *l = &c->lanes[lane];
	const struct cudacore_warp *w = &c->warps[l->warp];

	if (l->exception || !w->error_pc_valid || l->number > 31 ||
	    !(w->active_lanes & UINT32_C(1) << l->number) || has_own_exception(c, w))
		return l->exception;
	return c->sms[c->blocks[w->block].sm].exception;
}
