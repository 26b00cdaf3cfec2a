/* SPDX-License-Identifier: MIT */
/* Reading communicators of NCCL's kernels: how much is read, and what is told where that does not last. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/cuda/warp.h"
#include "agentd/worker/nccl/reading.h"
#include "base/clock.h"
#include "testlib.h"

#define COMM	 UINT64_C(0x7f5c00000000)
#define ORDER	 (COMM + 0x8000)
#define PEERS	 (COMM + 0x9000)
#define PEER	 (COMM + 0xa000)
#define COUNT	 (COMM + 0xb000)
#define BUFFER	 (COMM + 0xc000)
#define OWN	 (COMM + 0xe000)
#define HOST	 (OWN + 4 * CHANNELS * (uint64_t)NCCL_PAGE)
#define SLOT	 256u
#define CHANNELS 64u
#define LAUNCHES 20u

/* Memory of a device, with a communicator of four ranks, of NCCL 2.27 and later; all channels have one connection. */
static uint8_t image[0xe000 + 5 * CHANNELS * NCCL_PAGE];
static uint32_t reads;
/* Pages are there as a whole, as those of a device are: of a core they need not be. */
static bool has_pages = true;
/* The stop is over after so many; 0: never. */
static uint32_t reads_in_time;
static struct nccl_source timed;

/* What a warp may stand in; its pc is the position. */
enum {
	IN_SIMPLE,
	IN_LL,
	IN_LL128_GATHER,
	IN_LL_KERNEL,
	IN_OTHER,
	IN_PAIRS,
	IN_PAIRS_KERNEL,
	IN_TREE,
	IN_TREE_KERNEL,
	NOWHERE,
	GONE /* It has ended, and is not listed. */
};
static struct nccl_function list[] = {
	{ IN_SIMPLE, 1, { WAITS_NCCL_SIMPLE, false, true, WAITS_NCCL_RING } },
	{ IN_LL, 1, { WAITS_NCCL_LL, false, true, WAITS_NCCL_RING } },
	{ IN_LL128_GATHER, 1, { WAITS_NCCL_LL128, false, false, WAITS_NCCL_RING } },
	{ IN_LL_KERNEL, 1, { WAITS_NCCL_LL, true, true, WAITS_NCCL_RING } },
	{ IN_OTHER, 1, { WAITS_NCCL_NO_PROTOCOL, false, false, WAITS_NCCL_NO_WAY } },
	{ IN_PAIRS, 1, { WAITS_NCCL_NO_PROTOCOL, false, false, WAITS_NCCL_PAIR } },
	{ IN_PAIRS_KERNEL, 1, { WAITS_NCCL_NO_PROTOCOL, true, false, WAITS_NCCL_PAIR } },
	{ IN_TREE, 1, { WAITS_NCCL_SIMPLE, false, false, WAITS_NCCL_TREE } },
	{ IN_TREE_KERNEL, 1, { WAITS_NCCL_LL, true, false, WAITS_NCCL_TREE } },
};
static const struct nccl_functions functions = { list, ARRAY_SIZE(list), ARRAY_SIZE(list) }, none;
/* The first one is of another device. */
static const struct nccl_code code[] = { { 1, &functions }, { 0, &functions } };

static bool read_image(const void *ctx, const struct wave *w, enum nccl_memory of, uint64_t address, void *buf,
		       uint32_t size)
{
	(void)ctx;
	(void)w;
	if (++reads == reads_in_time)
		timed.deadline_ns = 1;
	if (!has_pages && size == NCCL_PAGE)
		return false;
	if ((address < HOST) != (of == NCCL_DEVICE) || address < COMM || address - COMM > sizeof(image) ||
	    size > sizeof(image) - (address - COMM))
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
	/* Slots of LL and LL128: what has come last of each is of steps that were taken. */
	put(COMM + 16, 8 * SLOT, 4);
	put(COMM + 20, 8 * SLOT, 4);
	put(PEER + 304, BUFFER, 8);
	put(PEER + 304 + 8, BUFFER + 8 * SLOT, 8);
	for (uint32_t slot = 0; slot < 8; slot++) {
		const uint32_t step = slot < 4 ? 96 + slot : 88 + slot;

		put(BUFFER + (uint64_t)slot * SLOT + 4, step + 1, 4);
		put(BUFFER + (uint64_t)slot * SLOT + 12, step + 1, 4);
		put(BUFFER + (8 + (uint64_t)slot) * SLOT + 120, step + 1, 8);
	}
}

