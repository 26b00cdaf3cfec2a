/* SPDX-License-Identifier: MIT */
#include "tests/unit/corefile/cudacore_full.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "testlib.h"

/* Of what is measured here, freed memory that the sanitizer keeps would be most. */
__attribute__((used, visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=32";
}

void cudacore_full_add_device(struct cudacore *c)
{
	struct cudacore_device *d = cudacore_add(c, CUDACORE_DEVICES, 0);

	*d = (struct cudacore_device){ .name = "full", .type = "GH100", .sm_type = "sm_90",
				       .sm_count = FULL_SMS, .warps_per_sm = FULL_WARPS,
				       .lanes_per_warp = FULL_LANES };
}

uint64_t cudacore_full_pc(uint32_t lane)
{
	return UINT64_C(0x7f0000000000) + lane * 16;
}

uint32_t cudacore_full_register(uint64_t lane, uint32_t i)
{
	return (uint32_t)(lane * 2654435761u + i);
}

static ssize_t give_registers(void *arg, uint64_t key, uint64_t offset, void *buf, size_t size)
{
	uint32_t *to = buf;

	for (size_t i = 0; i < size / 4; i++)
		to[i] = cudacore_full_register(key, (uint32_t)(offset / 4 + i));
	return (ssize_t)size;
}

static void add_lanes(struct cudacore *c, uint32_t warp)
{
	for (uint32_t i = 0; i < FULL_LANES; i++) {
		struct cudacore_lane *l = cudacore_add(c, CUDACORE_LANES, warp);
		uint32_t lane = c->n[CUDACORE_LANES] - 1;

		l->number = l->thread[0] = i;
		l->virtual_pc = cudacore_full_pc(lane);
		l->registers = (struct corefile_blob){ .key = lane, .size = 4 * FULL_REGISTERS };
		l->predicates = (struct corefile_blob){ .data = "\0\0\0\0\1\0\0\0", .size = 8 };
		l->call_depth = FULL_FRAMES;
		for (uint32_t k = 0; k < FULL_FRAMES; k++) {
			struct cudacore_frame *f = cudacore_add(c, CUDACORE_FRAMES, lane);

			f->level = k;
		}
	}
}

static struct cudacore full_gpu(void)
{
	struct cudacore c = { 0 };

	cudacore_full_add_device(&c);
	((struct cudacore_context *)cudacore_add(&c, CUDACORE_CONTEXTS, 0))->id = 1;
	((struct cudacore_module *)cudacore_add(&c, CUDACORE_MODULES, 0))->relocated =
		(struct corefile_blob){ .data = "code", .size = 4 };
	*(struct cudacore_grid *)cudacore_add(&c, CUDACORE_GRIDS, 0) =
		(struct cudacore_grid){ .id = 3, .context_id = 1, .status = 2 };
	cudacore_reserve(&c, CUDACORE_LANES, FULL_LANES_ALL);
	cudacore_reserve(&c, CUDACORE_FRAMES, FULL_LANES_ALL * FULL_FRAMES);
	for (uint32_t i = 0; i < FULL_SMS; i++) {
		((struct cudacore_sm *)cudacore_add(&c, CUDACORE_SMS, 0))->id = i;
		((struct cudacore_block *)cudacore_add(&c, CUDACORE_BLOCKS, i))->grid_id = 3;
		for (uint32_t k = 0; k < FULL_WARPS; k++) {
			struct cudacore_warp *w = cudacore_add(&c, CUDACORE_WARPS, i);

			w->id = k;
			w->valid_lanes = w->active_lanes = UINT32_MAX;
			add_lanes(&c, c.n[CUDACORE_WARPS] - 1);
		}
	}
	return c;
}

int cudacore_full_write(int fd, struct cudacore_written *ret)
{
	struct corefile_source source = { .fetch = give_registers };
	struct cudacore_write_options o = { .source = &source };
	struct cudacore c = full_gpu();
	int r = cudacore_write(&c, &o, fd, ret, NULL);

	cudacore_deinit(&c);
	return r;
}

void cudacore_full_run(const char *what, int (*work)(int fd), int fd)
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
	CU_ASSERT_TRUE(usage.ru_maxrss < FULL_LIMIT_KIB);
}
