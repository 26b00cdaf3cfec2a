/* SPDX-License-Identifier: MIT */
/* What is written is what is read; a core that debuggers cannot bear is refused. */
#include <fcntl.h>
#include <sys/mman.h>

#include "corefile/cuda/layout.h"
#include "corefile/cuda/read.h"
#include "corefile/compress.h"
#include "tests/unit/corefile/cudacore_population.h"
#include "testlib.h"

#define ROUNDS 40

/* The same bytes, whatever is asked for first; and where they lie, for those that are at hand. */
static void read_in_pieces(const struct cudacore *c, enum cudacore_layout layout,
			   const struct population_file *f)
{
	auto_free uint8_t *piece = malloc(f->size);
	struct cudacore_image *image;

	TEST_EQ_FATAL(cudacore_image_create(c, layout, NULL, &image, NULL), 0);
	TEST_EQ_FATAL(cudacore_image_size(image), f->size);
	for (unsigned i = 0; i < 50; i++) {
		uint64_t at = test_random() % f->size, n = test_random() % f->size, size = 0;
		uint64_t left = f->size - at, lost = 0;
		const void *data = cudacore_image_at(image, at, &size);

		TEST_EQ_FATAL(cudacore_image_read(image, at, piece, n, &lost), n < left ? n : left);
		TEST_EQ(memcmp(piece, f->data + at, n < left ? n : left), 0);
		TEST_EQ(lost, 0);
		CU_ASSERT_TRUE_FATAL(!data || (size && size <= left));
		TEST_EQ(data ? memcmp(data, f->data + at, size) : 0, 0);
	}
	TEST_EQ(cudacore_image_read(image, f->size, piece, 1, NULL), 0);
	cudacore_image_destroy(image);
}

static void round_trip(const struct cudacore *want, enum cudacore_layout layout)
{
	struct cudacore_write_options o = { .layout = layout };
	struct population_file f = population_write(want, &o);
	uint8_t *data = test_tail_dup(f.data, f.size);
	struct corefile_problem error;
	struct cudacore got;

	read_in_pieces(want, layout, &f);
	TEST_EQ_FATAL(cudacore_read(data, f.size, &got, &error), 0);
	TEST_EQ(got.problems.total, 0);
	if (got.problems.n)
		TEST_STR(got.problems.list[0].text, "");
	population_compare(&got, want, layout ? layout : CUDACORE_LAYOUT_R575);
	cudacore_deinit(&got);
	free(f.data);
}

/* Random populations in the default layout. */
static void what_is_written_is_read(void)
{
	static const struct population most = { 2, 4, 3, 3, 12 };

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct cudacore c;

		population_fill(&c, &most);
		TEST_EQ(cudacore_check(&c, NULL), 0);
		round_trip(&c, CUDACORE_LAYOUT_DEFAULT);
		cudacore_deinit(&c);
	}
}

/* The same population written by drivers of every age. */
static void every_layout_keeps_its_fields(void)
{
	static const struct population most = { 2, 3, 2, 2, 3 };

	for (unsigned layout = CUDACORE_LAYOUT_R346; layout < CUDACORE_LAYOUT_COUNT; layout++) {
		struct cudacore c;

		population_fill(&c, &most);
		round_trip(&c, layout);
		cudacore_deinit(&c);
	}
}

/* An idle device: no context, no grid, all SMs empty. */
static void idle_device(void)
{
	struct cudacore c = { 0 };
	struct cudacore_device *d = cudacore_add(&c, CUDACORE_DEVICES, 0);

	d->name = "idle";
	d->type = "GH100";
	d->sm_type = "sm_90";
	d->sm_count = 2;
	for (uint32_t i = 0; i < 2; i++)
		((struct cudacore_sm *)cudacore_add(&c, CUDACORE_SMS, 0))->id = i;
	for (uint32_t i = 0; i < 2; i++)
		c.sms[i].exception_text = "";
	round_trip(&c, CUDACORE_LAYOUT_DEFAULT);
	cudacore_deinit(&c);
}

static ssize_t give(void *arg, uint64_t key, uint64_t offset, void *buf, size_t size)
{
	uint64_t readable = *(uint64_t *)arg;

	if (offset >= readable)
		return -EFAULT;
	size = readable - offset < size ? (size_t)(readable - offset) : size;
	memset(buf, (int)key, size);
	return (ssize_t)size;
}

/* One device without SMs and a range that is fetched piece by piece. */
static struct cudacore core_with_memory(uint64_t size)
{
	struct cudacore c = { 0 };
	struct cudacore_device *d = cudacore_add(&c, CUDACORE_DEVICES, 0);
	struct cudacore_memory *m = cudacore_add_memory(&c);

