/* SPDX-License-Identifier: MIT */
/* More sections than 16 bits count, and a whole GPU in bounded memory. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "corefile/cuda_read.h"
#include "corefile/cuda_write.h"
#include "corefile/elf_read.h"
#include "corefile/file.h"
#include "testlib.h"

/* One GPU of the largest kind, every slot taken. */
#define SMS	  132u
#define WARPS	  64u
#define LANES	  32u
#define REGISTERS 64u
#define FRAMES	  2u
#define LIMIT_KIB (400l << 10)

static void add_device(struct cudacore *c)
{
	struct cudacore_device *d = cudacore_add(c, CUDACORE_DEVICES, 0);

	*d = (struct cudacore_device){ .name = "full", .type = "GH100", .sm_type = "sm_90",
				       .sm_count = SMS, .warps_per_sm = WARPS,
				       .lanes_per_warp = LANES };
}

/* Exactly so many sections: single bytes of memory fill them up. */
static struct cudacore core_of_sections(uint32_t n)
{
	/* Section 0, devices, contexts, SMs, grids, two string tables. */
	static const uint32_t fixed = 7;
	struct cudacore c = { 0 };

	add_device(&c);
	c.devices[0].sm_count = 0;
	for (uint32_t i = fixed; i < n; i++)
		*cudacore_add_memory(&c) = (struct cudacore_memory){
			.address = 16 * i, .blob = { .data = "x", .size = 1 } };
	return c;
}

static void counts_beyond_sixteen_bits(void)
{
	static const struct {
		uint32_t sections, shnum, shstrndx, size0, link0;
	} rows[] = {
		{ 0xfeff, 0xfeff, 0xfefe, 0, 0 },
		{ 0xff00, 0, 0xfeff, 0xff00, 0 },
		{ 0xff01, 0, 0xffff, 0xff01, 0xff00 },
		{ 70000, 0, 0xffff, 70000, 69999 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct cudacore c = core_of_sections(rows[i].sections), got;
		auto_close int fd = memfd_create("core", MFD_CLOEXEC);
		struct cudacore_written written;
		Elf64_Ehdr header;
		Elf64_Shdr first;
		void *p;

		TEST_EQ_FATAL(cudacore_write(&c, &(struct cudacore_write_options){ 0 }, fd,
					     &written, NULL), 0);
		TEST_ROW_EQ(i, written.sections, rows[i].sections);
		p = mmap(NULL, written.bytes, PROT_READ, MAP_PRIVATE, fd, 0);
		CU_ASSERT_TRUE_FATAL(p != MAP_FAILED);
		memcpy(&header, p, sizeof(header));
		memcpy(&first, (char *)p + header.e_shoff, sizeof(first));
		TEST_ROW_EQ(i, header.e_shnum, rows[i].shnum);
		TEST_ROW_EQ(i, header.e_shstrndx, rows[i].shstrndx);
		TEST_ROW_EQ(i, first.sh_size, rows[i].size0);
		TEST_ROW_EQ(i, first.sh_link, rows[i].link0);
		TEST_EQ_FATAL(cudacore_read(p, written.bytes, &got, NULL), 0);
		TEST_ROW_EQ(i, got.problems.total, 0);
		TEST_ROW_EQ(i, got.n_memory, c.n_memory);
		TEST_ROW_STR(i, got.devices[0].name, "full");
		cudacore_deinit(&got);
		cudacore_deinit(&c);
		munmap(p, written.bytes);
	}
}

static uint64_t pc_of(uint32_t lane)
{
	return UINT64_C(0x7f0000000000) + lane * 16;
}

static uint32_t register_of(uint64_t lane, uint32_t i)
{
	return (uint32_t)(lane * 2654435761u + i);
}

static ssize_t give_registers(void *arg, uint64_t key, uint64_t offset, void *buf, size_t size)
{
	uint32_t *to = buf;

	for (size_t i = 0; i < size / 4; i++)
		to[i] = register_of(key, (uint32_t)(offset / 4 + i));
	return (ssize_t)size;
}

static void add_lanes(struct cudacore *c, uint32_t warp)
{
	for (uint32_t i = 0; i < LANES; i++) {
		struct cudacore_lane *l = cudacore_add(c, CUDACORE_LANES, warp);
		uint32_t lane = c->n[CUDACORE_LANES] - 1;

		l->number = l->thread[0] = i;
		l->virtual_pc = pc_of(lane);
		l->registers = (struct corefile_blob){ .key = lane, .size = 4 * REGISTERS };
		l->predicates = (struct corefile_blob){ .data = "\0\0\0\0\1\0\0\0", .size = 8 };
		l->call_depth = FRAMES;
		for (uint32_t k = 0; k < FRAMES; k++) {
			struct cudacore_frame *f = cudacore_add(c, CUDACORE_FRAMES, lane);

			f->level = k;
		}
	}
}

static struct cudacore full_gpu(void)
{
	struct cudacore c = { 0 };

	add_device(&c);
	((struct cudacore_context *)cudacore_add(&c, CUDACORE_CONTEXTS, 0))->id = 1;
	((struct cudacore_module *)cudacore_add(&c, CUDACORE_MODULES, 0))->relocated =
		(struct corefile_blob){ .data = "code", .size = 4 };
	*(struct cudacore_grid *)cudacore_add(&c, CUDACORE_GRIDS, 0) =
		(struct cudacore_grid){ .id = 3, .context_id = 1, .status = 2 };
	cudacore_reserve(&c, CUDACORE_LANES, SMS * WARPS * LANES);
	cudacore_reserve(&c, CUDACORE_FRAMES, SMS * WARPS * LANES * FRAMES);
	for (uint32_t i = 0; i < SMS; i++) {
		((struct cudacore_sm *)cudacore_add(&c, CUDACORE_SMS, 0))->id = i;
		((struct cudacore_block *)cudacore_add(&c, CUDACORE_BLOCKS, i))->grid_id = 3;
		for (uint32_t k = 0; k < WARPS; k++) {
			struct cudacore_warp *w = cudacore_add(&c, CUDACORE_WARPS, i);

			w->id = k;
			w->valid_lanes = w->active_lanes = UINT32_MAX;
			add_lanes(&c, c.n[CUDACORE_WARPS] - 1);
		}
	}
	return c;
}

static int write_full(int fd)
{
	struct corefile_source source = { .fetch = give_registers };
	struct cudacore_write_options o = { .source = &source };
	struct cudacore_written written;
	struct cudacore c = full_gpu();
	int r = cudacore_write(&c, &o, fd, &written, NULL);

	cudacore_deinit(&c);
	/* Per lane: registers, predicates, call stack; tables above them. */
	if (r == 0 && written.sections < 3 * SMS * WARPS * LANES)
		return 2;
	return r == 0 && written.unread.total == 0 ? 0 : 1;
}

static int analyse_full(int fd)
{
	struct corefile_map map;
	struct cudacore c;
	int bad = 0;

	if (corefile_map_open(fd, -1, 0, &map) < 0 ||
	    cudacore_read(map.data, map.size, &c, NULL) < 0)
		return 1;
	bad |= c.problems.total != 0 || c.n[CUDACORE_LANES] != SMS * WARPS * LANES ||
	       c.n[CUDACORE_FRAMES] != SMS * WARPS * LANES * FRAMES;
	for (uint32_t i = 0; i < c.n[CUDACORE_LANES]; i++)
		bad |= c.lanes[i].virtual_pc != pc_of(i) || cudacore_lane_exception(&c, i) ||
		       c.lanes[i].registers.size != 4 * REGISTERS;
	for (uint32_t i = 0; i < c.n[CUDACORE_LANES]; i += 4999) {
		const uint32_t *registers = c.lanes[i].registers.data;

		for (uint32_t k = 0; k < REGISTERS; k++)
			bad |= registers[k] != register_of(i, k);
	}
	cudacore_deinit(&c);
	corefile_map_close(&map);
	return bad ? 2 : 0;
}

/* In a process of its own, so that the high-water mark is its own. */
static void run_bounded(const char *what, int (*work)(int fd), int fd)
{
	uint64_t start = clock_now_ns();
	struct rusage usage;
	int status;
	pid_t pid = fork();

	CU_ASSERT_TRUE_FATAL(pid >= 0);
	if (pid == 0)
		_exit(work(fd));
	TEST_EQ_FATAL(wait4(pid, &status, 0, &usage), pid);
	TEST_EQ(status, 0);
	printf("%s: %ld MiB resident, %llu ms\n", what, usage.ru_maxrss >> 10,
	       (unsigned long long)(clock_now_ns() - start) / 1000000);
	CU_ASSERT_TRUE(usage.ru_maxrss < LIMIT_KIB);
}

/* 270,336 lanes with registers and two callers each. */
static void full_gpu_within_400_mib(void)
{
	auto_close int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0) {
		test_skip("no unnamed file in /tmp");
		return;
	}
	run_bounded("write", write_full, fd);
	run_bounded("analyse", analyse_full, fd);
}

