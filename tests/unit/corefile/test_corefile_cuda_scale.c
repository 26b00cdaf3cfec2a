/* SPDX-License-Identifier: MIT */
/* More sections than 16 bits count, and a whole GPU in bounded memory. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "corefile/cuda/read.h"
#include "corefile/cuda/write.h"
#include "corefile/elf_read.h"
#include "corefile/file.h"
#include "tests/unit/corefile/cudacore_full.h"
#include "testlib.h"

/* Exactly so many sections: single bytes of memory fill them up. */
static struct cudacore core_of_sections(uint32_t n)
{
	/* Section 0, devices, contexts, SMs, grids, two string tables. */
	static const uint32_t fixed = 7;
	struct cudacore c = { 0 };

	cudacore_full_add_device(&c);
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

static int write_full(int fd)
{
	struct cudacore_written written;
	int r = cudacore_full_write(fd, &written);

	/* Per lane: registers, predicates, call stack; tables above them. */
	if (r == 0 && written.sections < 3 * FULL_LANES_ALL)
		return 2;
	return r == 0 && written.lost == 0 ? 0 : 1;
}

static int analyse_full(int fd)
{
	struct corefile_map map;
	struct cudacore c;
	int bad = 0;

	if (corefile_map_open(fd, -1, 0, &map) < 0 ||
	    cudacore_read(map.data, map.size, &c, NULL) < 0)
		return 1;
	bad |= c.problems.total != 0 || c.n[CUDACORE_LANES] != FULL_LANES_ALL ||
	       c.n[CUDACORE_FRAMES] != FULL_LANES_ALL * FULL_FRAMES;
	for (uint32_t i = 0; i < c.n[CUDACORE_LANES]; i++)
		bad |= c.lanes[i].virtual_pc != cudacore_full_pc(i) || cudacore_lane_exception(&c, i) ||
		       c.lanes[i].registers.size != 4 * FULL_REGISTERS;
	for (uint32_t i = 0; i < c.n[CUDACORE_LANES]; i += 4999) {
		const uint32_t *registers = c.lanes[i].registers.data;

		for (uint32_t k = 0; k < FULL_REGISTERS; k++)
			bad |= registers[k] != cudacore_full_register(i, k);
	}
	cudacore_deinit(&c);
	corefile_map_close(&map);
	return bad ? 2 : 0;
}

/* 270,336 lanes with registers and two callers each. */
static void full_gpu_within_400_mib(void)
{
	auto_close int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0) {
		test_skip("no unnamed file in /tmp");
		return;
	}
	cudacore_full_run("write", write_full, fd);
	cudacore_full_run("analyse", analyse_full, fd);
}

/* Each of very many rows names the last of as many others: that is found, or missed, in no time. */
static void many_rows_are_checked_at_once(void)
{
	enum { N = 200000 };
	struct corefile_problem problem;
	struct cudacore c = { 0 };
	uint64_t began;

	cudacore_full_add_device(&c);
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
	began = test_cpu_ns();
	TEST_EQ(cudacore_check(&c, &problem), 0);
	/* Row by row it would be minutes. */
	CU_ASSERT_TRUE(test_cpu_ns() - began < UINT64_C(10000000000));
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

TEST_SUITE(corefile_cuda_scale, TEST(counts_beyond_sixteen_bits), TEST(full_gpu_within_400_mib),
	   TEST(many_rows_are_checked_at_once));