/*
 * The same, where each channel has these of its own.
 * @param step    From one of them to the next.
 * @param counts  Where the first of those is that say what has come; 0: behind the other three.
 */
static void make_own(uint64_t step, uint64_t counts)
{
	for (uint32_t i = 0; i < CHANNELS; i++) {
		const uint64_t at = COMM + 96 + i * 368, order = OWN + 4 * i * step, peers = order + step;
		const uint64_t peer = peers + step, count = counts ? counts + i * step : peer + step;

		put(at, peers, 8);
		put(at + 16, order, 8);
		for (uint32_t k = 0; k < 4; k++) {
			put(order + 4 * k, (2 + k) % 4, 4);
			put(peers + 8 * k, peer, 8);
		}
		put(peer + 304 + 48, count, 8);
		put(peer + 304 + 104, 100, 8);
		put(count, 100, 8);
	}
}

struct stop {
	struct rpc_arena arena;
	struct wave waves[LAUNCHES * CHANNELS];
	struct target_arguments arguments[LAUNCHES];
	uint8_t bytes[32];
	struct target_waves all;
};

/* So many dispatches, of so many blocks with a warp each. */
static void make_waves(struct stop *s, uint32_t launches, uint32_t blocks)
{
	const uint64_t words[4] = { COMM, UINT64_MAX };

	memset(s, 0, sizeof(*s));
	rpc_arena_init(&s->arena, 1 << 20);
	memcpy(s->bytes, words, sizeof(words));
	for (uint32_t i = 0; i < launches; i++) {
		s->arguments[i] = (struct target_arguments){ .dispatch = i, .bytes = s->bytes,
							     .size = sizeof(s->bytes) };
		for (uint32_t b = 0; b < blocks; b++)
			s->waves[s->all.n_waves++] = (struct wave){ .dispatch = i, .has_dispatch = true,
								    .kernel_handle = IN_LL_KERNEL,
								    .has_workgroup = true, .workgroup = { b },
								    .has_wave_in_group = true };
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
	const struct nccl_source from = { code, ARRAY_SIZE(code), read_image, NULL, 0 };

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

/*
 * Each read is a call of the driver while the device stands still.  Of each channel it takes the order of its ring,
 * what it has of ranks, its connection, and what has come.
 */
static void what_lies_together_is_read_at_once(void)
{
	static const struct {
		uint64_t step, counts;
		uint32_t reads;
	} rows[] = {
		/* The communicator and 16 channels are on two pages. */
		{ 0x200, 0, 2 + 16 * 4 * 0x200 / NCCL_PAGE },
		{ NCCL_PAGE, 0, 2 + 16 * 4 },
		/* Only once it is not known that counts are in memory of the host. */
		{ NCCL_PAGE, HOST, 2 + 16 * 4 + 1 },
		{ 0x200, HOST, 2 + 2 * 16 * 4 * 0x200 / NCCL_PAGE - 6 + 1 },
	};
	static struct stop s;
	const struct nccl_source from = { code, ARRAY_SIZE(code), read_image, NULL, 0 };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		make_waves(&s, 1, 16);
		make_own(rows[i].step, rows[i].counts);
		nccl_read(&from, &s.arena, &s.all);
		TEST_ROW_EQ(i, s.all.collectives[0].n_receives, 16);
		TEST_ROW_EQ(i, reads, rows[i].reads);
		rpc_arena_deinit(&s.arena);
	}
}

/* Where a page is not there as a whole, what is asked for may be, and no more pages are tried. */
static void parts_of_pages_are_read_as_well(void)
{
	static struct stop s;
	const struct nccl_source from = { code, ARRAY_SIZE(code), read_image, NULL, 0 };

	make_waves(&s, 1, 3);
	has_pages = false;
	nccl_read(&from, &s.arena, &s.all);
	has_pages = true;
	TEST_EQ(s.all.collectives[0].n_receives, 3);
	/*
	 * A page in both memories; the communicator, the first channel and its order; of each block these two, its
	 * peer, its connection, and what has come.
	 */
	TEST_EQ(reads, 2 + 1 + 2 + 3 * 5);
	rpc_arena_deinit(&s.arena);
}

/* A page of one device says nothing of another one's. */
static void pages_are_of_one_device(void)
{
	static const struct nccl_code both[] = { { 1, &functions }, { 0, &functions } };
	static struct stop s;
	const struct nccl_source from = { both, ARRAY_SIZE(both), read_image, NULL, 0 };

	make_waves(&s, 2, 1);
	nccl_read(&from, &s.arena, &s.all);
	TEST_EQ(s.all.n_collectives, 2);
	TEST_EQ(reads, 5);
	s.waves[1].gpu_id = s.arguments[1].gpu_id = 1;
	reads = 0;
	nccl_read(&from, &s.arena, &s.all);
	TEST_EQ(s.all.n_collectives, 2);
	TEST_EQ(reads, 10);
	rpc_arena_deinit(&s.arena);
}

static void reads_are_bounded(void)
{
	static struct stop s;
	const struct nccl_source from = { code, ARRAY_SIZE(code), read_image, NULL, 0 };
	const struct target_collective *c;

	make_waves(&s, LAUNCHES, CHANNELS);
	has_pages = false;
	nccl_read(&from, &s.arena, &s.all);
	has_pages = true;
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

/* Two blocks of two warps each.  @return how many have received nothing. */
static uint32_t read_two(struct stop *s, uint32_t first, uint32_t second)
{
	static const struct nccl_source from = { code, ARRAY_SIZE(code), read_image, NULL, 0 };

	for (uint32_t i = 0; i < 4; i++) {
		s->waves[i] = s->waves[0];
		s->waves[i].workgroup[0] = i / 2;
		/* Warps may be listed in any order. */
		s->waves[i].wave_in_group = (uint8_t)(1 - i % 2);
		s->waves[i].pc = s->waves[i].wave_in_group ? second : first;
	}
	s->all.n_waves = 4;
	reads = 0;
	nccl_read(&from, &s->arena, &s->all);
	return s->all.collectives[0].n_receives;
}

static void what_warps_stand_in_says_how_data_comes(void)
{
	static const struct {
		uint32_t first, second, n, reads;
	} rows[] = {
		/* Communicator and channels take 2 reads; both blocks 2, and those of what has come to each. */
		{ IN_SIMPLE, IN_SIMPLE, 2, 2 + 2 + 1 },
		{ IN_LL, IN_LL, 2, 2 + 2 + 2 * 8 },
		{ IN_LL128_GATHER, IN_LL128_GATHER, 2, 2 + 2 + 2 },
		{ IN_LL_KERNEL, IN_LL_KERNEL, 2, 2 + 2 + 2 * 8 },
		{ IN_SIMPLE, NOWHERE, 2, 2 + 2 + 1 },
		/* The first warp is elsewhere, or may wait for the other one. */
		{ IN_OTHER, IN_SIMPLE, 0, 2 },
		{ NOWHERE, IN_LL, 0, 2 },
		{ IN_LL_KERNEL, IN_OTHER, 0, 2 },
		{ IN_LL_KERNEL, IN_LL, 0, 2 },
		{ IN_LL_KERNEL, NOWHERE, 0, 2 },
	};
	static struct stop s;

	make_waves(&s, 1, 2);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		TEST_ROW_EQ(i, read_two(&s, rows[i].first, rows[i].second), rows[i].n);
		TEST_ROW_EQ(i, reads, rows[i].reads);
		TEST_ROW_EQ(i, s.all.collectives[0].unread | s.all.collectives[0].left | s.all.collectives[0].empty, 0);
	}
	rpc_arena_deinit(&s.arena);
}

/* The next step is 100, of slot 4.  Where steps may be empty, the first data may have come by any slot. */
static void flags_of_all_slots_count_where_steps_may_be_empty(void)
{
	static struct stop s;

	make_waves(&s, 1, 2);
	for (uint32_t slot = 0; slot < 8; slot++) {
		make_image();
		put(BUFFER + (uint64_t)slot * SLOT + 4, slot < 4 ? 105 + slot : 97 + slot, 4);
		TEST_ROW_EQ(slot, read_two(&s, IN_LL, IN_LL), 0);
		TEST_ROW_EQ(slot, s.all.collectives[0].unread, 0);
	}
	make_image();
	put(BUFFER + 12 * SLOT + 120, 109, 8);
	TEST_EQ(read_two(&s, IN_LL128_GATHER, NOWHERE), 0);
	TEST_EQ(read_two(&s, IN_LL, NOWHERE), 2);
	rpc_arena_deinit(&s.arena);
}

static void buffers_that_do_not_fit_say_nothing(void)
{
	static const struct {
		uint64_t at, value;
		size_t size;
	} wrong[] = {
		{ PEER + 304, 0, 8 },		{ PEER + 304, BUFFER + 8, 8 },
		{ PEER + 304, COMM - 0x1000, 8 }, { PEER + 304, UINT64_MAX - 15, 8 },
		{ COMM + 16, 0, 4 },		{ COMM + 16, UINT32_MAX, 4 },
		{ COMM + 16, 0x4000000, 4 },	{ BUFFER + 4 * SLOT + 4, 102, 4 },
		{ BUFFER + 6 * SLOT + 12, 87, 4 },
	};
	static struct stop s;

	make_waves(&s, 1, 2);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		make_image();
		put(wrong[i].at, wrong[i].value, wrong[i].size);
		TEST_ROW_EQ(i, read_two(&s, IN_LL, IN_LL), 0);
		TEST_ROW_EQ(i, s.all.collectives[0].unread, 3);
	}
	rpc_arena_deinit(&s.arena);
}