	d->name = d->type = d->sm_type = "sm_90";
	m->address = 0x10000;
	m->blob = (struct corefile_blob){ .key = 0x5a, .size = size };
	return c;
}

static struct cudacore_written write_fetched(const struct cudacore *c, uint64_t readable,
					     struct population_file *ret)
{
	struct corefile_source source = { .fetch = give, .arg = &readable };
	struct cudacore_write_options o = { .source = &source };
	auto_close int fd = memfd_create("core", MFD_CLOEXEC);
	struct cudacore_written written;

	TEST_EQ(cudacore_write(c, &o, fd, &written, NULL), 0);
	ret->data = malloc(written.bytes);
	ret->size = written.bytes;
	TEST_EQ(pread(fd, ret->data, ret->size, 0), ret->size);
	return written;
}

/* The source gives all. */
static void fetched_bytes_arrive(void)
{
	struct cudacore c = core_with_memory(3 << 20), got;
	struct population_file f;
	struct cudacore_written written = write_fetched(&c, UINT64_MAX, &f);
	uint8_t last[2] = { 0 };

	TEST_EQ(written.lost, 0);
	TEST_EQ_FATAL(cudacore_read(f.data, f.size, &got, NULL), 0);
	TEST_EQ_FATAL(got.n_memory, 1);
	TEST_EQ(got.memory[0].blob.size, 3 << 20);
	TEST_EQ(cudacore_read_memory(&got, 0x10000 + (3 << 20) - 1, last, 2), 1);
	TEST_EQ(last[0], 0x5a);
	cudacore_deinit(&got);
	cudacore_deinit(&c);
	free(f.data);
}

/* What cannot be read is not there; nobody finds zeros in its place. */
static void unreadable_end_is_cut(void)
{
	struct cudacore c = core_with_memory(3 << 20), got;
	struct population_file f;
	struct cudacore_written written = write_fetched(&c, 0x123456, &f);

	TEST_EQ(written.lost, (3 << 20) - 0x123456);
	TEST_EQ_FATAL(cudacore_read(f.data, f.size, &got, NULL), 0);
	TEST_EQ(got.problems.total, 0);
	TEST_EQ(got.memory[0].blob.size, 0x123456);
	cudacore_deinit(&got);
	cudacore_deinit(&c);
	free(f.data);
}

/* Neighbours become one section, for debuggers read within one only. */
static void neighbours_are_merged(void)
{
	static const uint8_t bytes[32] = { 1, 2, 3 };
	static const struct { uint64_t address; uint32_t size; bool managed; } rows[] = {
		{ 0x3000, 16, false }, { 0x1010, 32, false }, { 0x1000, 16, false },
		{ 0x1030, 8, true }, { 0x1038, 8, false },
	};
	struct cudacore c = core_with_memory(0), got;
	struct population_file f;

	c.n_memory = 0;
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct cudacore_memory *m = cudacore_add_memory(&c);

		*m = (struct cudacore_memory){ .address = rows[i].address,
					       .managed = rows[i].managed,
					       .blob = { .data = bytes, .size = rows[i].size } };
	}
	f = population_write(&c, &(struct cudacore_write_options){ 0 });
	TEST_EQ_FATAL(cudacore_read(f.data, f.size, &got, NULL), 0);
	TEST_EQ_FATAL(got.n_memory, 4);
	TEST_EQ(got.memory[0].blob.size, 48);
	TEST_EQ(got.memory[1].managed, true);
	TEST_EQ(got.memory[2].address, 0x1038);
	TEST_EQ(got.memory[3].address, 0x3000);
	cudacore_deinit(&got);
	cudacore_deinit(&c);
	free(f.data);
}

/* A zstd core is the same file, compressed. */
static void compressed_core_expands_to_the_same(void)
{
	static const struct population most = { 1, 4, 3, 3, 12 };
	auto_close int out = memfd_create("expanded", MFD_CLOEXEC);
	struct population_file plain, packed;
	auto_free uint8_t *expanded = NULL;
	struct corefile_problem error;
	struct cudacore c, got;
	uint64_t at;

	population_fill(&c, &most);
	plain = population_write(&c, &(struct cudacore_write_options){ 0 });
	packed = population_write(&c, &(struct cudacore_write_options){ .zstd = true });
	CU_ASSERT_TRUE(packed.size < plain.size);
	TEST_EQ(cudacore_read(packed.data, packed.size, &got, &error), -ENOEXEC);
	TEST_STR(error.text, "compressed with zstd: expand it with unzstd first");
	TEST_EQ(corefile_decompress(packed.data, packed.size, out, plain.size - 1, &at), -EFBIG);
	TEST_EQ(ftruncate(out, 0), 0);
	TEST_EQ(lseek(out, 0, SEEK_SET), 0);
	TEST_EQ(corefile_decompress(packed.data, packed.size, out, plain.size, &at), 0);
	expanded = malloc(plain.size);
	TEST_EQ(pread(out, expanded, plain.size, 0), plain.size);
	TEST_EQ(memcmp(expanded, plain.data, plain.size), 0);
	for (size_t cut = 0; cut < packed.size; cut += 1 + packed.size / 50)
		TEST_ROW_EQ(cut, corefile_decompress(packed.data, cut, out, UINT64_MAX, &at), -EBADMSG);
	cudacore_deinit(&c);
	free(plain.data);
	free(packed.data);
}

