/* SPDX-License-Identifier: MIT */
#include "tests/unit/corefile/cudacore_population.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "corefile/cuda/layout.h"
#include "testlib.h"

#define POOL_SIZE 8192u

static const uint8_t *pool(void)
{
	static uint8_t bytes[POOL_SIZE];

	while (!bytes[0])
		for (size_t i = 0; i < POOL_SIZE; i++)
			bytes[i] = (uint8_t)test_random();
	return bytes;
}

static uint32_t below(uint32_t n)
{
	return n ? (uint32_t)(test_random() % n) : 0;
}

static struct corefile_blob bytes_of(uint32_t most, uint32_t unit)
{
	uint32_t size = below(most / unit + 1) * unit;

	return (struct corefile_blob){ .data = pool() + below(POOL_SIZE - most), .size = size };
}

static const char *some_string(void)
{
	static const char *const strings[] = { "NVIDIA H200", "GH100", "x", "",
					       "a name with \xc3\xa4 and\ttab" };

	return strings[below(TEST_COUNT(strings))];
}

/* Every number of a row; those that others depend on are set again afterwards. */
static void randomize(enum cudacore_table table, void *row)
{
	for (const struct cuda_field *f = cuda_tables[table].fields; f->count; f++) {
		char *member = (char *)row + f->member;

		for (unsigned i = 0; f->kind == CUDA_U32 && i < f->count; i++)
			((uint32_t *)(void *)member)[i] = (uint32_t)test_random();
		if (f->kind == CUDA_U64)
			*(uint64_t *)(void *)member = test_random();
		if (f->kind == CUDA_STRING)
			*(const char **)(void *)member = some_string();
	}
}

static void *add(struct cudacore *c, enum cudacore_table table, uint32_t parent)
{
	void *row = cudacore_add(c, table, parent);

	CU_ASSERT_PTR_NOT_NULL_FATAL(row);
	randomize(table, row);
	return row;
}

static void add_frames(struct cudacore *c, uint32_t lane)
{
	uint32_t n = below(4);

	c->lanes[lane].call_depth = n;
	c->lanes[lane].syscall_depth = below(n + 1);
	for (uint32_t i = 0; i < n; i++)
		((struct cudacore_frame *)add(c, CUDACORE_FRAMES, lane))->level = i;
}

static void add_lanes(struct cudacore *c, uint32_t warp)
{
	struct cudacore_warp *w = &c->warps[warp];

	w->valid_lanes = (uint32_t)test_random() | 1u << below(32);
	do
		w->active_lanes = w->valid_lanes & (uint32_t)test_random();
	while (!w->active_lanes);
	for (uint32_t i = 0; i < 32; i++) {
		struct cudacore_lane *l;

		if (!(w->valid_lanes & UINT32_C(1) << i))
			continue;
		l = add(c, CUDACORE_LANES, warp);
		l->number = i;
		l->registers = bytes_of(64, 4);
		l->predicates = bytes_of(28, 4);
		l->local = bytes_of(100, 1);
		l->local_address = l->local.size ? test_random() : 0;
		add_frames(c, c->n[CUDACORE_LANES] - 1);
	}
}

static void add_blocks(struct cudacore *c, uint32_t sm, const struct population *most)
{
	const struct cudacore_device *d = &c->devices[c->sms[sm].device];
	uint32_t n_blocks = below(most->blocks + 1), slot = 0;

	for (uint32_t i = 0; i < n_blocks; i++) {
		struct cudacore_block *b = add(c, CUDACORE_BLOCKS, sm);
		uint32_t block = c->n[CUDACORE_BLOCKS] - 1, n_warps = below(most->warps + 1);

		b->grid_id = c->grids[d->grids.first + below(d->grids.n)].id;
		b->shared = bytes_of(5000, 1);
		for (uint32_t k = 0; k < n_warps && slot < d->warps_per_sm; k++) {
			struct cudacore_warp *w = add(c, CUDACORE_WARPS, block);

			w->id = slot++;
			w->uniform_registers = bytes_of(64, 4);
			w->uniform_predicates = bytes_of(8, 4);
			w->barriers = bytes_of(16, 4);
			add_lanes(c, c->n[CUDACORE_WARPS] - 1);
		}
	}
}