/* Those have nothing behind the address of their work. */
static void kernels_before_2_22_may_have_empty_channels(void)
{
	static struct stop s;

	make_waves(&s, 1, 2);
	s.arguments[0].size = 24;
	TEST_EQ(read_two(&s, IN_LL, IN_LL), 0);
	TEST_EQ(s.all.collectives[0].empty, 3);
	TEST_EQ(read_two(&s, IN_SIMPLE, IN_SIMPLE), 2);
	TEST_EQ(s.all.collectives[0].empty, 0);
	rpc_arena_deinit(&s.arena);
}

static void code_is_found_by_its_address(void)
{
	static struct nccl_function two[] = { { 0x100, 0x80, { WAITS_NCCL_LL, true, true } },
					      { 0x200, 0x80, { WAITS_NCCL_LL, false, true } } };
	static const struct nccl_functions f = { two, 2, 2 };

	TEST_EQ(nccl_functions_around(&f, 0xff) == NULL && nccl_functions_around(&f, 0x180) == NULL, true);
	TEST_EQ(nccl_functions_around(&f, 0x100) == &two[0] && nccl_functions_around(&f, 0x17f) == &two[0], true);
	TEST_EQ(nccl_functions_around(&f, 0x27f) == &two[1] && nccl_functions_around(&f, UINT64_MAX) == NULL, true);
	TEST_EQ(nccl_functions_around(&none, 0x100) == NULL, true);
	TEST_EQ(nccl_functions_has_kernel(&f, 0x100), true);
	TEST_EQ(nccl_functions_has_kernel(&f, 0x110) || nccl_functions_has_kernel(&f, 0x200), false);
}