/* Each way to spoil a sound core, and what is said about it. */
static void spoil_device_id(struct cudacore *c) { c->devices[0].id = 7; }
static void spoil_name(struct cudacore *c) { c->devices[0].name = NULL; }
static void spoil_sm_type(struct cudacore *c) { c->devices[0].sm_type = "90"; }
static void spoil_slots(struct cudacore *c) { c->devices[0].warps_per_sm = 65; }
static void spoil_sm_count(struct cudacore *c) { c->devices[0].sm_count++; }
static void spoil_sm_id(struct cudacore *c) { c->sms[0].id = c->sms[1].id; }
static void spoil_sm_high(struct cudacore *c) { c->sms[0].id = 99; }
static void spoil_context(struct cudacore *c) { c->contexts[0].device_row = 1; }
static void spoil_grid_context(struct cudacore *c) { c->grids[0].context_id++; }
static void spoil_module(struct cudacore *c) { c->modules[0].relocated.size = 0; }
static void spoil_status(struct cudacore *c) { c->grids[0].status = 0; }
static void spoil_parent(struct cudacore *c) { c->grids[0].origin = 1; c->grids[0].parent_id = 1; }
static void spoil_grid(struct cudacore *c) { c->blocks[0].grid_id++; }
static void spoil_slot(struct cudacore *c) { c->warps[0].id = 64; }
static void spoil_twice(struct cudacore *c) { c->warps[1].id = c->warps[0].id; }
static void spoil_valid(struct cudacore *c) { c->warps[0].valid_lanes = 3; }
static void spoil_active(struct cudacore *c) { c->warps[0].active_lanes = 0; }
static void spoil_more(struct cudacore *c) { c->warps[0].active_lanes = 3; }
static void spoil_lane(struct cudacore *c) { c->lanes[0].number = 32; }
static void spoil_depth(struct cudacore *c) { c->lanes[0].call_depth = 2; }
static void spoil_level(struct cudacore *c) { c->frames[0].level = 1; }
static void spoil_memory(struct cudacore *c) { c->memory[0].blob.size = 17; }
static void spoil_end(struct cudacore *c) { c->memory[1].address = UINT64_MAX - 4; }
static void spoil_all(struct cudacore *c) { c->n[CUDACORE_DEVICES] = 0; }

static struct cudacore small_core(void)
{
	static const uint8_t bytes[64];
	struct cudacore c = core_with_memory(0);

	c.memory[0].blob = (struct corefile_blob){ .data = bytes, .size = 16 };
	*cudacore_add_memory(&c) = (struct cudacore_memory){
		.address = 0x10010, .blob = { .data = bytes, .size = 16 } };
	c.devices[0].sm_count = 2;
	c.devices[0].warps_per_sm = 64;
	c.devices[0].lanes_per_warp = 32;
	((struct cudacore_context *)cudacore_add(&c, CUDACORE_CONTEXTS, 0))->id = 5;
	((struct cudacore_module *)cudacore_add(&c, CUDACORE_MODULES, 0))->handle = 6;
	c.modules[0].relocated = (struct corefile_blob){ .data = bytes, .size = 64 };
	*(struct cudacore_grid *)cudacore_add(&c, CUDACORE_GRIDS, 0) = (struct cudacore_grid){
		.id = 9, .context_id = 5, .module_handle = 6, .status = 2 };
	cudacore_add(&c, CUDACORE_SMS, 0);
	((struct cudacore_sm *)cudacore_add(&c, CUDACORE_SMS, 0))->id = 1;
	((struct cudacore_block *)cudacore_add(&c, CUDACORE_BLOCKS, 0))->grid_id = 9;
	for (uint32_t i = 0; i < 2; i++) {
		struct cudacore_warp *w = cudacore_add(&c, CUDACORE_WARPS, 0);

		w->id = i;
		w->valid_lanes = w->active_lanes = 1;
		((struct cudacore_lane *)cudacore_add(&c, CUDACORE_LANES, i))->call_depth = 1;
		cudacore_add(&c, CUDACORE_FRAMES, i);
	}
	return c;
}

