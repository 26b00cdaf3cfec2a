/* SPDX-License-Identifier: MIT */
/* Reading communicators of NCCL's kernels: how much is read, and what is told where that does not last. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/nccl/nccl.h"
#include "base/clock.h"
#include "testlib.h"

#define COMM	 UINT64_C(0x7f5c00000000)
#define ORDER	 (COMM + 0x8000)
#define PEERS	 (COMM + 0x9000)
#define PEER	 (COMM + 0xa000)
#define COUNT	 (COMM + 0xb000)
#define CHANNELS 64u
#define LAUNCHES 20u

/* Memory of a device, with a communicator of four ranks, of NCCL 2.27 and later; all channels have one connection. */
static uint8_t image[0xc000];
static uint32_t reads;

static bool is_kernel(const void *ctx, const struct wave *w)
{
	(void)ctx;
	return w->kernel_handle != 0;
}

static bool read_image(const void *ctx, const struct wave *w, uint64_t address, void *buf, uint32_t size)
{
	(void)ctx;
	(void)w;
	reads++;
	if (address < COMM || address - COMM > sizeof(image) || size > sizeof(image) - (address - COMM))
		return false;
	memcpy(buf, image + (address - COMM), size);
	return true;
}

static void put(uint64_t address, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		image[address - COMM + i] = (uint8_t)(value >> 8 * i);
}

static void make_image(void)
{
	memset(image, 0, sizeof(image));
	put(COMM, 2, 4);
	put(COMM + 4, 4, 4);
	put(COMM + 56, COMM + 96, 8);
	for (uint32_t i = 0; i < CHANNELS; i++) {
		uint64_t at = COMM + 96 + i * 368;

		put(at, PEERS, 8);
		put(at + 8, 1, 4);
		put(at + 12, 3, 4);
		put(at + 16, ORDER, 8);
	}
	for (uint32_t i = 0; i < 4; i++) {
		put(ORDER + 4 * i, (2 + i) % 4, 4);
		put(PEERS + 8 * i, PEER, 8);
	}
	put(PEER + 304 + 48, COUNT, 8);
	put(PEER + 304 + 104, 100, 8);
	put(COUNT, 100, 8);
}

struct stop {
	struct rpc_arena arena;
	struct wave waves[LAUNCHES * CHANNELS];
	struct target_arguments arguments[LAUNCHES];
	uint8_t bytes[16];
	struct target_waves all;
};

/* So many dispatches, of so many blocks with a warp each. */
static void make_waves(struct stop *s, uint32_t launches, uint32_t blocks)
{
	const uint64_t words[2] = { COMM, UINT64_MAX };

	memset(s, 0, sizeof(*s));
	rpc_arena_init(&s->arena, 1 << 20);
	memcpy(s->bytes, words, sizeof(words));
	for (uint32_t i = 0; i < launches; i++) {
		s->arguments[i] = (struct target_arguments){ .dispatch = i, .bytes = s->bytes,
							     .size = sizeof(s->bytes) };
		for (uint32_t b = 0; b < blocks; b++)
			s->waves[s->all.n_waves++] = (struct wave){ .dispatch = i, .has_dispatch = true,
								    .kernel_handle = 1, .has_workgroup = true,
								    .workgroup = { b } };
	}
	s->all.waves = s->waves;
	s->all.arguments = s->arguments;
	s->all.n_arguments = launches;
	reads = 0;
	make_image();
}

static void each_block_says_of_whom_it_has_nothing(void)
{
	static struct stop s;
	const struct nccl_source from = { is_kernel, read_image, NULL, 0 };

	make_waves(&s, 1, 3);
	nccl_read(&from, &s.arena, &s.all);
	TEST_EQ(s.all.n_collectives, 1);
	TEST_EQ(s.all.collectives[0].is_read, true);
	TEST_EQ(s.all.collectives[0].rank == 2 && s.all.collectives[0].ranks == 4, true);
	TEST_EQ(s.all.collectives[0].n_receives, 3);
	for (uint32_t i = 0; i < 3; i++)
		TEST_ROW_EQ(i, s.all.collectives[0].receives[i].block == i &&
				       s.all.collectives[0].receives[i].from == 1, true);
	TEST_EQ(s.all.collectives[0].unread | s.all.collectives[0].left, 0);
	/* Data has come. */
	put(COUNT, 101, 8);
	nccl_read(&from, &s.arena, &s.all);
	TEST_EQ(s.all.collectives[0].n_receives, 0);
	rpc_arena_deinit(&s.arena);
}

static void reads_are_bounded(void)
{
	static struct stop s;
	const struct nccl_source from = { is_kernel, read_image, NULL, 0 };
	const struct target_collective *c;

	make_waves(&s, LAUNCHES, CHANNELS);
	nccl_read(&from, &s.arena, &s.all);
	TEST_EQ(reads <= NCCL_READS_MAX, true);
	TEST_EQ(s.all.n_collectives, NCCL_LAUNCHES_MAX);
	c = s.all.collectives;
	/* What was not read is told so: of the first one some blocks, of the last one everything. */
	TEST_EQ(c[0].is_read && c[0].n_receives && c[0].left && !c[0].unread, true);
	TEST_EQ((uint32_t)__builtin_popcountll(c[0].left) + c[0].n_receives, CHANNELS);
	TEST_EQ(!c[NCCL_LAUNCHES_MAX - 1].is_read && !c[NCCL_LAUNCHES_MAX - 1].communicator &&
			!c[NCCL_LAUNCHES_MAX - 1].is_other, true);
	rpc_arena_deinit(&s.arena);
}

static void nothing_is_read_when_the_stop_is_over(void)
{
	static struct stop s;
	const struct nccl_source from = { is_kernel, read_image, NULL, 1 };

	make_waves(&s, 1, 2);
	nccl_read(&from, &s.arena, &s.all);
	TEST_EQ(reads, 0);
	TEST_EQ(s.all.n_collectives == 1 && !s.all.collectives[0].is_read && !s.all.collectives[0].is_other, true);
	rpc_arena_deinit(&s.arena);
}

TEST_SUITE(worker_nccl, TEST(each_block_says_of_whom_it_has_nothing), TEST(reads_are_bounded),
	   TEST(nothing_is_read_when_the_stop_is_over));