static void nothing_is_read_when_the_stop_is_over(void)
{
	static struct stop s;
	const struct nccl_source from = { code, ARRAY_SIZE(code), read_image, NULL, 1 };

	make_waves(&s, 1, 2);
	nccl_read(&from, &s.arena, &s.all);
	TEST_EQ(reads, 0);
	TEST_EQ(s.all.n_collectives, 0);
	rpc_arena_deinit(&s.arena);
	/* Nor are other dispatches looked at when it ends with the first one's: each is looked for in all code. */
	timed = from;
	timed.deadline_ns = 0;
	make_waves(&s, 3, 2);
	reads_in_time = 1;
	nccl_read(&timed, &s.arena, &s.all);
	reads_in_time = 0;
	TEST_EQ(s.all.n_collectives, 1);
	rpc_arena_deinit(&s.arena);
}

/* Of modules without such code there may be thousands, and each wave is looked for in all that are listed. */
static void modules_without_such_code_are_not_looked_at(void)
{
	static struct nccl_code found[1000];
	size_t n = 0;

	for (uint32_t i = 0; i < ARRAY_SIZE(found); i++)
		n = nccl_code_add(found, n, i, i == 300 || i == 700 ? &functions : &none);
	TEST_EQ(n, 2);
	TEST_EQ(found[0].gpu_id == 300 && found[1].gpu_id == 700 && found[1].functions == &functions, true);
}