/* Each of very many rows names the last of as many others: that is found, or missed, in no time. */
static void many_rows_are_checked_at_once(void)
{
	enum { N = 200000 };
	struct corefile_problem problem;
	struct cudacore c = { 0 };
	uint64_t began;

	add_device(&c);
	c.devices[0].sm_count = 1;
	for (uint32_t i = 0; i < N; i++)
		((struct cudacore_context *)cudacore_add(&c, CUDACORE_CONTEXTS, 0))->id = i;
	for (uint32_t i = 0; i < N; i++)
		*(struct cudacore_module *)cudacore_add(&c, CUDACORE_MODULES, N - 1) =
			(struct cudacore_module){ .handle = i, .context = N - 1,
						  .relocated = { .data = "code", .size = 4 } };
	for (uint32_t i = 0; i < N; i++)
		*(struct cudacore_grid *)cudacore_add(&c, CUDACORE_GRIDS, 0) = (struct cudacore_grid){
			.id = i, .context_id = N - 1, .module_handle = N - 1, .status = 2,
			.origin = 1, .parent_id = N - 1 };
	cudacore_add(&c, CUDACORE_SMS, 0);
	for (uint32_t i = 0; i < N; i++)
		((struct cudacore_block *)cudacore_add(&c, CUDACORE_BLOCKS, 0))->grid_id = N - 1;
	began = clock_now_ns();
	TEST_EQ(cudacore_check(&c, &problem), 0);
	/* Row by row it would be minutes. */
	CU_ASSERT_TRUE(clock_now_ns() - began < UINT64_C(10000000000));
	c.blocks[N - 1].grid_id = N;
	TEST_EQ(cudacore_check(&c, &problem), -EINVAL);
	TEST_EQ(problem.offset, N - 1);
	/* Of contexts with the same id the first counts. */
	c.blocks[N - 1].grid_id = 0;
	c.contexts[0].id = N - 1;
	TEST_EQ(cudacore_check(&c, &problem), -EINVAL);
	TEST_STR(problem.text, "grid 0: no module 0x30d3f with a relocated image in its context");
	cudacore_deinit(&c);
}

TEST_SUITE(corefile_cuda_scale, TEST(many_rows_are_checked_at_once), TEST(counts_beyond_sixteen_bits), TEST(full_gpu_within_400_mib));