static void refuses_what_debuggers_cannot_bear(void)
{
	static const struct {
		void (*spoil)(struct cudacore *c);
		const char *text;
	} rows[] = {
		{ spoil_device_id, "device 0 has the number 7" },
		{ spoil_name, "device 0 lacks a name, type or sm_NN" },
		{ spoil_sm_type, "device 0 lacks a name, type or sm_NN" },
		{ spoil_slots, "device 0: 65 warps per SM, 32 lanes per warp" },
		{ spoil_sm_count, "device 0 has 3 SMs but 2 rows for them" },
		{ spoil_sm_id, "SM number 1 of device 0 comes twice" },
		{ spoil_sm_high, "SM number 99 of device 0 is too high" },
		{ spoil_context, "context of device 0 says device 1" },
		{ spoil_grid_context, "grid 9: no context 0x6 on its device" },
		{ spoil_module, "grid 9: no module 0x6 with a relocated image in its context" },
		{ spoil_status, "grid 9 has no status" },
		{ spoil_parent, "grid 9: no parent grid 1" },
		{ spoil_grid, "block of grid 10, which is not there" },
		{ spoil_slot, "warp 64 of SM 0 comes twice or is too high" },
		{ spoil_twice, "warp 0 of SM 0 comes twice or is too high" },
		{ spoil_valid, "warp 0: valid lanes 0x3, but rows for 0x1" },
		{ spoil_active, "warp 0: active lanes 0x0 of valid 0x1" },
		{ spoil_more, "warp 0: active lanes 0x3 of valid 0x1" },
		{ spoil_lane, "lane 32 of warp 0 comes twice or is too high" },
		{ spoil_depth, "1 frames for call depth 2, 0 of them syscalls" },
		{ spoil_level, "frame of level 1 in place of 0" },
		{ spoil_memory, "memory at 0x10000 runs into what follows" },
		{ spoil_end, "memory at 0xfffffffffffffffb runs into what follows" },
		{ spoil_all, "no device" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_close int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
		struct cudacore c = small_core();
		struct corefile_problem error;

		TEST_ROW_EQ(i, cudacore_write(&c, &(struct cudacore_write_options){ 0 }, fd, NULL,
					      &error), 0);
		rows[i].spoil(&c);
		TEST_ROW_EQ(i, cudacore_write(&c, &(struct cudacore_write_options){ 0 }, fd, NULL,
					      &error), -EINVAL);
		TEST_ROW_STR(i, error.text, rows[i].text);
		cudacore_deinit(&c);
	}
}

/* A lane without an exception of its own has that of its SM, if its warp stopped with an error. */
static void exception_of_a_lane(void)
{
	struct cudacore c = small_core();

	c.sms[0].exception = 14;
	TEST_EQ(cudacore_lane_exception(&c, 0), 0);
	c.warps[0].error_pc_valid = 1;
	TEST_EQ(cudacore_lane_exception(&c, 0), 14);
	TEST_EQ(cudacore_lane_exception(&c, 1), 0);
	c.lanes[0].exception = 5;
	TEST_EQ(cudacore_lane_exception(&c, 0), 5);
	c.lanes[0].exception = 0;
	c.warps[0].active_lanes = 2;
	TEST_EQ(cudacore_lane_exception(&c, 0), 0);
	cudacore_deinit(&c);
}

/* The record sizes that were seen with each driver branch (docs/COREFILES.md). */
static void record_sizes(void)
{
	for (unsigned t = 0; t < CUDACORE_TABLE_COUNT; t++) {
		const struct cuda_field *f = cuda_tables[t].fields;

		for (; f->count; f++)
			for (unsigned l = f->since; l < CUDACORE_LAYOUT_COUNT; l++)
				CU_ASSERT_TRUE(f->at + (f->kind == CUDA_U32 ? 4u * f->count : 8u) <=
					       cuda_tables[t].sizes[l]);
	}
}

TEST_SUITE(corefile_cuda_roundtrip, TEST(what_is_written_is_read),
	   TEST(every_layout_keeps_its_fields), TEST(idle_device), TEST(fetched_bytes_arrive),
	   TEST(unreadable_end_is_cut), TEST(neighbours_are_merged),
	   TEST(compressed_core_expands_to_the_same), TEST(refuses_what_debuggers_cannot_bear),
	   TEST(exception_of_a_lane), TEST(record_sizes));