/* Nothing of these blocks would have to be read, so that only who looks for them can know. */
static void blocks_are_not_looked_for_when_the_stop_is_over(void)
{
	static struct stop s;

	timed = (struct nccl_source){ code, ARRAY_SIZE(code), read_image, NULL, 0 };
	make_waves(&s, 1, 2);
	s.waves[0].pc = s.waves[1].pc = NOWHERE;
	nccl_read(&timed, &s.arena, &s.all);
	TEST_EQ(s.all.collectives[0].is_read, true);
	TEST_EQ(s.all.collectives[0].left, 0);
	/* It ends with the last read of the communicator and its first channel. */
	reads_in_time = reads;
	reads = 0;
	nccl_read(&timed, &s.arena, &s.all);
	reads_in_time = 0;
	TEST_EQ(s.all.collectives[0].is_read, true);
	TEST_EQ(s.all.collectives[0].left, 3);
	TEST_EQ(s.all.collectives[0].n_receives | s.all.collectives[0].unread | s.all.collectives[0].empty, 0);
	rpc_arena_deinit(&s.arena);
}

/* ------------------------------------------------------------------ what a block keeps ------- */

#define HOST_MAP UINT64_C(0x560000000010)

static uint8_t kept[21440];
static uint32_t kept_at = 0x400;

static bool read_kept(const void *ctx, const struct wave *w, uint32_t address, void *buf, uint32_t size)
{
	(void)ctx;
	reads++;
	if (address < kept_at || address - kept_at > sizeof(kept) || size > sizeof(kept) - (address - kept_at))
		return false;
	memcpy(buf, kept + (address - kept_at), size);
	/* Each block has the channel of its number. */
	if (address == kept_at)
		((uint8_t *)buf)[32] = (uint8_t)w->workgroup[0];
	return true;
}

static bool yes(const void *ctx, const struct wave *w)
{
	(void)ctx;
	(void)w;
	return true;
}

static bool no(const void *ctx, const struct wave *w)
{
	(void)ctx;
	(void)w;
	return false;
}

static struct nccl_source with_shared = { code, ARRAY_SIZE(code), read_image, NULL, 0, read_kept, yes };

static void put_kept(uint32_t at, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		kept[at + i] = (uint8_t)(value >> 8 * i);
}

/*
 * One block of 8 warps, of rank 2 of 4: 0 is above it and 1 and 3 below, whose connections are the same.  What it keeps
 * is as NCCL 2.30 has it.
 * @param n  Works, of a pair's bytes, or of others.
 */