static void add_grids(struct cudacore *c, uint32_t device)
{
	uint32_t n = 1 + below(3);

	for (uint32_t i = 0; i < n; i++) {
		struct cudacore_grid *g = add(c, CUDACORE_GRIDS, device);
		const struct cudacore_context *x =
			&c->contexts[c->devices[device].contexts.first];
		uint32_t n_banks = below(3);

		g->context_id = x->id;
		g->module_handle = c->modules[x->modules.first].handle;
		g->status = 2;
		g->origin = i ? below(2) : 0;
		g->parent_id = c->grids[c->devices[device].grids.first].id;
		g->params = bytes_of(200, 1);
		for (uint32_t k = 0; k < n_banks; k++)
			add(c, CUDACORE_BANKS, c->n[CUDACORE_GRIDS] - 1);
	}
}

static void add_contexts(struct cudacore *c, uint32_t device)
{
	uint32_t n = 1 + below(2);

	for (uint32_t i = 0; i < n; i++) {
		struct cudacore_context *x = add(c, CUDACORE_CONTEXTS, device);
		uint32_t n_modules = i ? below(3) : 1 + below(3);

		x->device_row = device;
		for (uint32_t k = 0; k < n_modules; k++) {
			struct cudacore_module *m =
				add(c, CUDACORE_MODULES, c->n[CUDACORE_CONTEXTS] - 1);

			m->image = bytes_of(300, 1);
			m->relocated = (struct corefile_blob){ .data = pool(), .size = 100 + k };
		}
	}
}

static void add_device(struct cudacore *c, const struct population *most)
{
	struct cudacore_device *d = add(c, CUDACORE_DEVICES, 0);
	uint32_t device = c->n[CUDACORE_DEVICES] - 1;

	d->id = device;
	d->sm_type = below(2) ? "sm_90" : "sm_103a";
	d->sm_count = below(most->sms + 1);
	d->warps_per_sm = 64;
	d->lanes_per_warp = 32;
	add_contexts(c, device);
	add_grids(c, device);
	for (uint32_t i = 0, n = d->sm_count; i < n; i++) {
		struct cudacore_sm *sm = add(c, CUDACORE_SMS, device);

		sm->id = n - 1 - i;
		add_blocks(c, c->n[CUDACORE_SMS] - 1, most);
	}
}

static void add_memory(struct cudacore *c, uint32_t most)
{
	uint64_t address = UINT64_C(0x7f0000000000);

	for (uint32_t i = 0, n = below(most + 1); i < n; i++) {
		struct cudacore_memory *m = cudacore_add_memory(c);

		CU_ASSERT_PTR_NOT_NULL_FATAL(m);
		m->blob = bytes_of(5000, 1);
		m->blob.size++;
		m->address = address;
		m->managed = below(4) == 0;
		address += m->blob.size + (below(2) ? below(100000) : 0);
	}
	/* Writers take them in any order. */
	for (uint32_t i = 1; i < c->n_memory; i++) {
		uint32_t k = below(i + 1);
		struct cudacore_memory m = c->memory[i];

		c->memory[i] = c->memory[k];
		c->memory[k] = m;
	}
}

void population_fill(struct cudacore *c, const struct population *most)
{
	*c = (struct cudacore){ 0 };
	if (below(2))
		add(c, CUDACORE_META, 0);
	for (uint32_t i = 0, n = 1 + below(most->devices); i < n; i++)
		add_device(c, most);
	add_memory(c, most->memory);
}

struct population_file population_write(const struct cudacore *c,
					const struct cudacore_write_options *o)
{
	auto_close int fd = memfd_create("core", MFD_CLOEXEC);
	struct population_file f = { 0 };
	struct corefile_problem error;
	struct cudacore_written written;
	struct stat st;
	void *p;

	CU_ASSERT_TRUE_FATAL(fd >= 0);
	TEST_EQ(cudacore_write(c, o, fd, &written, &error), 0);
	TEST_STR(error.text, "");
	TEST_EQ(written.lost, 0);
	TEST_EQ_FATAL(fstat(fd, &st), 0);
	TEST_EQ(o->zstd ? written.bytes : (uint64_t)st.st_size, written.bytes);
	f.size = (size_t)st.st_size;
	f.data = malloc(f.size);
	p = mmap(NULL, f.size, PROT_READ, MAP_PRIVATE, fd, 0);
	CU_ASSERT_TRUE_FATAL(f.data && p != MAP_FAILED);
	memcpy(f.data, p, f.size);
	munmap(p, f.size);
	return f;
}