static void make_kept(struct stop *s, bool is_pair, uint32_t n)
{
	make_waves(s, 1, 1);
	s->all.n_waves = 8;
	for (uint32_t i = 0; i < 8; i++) {
		s->waves[i] = s->waves[0];
		s->waves[i].wave_in_group = (uint8_t)i;
		s->waves[i].group_waves = 8;
	}
	for (uint32_t i = 0; i < CHANNELS; i++) {
		const uint64_t at = COMM + 96 + i * 368;

		put(at + 24, HOST_MAP, 8);
		put(at + 32, 2, 4);
		put(at + 44, 0, 4);
		put(at + 48, 1, 4);
		put(at + 52, 3, 4);
		put(at + 56, UINT32_MAX, 4);
	}
	/* The second connection, for single ranks. */
	put(PEER + 304 + 152 + 48, COUNT, 8);
	put(PEER + 304 + 152 + 104, 100, 8);
	memset(kept, 0, sizeof(kept));
	put_kept(0, COMM, 8);
	put_kept(8, UINT64_MAX, 8);
	memcpy(kept + 48, image, 88);
	put_kept(144, PEERS, 8);
	put_kept(516, UINT32_MAX, 4);
	put_kept(520, is_pair ? 0 : 1, 1);
	put_kept(524, n, 4);
	put_kept(528, is_pair ? 48 : 128, 4);
	for (uint32_t i = 0; is_pair && i < n; i++) {
		put_kept(20400 + 48 * i + 24, 1, 8);
		put_kept(20400 + 48 * i + 32, 1, 4);
		put_kept(20400 + 48 * i + 36, i, 4);
		put_kept(20400 + 48 * i + 40, 0x01010001, 4);
	}
	for (uint32_t i = 0; !is_pair && i < n; i++)
		put_kept(20400 + 128 * i + 2, 8, 1);
}

/* @param mask  Of the warps, a bit for each that stands at @p second. */
static const struct target_collective *read_kept_block(struct stop *s, uint32_t first, uint32_t second, uint32_t mask)
{
	const struct wave one = s->waves[0];

	s->all.n_waves = 0;
	for (uint32_t i = 0; i < 8; i++) {
		struct wave *w = &s->waves[s->all.n_waves];

		*w = one;
		w->wave_in_group = (uint8_t)i;
		w->pc = mask >> i & 1 ? second : first;
		s->all.n_waves += w->pc != GONE;
	}
	reads = 0;
	nccl_read(&with_shared, &s->arena, &s->all);
	return &s->all.collectives[0];
}

static void what_stands_in_the_kernel_has_the_function_inside(void)
{
	static const struct {
		bool is_pair;
		uint32_t first, second, mask, n;
	} rows[] = {
		{ true, IN_PAIRS, NOWHERE, 0, 2 },
		{ true, IN_PAIRS_KERNEL, NOWHERE, 0, 2 },
		/* The receivers of the first work, or of both, have ended. */
		{ true, IN_PAIRS_KERNEL, GONE, 0x0c, 1 },
		{ true, IN_PAIRS, IN_PAIRS_KERNEL, 0x0c, 1 },
		{ true, IN_PAIRS, IN_PAIRS_KERNEL, 0xcc, 0 },
		/* A function that is not inside it says what the block executes. */
		{ true, IN_PAIRS_KERNEL, IN_OTHER, 0x01, 0 },
		{ true, IN_PAIRS, IN_TREE, 0x01, 0 },
		{ false, IN_TREE, NOWHERE, 0, 2 },
		{ false, IN_TREE_KERNEL, NOWHERE, 0, 2 },
		/* The other half has only ended what it receives of above. */
		{ false, IN_TREE, GONE, 0xf0, 2 },
		{ false, IN_TREE, GONE, 0x0f, 1 },
		{ false, IN_PAIRS_KERNEL, NOWHERE, 0, 0 },
		{ true, IN_TREE_KERNEL, NOWHERE, 0, 0 },
	};
	static struct stop s;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct target_collective *c;

		make_kept(&s, rows[i].is_pair, rows[i].is_pair ? 2 : 1);
		c = read_kept_block(&s, rows[i].first, rows[i].second, rows[i].mask);
		TEST_ROW_EQ(i, c->n_receives, rows[i].n);
		TEST_ROW_EQ(i, c->left | c->between | c->old, 0);
		rpc_arena_deinit(&s.arena);
	}
}

/* It may be in code that a function calls, which has a name of its own: that is not to have ended. */
static void a_warp_that_is_elsewhere_may_receive(void)
{
	static const struct {
		bool is_pair;
		uint32_t first;
	} rows[] = { { true, IN_PAIRS }, { true, IN_PAIRS_KERNEL }, { false, IN_TREE }, { false, IN_TREE_KERNEL } };
	static struct stop s;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (uint32_t warp = 0; warp < 8; warp++) {
			const struct target_collective *c;

			make_kept(&s, rows[i].is_pair, rows[i].is_pair ? 2 : 1);
			c = read_kept_block(&s, rows[i].first, NOWHERE, 1u << warp);
			TEST_ROW_EQ(i, c->unread, 1);
			TEST_ROW_EQ(i, c->n_receives | c->left | c->between | c->old, 0);
			rpc_arena_deinit(&s.arena);
		}
}

static void single_ranks_have_the_second_connection(void)
{
	static struct stop s;
	const struct target_collective *c;

	make_kept(&s, true, 2);
	c = read_kept_block(&s, IN_PAIRS, NOWHERE, 0);
	TEST_EQ(c->n_receives == 2 && c->receives[0].connection == 1 && c->receives[1].connection == 1, true);
	rpc_arena_deinit(&s.arena);
	make_kept(&s, false, 1);
	c = read_kept_block(&s, IN_TREE, NOWHERE, 0);
	TEST_EQ(c->n_receives == 2 && c->receives[0].connection == 0 && c->receives[1].connection == 0, true);
	rpc_arena_deinit(&s.arena);
}

/* Of each of 64 blocks 8 works receive, which is more than there is room for. */
static void what_is_told_is_bounded(void)
{
	static struct stop s;
	const struct target_collective *c;

	make_kept(&s, true, 8);
	s.all.n_waves = 0;
	for (uint32_t i = 0; i < 8; i++)
		put_kept(20400 + 48 * i + 36, i % 2, 4);
	for (uint32_t block = 0; block < CHANNELS; block++)
		for (uint32_t i = 0; i < 16; i++) {
			struct wave *w = &s.waves[s.all.n_waves++];

			*w = s.waves[0];
			w->workgroup[0] = block;
			w->wave_in_group = (uint8_t)i;
			w->group_waves = 16;
			w->pc = IN_PAIRS;
		}
	reads = 0;
	nccl_read(&with_shared, &s.arena, &s.all);
	c = s.all.collectives;
	TEST_EQ(c->n_receives, NCCL_RECEIVES_MAX);
	/* What there is no room for is told. */
	TEST_EQ(c->left, UINT64_MAX << NCCL_RECEIVES_MAX / 8);
	TEST_EQ(c->unread, 0);
	rpc_arena_deinit(&s.arena);
}

static void devices_before_sm_90_keep_it_elsewhere(void)
{
	static struct stop s;

	make_kept(&s, true, 2);
	memmove(kept + 512 + 5424, kept + 20400, 96);
	memset(kept + 20400, 0, 96);
	TEST_EQ(read_kept_block(&s, IN_PAIRS, NOWHERE, 0)->n_receives, 0);
	TEST_EQ(s.all.collectives[0].unread, 1);
	with_shared.is_sm_90_or_newer = no;
	TEST_EQ(read_kept_block(&s, IN_PAIRS, NOWHERE, 0)->n_receives, 2);
	TEST_EQ(s.all.collectives[0].unread, 0);
	/* A compiler that reserves nothing lets it begin in front. */
	kept_at = 0;
	TEST_EQ(read_kept_block(&s, IN_PAIRS, NOWHERE, 0)->n_receives, 2);
	TEST_EQ(s.all.collectives[0].unread, 0);
	kept_at = 0x400;
	with_shared.is_sm_90_or_newer = yes;
	rpc_arena_deinit(&s.arena);
	TEST_EQ(cuda_arch_is_sm_90_or_newer("sm_90a") && cuda_arch_is_sm_90_or_newer("sm_100"), true);
	TEST_EQ(cuda_arch_is_sm_90_or_newer("sm_89") || cuda_arch_is_sm_90_or_newer(""), false);
}