static void compare_field(const struct cuda_field *f, uint32_t row, const char *got,
			  const char *want, bool present)
{
	static const uint8_t zeros[32];

	got += f->member;
	want += f->member;
	if (f->kind == CUDA_STRING)
		TEST_ROW_STR(row, *(const char *const *)(const void *)got,
			     present ? *(const char *const *)(const void *)want : "");
	else
		TEST_ROW_EQ(row, memcmp(got, present ? want : (const char *)zeros,
					f->kind == CUDA_U64 ? 8 : 4u * f->count), 0);
}

static void compare_blob(uint32_t row, const struct corefile_blob *got,
			 const struct corefile_blob *want, bool present)
{
	uint64_t size = present ? want->size : 0;

	TEST_ROW_EQ(row, got->size, size);
	if (size && got->size == size)
		TEST_ROW_EQ(row, memcmp(got->data, want->data, size), 0);
}

static void compare_row(enum cudacore_table table, uint32_t i, const char *got, const char *want,
			enum cudacore_layout layout)
{
	const struct cuda_table *t = &cuda_tables[table];

	for (const struct cuda_field *f = t->fields; f->count; f++)
		compare_field(f, i, got, want, f->since <= layout);
	if (t->parent != CUDA_NO_PARENT)
		TEST_ROW_EQ(i, memcmp(got + t->parent_at, want + t->parent_at, 4), 0);
	for (unsigned k = 0; k < CUDACORE_TABLE_COUNT; k++)
		if (cuda_tables[k].parent == table && cuda_tables[k].sizes[layout])
			TEST_ROW_EQ(i, memcmp(got + cuda_tables[k].children,
					      want + cuda_tables[k].children,
					      sizeof(struct cudacore_range)), 0);
	for (unsigned k = 0; k < CUDA_BLOB_COUNT; k++) {
		const struct cuda_blob *b = &cuda_blobs[k];

		if (b->parent != table)
			continue;
		compare_blob(i, (const void *)(got + b->member), (const void *)(want + b->member),
			     b->since <= layout);
		if (b->address)
			TEST_ROW_EQ(i, memcmp(got + b->address, want + b->address, 8), 0);
	}
}

static void compare_memory(const struct cudacore *got, const struct cudacore *want)
{
	uint64_t n_got = 0, n_want = 0;

	for (uint32_t i = 0; i < got->n_memory; i++)
		n_got += got->memory[i].blob.size;
	for (uint32_t i = 0; i < want->n_memory; i++) {
		const struct cudacore_memory *m = &want->memory[i];
		auto_free uint8_t *buf = malloc(m->blob.size);

		n_want += m->blob.size;
		TEST_ROW_EQ(i, cudacore_read_memory(got, m->address, buf, m->blob.size),
			    m->blob.size);
		TEST_ROW_EQ(i, memcmp(buf, m->blob.data, m->blob.size), 0);
	}
	TEST_EQ(n_got, n_want);
}

void population_compare(const struct cudacore *got, const struct cudacore *want,
			enum cudacore_layout layout)
{
	for (unsigned t = 0; t < CUDACORE_TABLE_COUNT; t++) {
		if (!cuda_tables[t].sizes[layout]) {
			TEST_ROW_EQ(t, got->n[t], 0);
			continue;
		}
		TEST_ROW_EQ(t, got->n[t], want->n[t]);
		for (uint32_t i = 0; got->n[t] == want->n[t] && i < got->n[t]; i++) {
			const char *row = cuda_row(got, t, i);

			compare_row(t, i, row, cuda_row(want, t, i), layout);
			CU_ASSERT_TRUE(((const uint8_t *)row)[cuda_tables[t].age_at] >= layout);
		}
	}
	compare_memory(got, want);
}