/* Of those that have received all, count and steps are alike again, and they wait in the kernel for the others. */
static void a_kernel_with_more_to_do_says_nothing(void)
{
	static struct stop s;
	const struct target_collective *c;

	make_kept(&s, true, 2);
	put_kept(516, 1, 4);
	c = read_kept_block(&s, IN_PAIRS_KERNEL, NOWHERE, 0);
	TEST_EQ(c->n_receives | c->unread, 0);
	TEST_EQ(c->between, 1);
	c = read_kept_block(&s, IN_PAIRS, NOWHERE, 0);
	TEST_EQ(c->n_receives, 2);
	TEST_EQ(c->between, 0);
	rpc_arena_deinit(&s.arena);
}

static void releases_that_are_alike_are_told_apart(void)
{
	static struct stop s;

	make_kept(&s, true, 2);
	/* As 2.27 has it: no map, and the works lie elsewhere. */
	put(COMM + 96 + 24, 2, 8);
	memmove(kept + 20528, kept + 20400, 96);
	TEST_EQ(read_kept_block(&s, IN_PAIRS, NOWHERE, 0)->n_receives, 2);
	/* Neither of them fits. */
	put(COMM + 96 + 24, 1, 8);
	TEST_EQ(read_kept_block(&s, IN_PAIRS, NOWHERE, 0)->n_receives, 0);
	TEST_EQ(s.all.collectives[0].unread, 1);
	rpc_arena_deinit(&s.arena);
}

static void releases_before_2_22_keep_other_things(void)
{
	static struct stop s;

	make_kept(&s, true, 2);
	s.arguments[0].size = 24;
	memset(image, 0, 96);
	put(COMM, 2, 4);
	put(COMM + 4, 4, 4);
	put(COMM + 48, COMM + 64, 8);
	memmove(image + 64, image + 96, 56);
	put(COMM + 64 + 240, PEERS, 8);
	TEST_EQ(read_kept_block(&s, IN_PAIRS, NOWHERE, 0)->old, 1);
	TEST_EQ(s.all.collectives[0].n_receives, 0);
	rpc_arena_deinit(&s.arena);
}

/* It has the communicator of 2.23, and only its arguments tell. */
static void release_2_21_keeps_other_things(void)
{
	static struct stop s;

	make_kept(&s, true, 2);
	memmove(image + 80, image + 96, CHANNELS * 368);
	memset(image + 48, 0, 32);
	put(COMM + 64, COMM + 80, 8);
	TEST_EQ(read_kept_block(&s, IN_PAIRS, NOWHERE, 0)->unread, 1);
	TEST_EQ(s.all.collectives[0].old, 0);
	s.arguments[0].size = 24;
	TEST_EQ(read_kept_block(&s, IN_PAIRS, NOWHERE, 0)->old, 1);
	TEST_EQ(s.all.collectives[0].n_receives | s.all.collectives[0].unread, 0);
	rpc_arena_deinit(&s.arena);
}

TEST_SUITE(worker_nccl, TEST(what_stands_in_the_kernel_has_the_function_inside),
	   TEST(a_kernel_with_more_to_do_says_nothing), TEST(releases_that_are_alike_are_told_apart),
	   TEST(releases_before_2_22_keep_other_things), TEST(release_2_21_keeps_other_things),
	   TEST(a_warp_that_is_elsewhere_may_receive), TEST(single_ranks_have_the_second_connection),
	   TEST(devices_before_sm_90_keep_it_elsewhere), TEST(each_block_says_of_whom_it_has_nothing),
	   TEST(what_lies_together_is_read_at_once), TEST(parts_of_pages_are_read_as_well),
	   TEST(pages_are_of_one_device), TEST(reads_are_bounded), TEST(what_is_told_is_bounded),
	   TEST(what_warps_stand_in_says_how_data_comes), TEST(flags_of_all_slots_count_where_steps_may_be_empty),
	   TEST(buffers_that_do_not_fit_say_nothing), TEST(kernels_before_2_22_may_have_empty_channels),
	   TEST(code_is_found_by_its_address), TEST(nothing_is_read_when_the_stop_is_over),
	   TEST(modules_without_such_code_are_not_looked_at), TEST(blocks_are_not_looked_for_when_the_stop_is_over));
