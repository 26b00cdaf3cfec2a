/* SPDX-License-Identifier: MIT */
/* What a block of NCCL keeps of what it executes, and what is not that.  Where it is, tests/peers/nccl compares. */
#include <errno.h>
#include <string.h>

#include "testlib.h"
#include "waits/collective/nccl_work.h"

/* Of 2.27 to 2.30, and where what a block keeps of these has its batch. */
#define LAYOUT 6u
#define BATCH  512u
#define COMM   UINT64_C(0x7f5c00000000)
#define PEERS  UINT64_C(0x7f5c00002000)

static const struct waits_rccl_comm comm = { 3, 8, 2, 4 };
static const struct waits_nccl_launch launch = { COMM, 7, false };

static void put(uint8_t *bytes, size_t at, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		bytes[at + i] = (uint8_t)(value >> 8 * i);
}

static void make_shared(uint8_t *shared, uint8_t *bytes)
{
	memset(shared, 0xa5, WAITS_NCCL_SHARED);
	memset(bytes, 0x5a, WAITS_NCCL_COMM);
	put(shared, 0, COMM, 8);
	put(shared, 8, 7, 8);
	put(shared, 32, 2, 4);
	put(shared, 36, 0, 4);
	memset(shared + 48, 0x5a, 88);
	put(shared, 144, PEERS, 8);
	put(shared, BATCH + 4, UINT32_MAX, 4);
	put(shared, BATCH + 8, 0, 1);
	put(shared, BATCH + 12, 2, 4);
	put(shared, BATCH + 16, 48, 4);
}

static int read_block(const uint8_t *shared, const uint8_t *bytes, struct waits_nccl_block *ret)
{
	return waits_nccl_block_read(LAYOUT, shared, WAITS_NCCL_SHARED, bytes, &launch, 2, PEERS, ret);
}

static void what_a_block_keeps_is_believed_where_it_fits(void)
{
	static const struct {
		uint32_t at, size;
		uint64_t value;
	} wrong[] = {
		{ 0, 8, COMM + 8 },	 { 8, 8, 15 },		 { 32, 4, 1 },		 { 36, 4, 1 },
		{ 48, 1, 0 },		 { 48 + 87, 1, 0 },	 { 144, 8, PEERS + 8 },	 { BATCH + 8, 1, 3 },
		{ BATCH + 12, 4, 0 },	 { BATCH + 12, 4, 17 },	 { BATCH + 12, 4, UINT32_MAX },
		{ BATCH + 16, 4, 64 },	 { BATCH + 16, 4, 0 },	 { BATCH + 16, 4, UINT32_MAX },
	};
	uint8_t shared[WAITS_NCCL_SHARED], bytes[WAITS_NCCL_COMM];
	struct waits_nccl_block block;

	make_shared(shared, bytes);
	TEST_EQ(read_block(shared, bytes, &block), 0);
	TEST_EQ(block.is_pair && block.is_last && block.works == 2 && block.bytes == 48, true);
	put(shared, BATCH + 4, 1, 4);
	TEST_EQ(read_block(shared, bytes, &block), 0);
	TEST_EQ(block.is_last, false);
	/* Behind the communicator's own bytes others may lie. */
	put(shared, 48 + 88, 1, 1);
	TEST_EQ(read_block(shared, bytes, &block), 0);
	TEST_EQ(waits_nccl_block_read(LAYOUT, shared, WAITS_NCCL_SHARED - 1, bytes, &launch, 2, PEERS, &block),
		-EINVAL);
	for (unsigned int layout = 0; layout < LAYOUT; layout++)
		TEST_ROW_EQ(layout,
			    waits_nccl_block_read(layout, shared, sizeof(shared), bytes, &launch, 2, PEERS, &block),
			    -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		make_shared(shared, bytes);
		put(shared, wrong[i].at, wrong[i].value, wrong[i].size);
		TEST_ROW_EQ(i, read_block(shared, bytes, &block), -EINVAL);
	}
}

static void make_pair(uint8_t *work)
{
	memset(work, 0, 48);
	put(work, 24, 4096, 8);
	put(work, 32, 6, 4);
	put(work, 36, 2, 4);
	put(work, 40, 8, 1);
	put(work, 42, 8, 1);
	put(work, 43, 8, 1);
}

static int read_pair(const uint8_t *work, uint32_t i, uint32_t warps, struct waits_nccl_pair *ret)
{
	static const struct waits_nccl_block block = { true, true, 2, 48 };

	return waits_nccl_pair_read(work, 48, WAITS_NCCL_LATE, &comm, &block, 5, i, warps, ret);
}

/* @return whether a block of that channel receives a part. */
static bool has_part(const uint8_t *work, enum waits_nccl_age age, uint32_t channel)
{
	const struct waits_nccl_block block = { true, true, 1, 48, false }, either = { true, true, 1, 48, true };
	struct waits_nccl_pair pair;
	const int r = waits_nccl_pair_read(work, 48, age, &comm, &block, channel, 0, 8, &pair);
	const int e = waits_nccl_pair_read(work, 48, age, &comm, &either, channel, 0, 8, &pair);

	/* Which of two releases it is, is not known: it says so, or the same. */
	TEST_EQ(e == r || (age == WAITS_NCCL_EARLY && e == -EINVAL), true);
	return r == 0;
}

static void a_work_says_of_whom_it_receives(void)
{
	static const struct {
		uint32_t at, size, value;
		int is;
	} rows[] = {
		{ 24, 8, 4096, 0 },
		/* A copy, a part that others have, lines that nobody sends. */
		{ 32, 4, 3, -ENOENT },
		{ 43, 1, 0, -ENOENT },
		{ 43, 1, 4, -ENOENT },
		{ 36, 4, 3, -EINVAL },
		{ 36, 4, 8, -EINVAL },
		{ 36, 4, UINT32_MAX, -EINVAL },
		{ 40, 1, 0, -EINVAL },
		{ 40, 1, 7, -EINVAL },
		{ 40, 1, 128, -EINVAL },
		{ 41, 1, 64, -EINVAL },
		{ 42, 1, 9, -EINVAL },
		{ 43, 1, 9, -EINVAL },
	};
	const struct waits_nccl_block block = { true, true, 2, 48 };
	struct waits_nccl_pair pair;
	uint8_t work[48];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		make_pair(work);
		put(work, rows[i].at, rows[i].value, rows[i].size);
		TEST_ROW_EQ(i, read_pair(work, 1, 8, &pair), rows[i].is);
	}
	make_pair(work);
	TEST_EQ(read_pair(work, 1, 8, &pair), 0);
	TEST_EQ(pair.from == 2 && pair.warp == 6 && pair.protocol == WAITS_NCCL_SIMPLE, true);
	put(work, 46, 2, 1);
	TEST_EQ(read_pair(work, 0, 8, &pair), 0);
	TEST_EQ(pair.warp == 2 && pair.protocol == WAITS_NCCL_LL, true);
	put(work, 24, 0, 8);
	TEST_EQ(read_pair(work, 0, 8, &pair), -ENOENT);
	/* There are not enough warps for it, more than a block may have, or it is too short or not of that block. */
	make_pair(work);
	TEST_EQ(read_pair(work, 0, 3, &pair), -EINVAL);
	TEST_EQ(read_pair(work, 0, 33, &pair), -EINVAL);
	TEST_EQ(waits_nccl_pair_read(work, 47, WAITS_NCCL_LATE, &comm, &block, 5, 0, 8, &pair), -EINVAL);
	TEST_EQ(read_pair(work, 2, 8, &pair), -EINVAL);
}

static void parts_are_dealt_otherwise_since_2_28(void)
{
	/* Which of 8 parts the channels from 0 on have. */
	static const uint8_t early[] = { 0, 4, 2, 6, 1, 5, 3, 7 };
	const struct waits_nccl_block block = { true, true, 1, 48, true };
	struct waits_nccl_pair pair;
	uint32_t either = 0;
	uint8_t work[48];

	make_pair(work);
	for (uint32_t channel = 0; channel < 8; channel++)
		for (uint32_t n = 1; n <= 8; n++) {
			put(work, 43, n, 1);
			TEST_ROW_EQ(channel, has_part(work, WAITS_NCCL_EARLY, channel), early[channel] < n);
			TEST_ROW_EQ(channel, has_part(work, WAITS_NCCL_LATE, channel), channel < n);
			either += waits_nccl_pair_read(work, 48, WAITS_NCCL_EARLY, &comm, &block, channel, 0, 8,
						       &pair) != -EINVAL;
		}
	TEST_EQ(either, 52);
}

/* @param is_either  The block is of 2.27 or later. */
static int read_part(const uint8_t *work, enum waits_nccl_age age, bool is_either, uint32_t channel)
{
	const struct waits_nccl_block block = { true, true, 1, 48, is_either };
	struct waits_nccl_pair pair;

	return waits_nccl_pair_read(work, 48, age, &comm, &block, channel, 0, 8, &pair);
}

/* Of two orders it is the other one by which a channel would neither send nor receive anything. */
static void a_channel_has_a_part_of_its_work(void)
{
	static const uint8_t early[] = { 0, 4, 2, 6, 1, 5, 3, 7 };
	uint8_t work[48];

	make_pair(work);
	put(work, 42, 0, 1);
	for (uint32_t channel = 0; channel < 8; channel++)
		for (uint32_t n = 0; n <= 8; n++) {
			const int by_early = early[channel] < n ? 0 : -EINVAL, by_late = channel < n ? 0 : -EINVAL;

			put(work, 43, n, 1);
			TEST_ROW_EQ(channel, read_part(work, WAITS_NCCL_EARLY, false, channel), by_early);
			TEST_ROW_EQ(channel, read_part(work, WAITS_NCCL_LATE, true, channel), by_late);
			TEST_ROW_EQ(channel, read_part(work, WAITS_NCCL_EARLY, true, channel),
				    by_early && by_late ? -EINVAL : 0);
		}
	/* Part 4 or 1 of two that are sent and one that is received. */
	put(work, 42, 2, 1);
	put(work, 43, 1, 1);
	TEST_EQ(read_part(work, WAITS_NCCL_EARLY, true, 1), -ENOENT);
}

static void make_tree(uint8_t *channel, uint32_t up, uint32_t a, uint32_t b, uint32_t c)
{
	memset(channel, 0, WAITS_NCCL_CHANNEL);
	put(channel, 36, up, 4);
	put(channel, 40, a, 4);
	put(channel, 44, b, 4);
	put(channel, 48, c, 4);
}

static void neighbours_in_a_tree_fit(void)
{
	static const struct {
		uint32_t up, down[3];
		int is;
	} rows[] = {
		{ 1, { 2, 4, 5 }, 0 },
		{ UINT32_MAX, { 2, UINT32_MAX, UINT32_MAX }, 0 },
		{ 1, { UINT32_MAX, UINT32_MAX, UINT32_MAX }, 0 },
		{ UINT32_MAX, { UINT32_MAX, UINT32_MAX, UINT32_MAX }, -EINVAL },
		{ 3, { 2, 4, 5 }, -EINVAL },
		{ 8, { 2, 4, 5 }, -EINVAL },
		{ 1, { 3, 4, 5 }, -EINVAL },
		{ 1, { 2, 8, 5 }, -EINVAL },
		{ 1, { 2, 4, 1 }, -EINVAL },
		{ 1, { 2, 4, 2 }, -EINVAL },
		{ 1, { UINT32_MAX, 4, UINT32_MAX }, -EINVAL },
	};
	uint8_t channel[WAITS_NCCL_CHANNEL];
	struct waits_nccl_tree tree;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		make_tree(channel, rows[i].up, rows[i].down[0], rows[i].down[1], rows[i].down[2]);
		TEST_ROW_EQ(i, waits_nccl_tree_read(channel, sizeof(channel), WAITS_NCCL_EARLY, &comm, &tree),
			    rows[i].is);
	}
	make_tree(channel, 1, 2, 4, 5);
	TEST_EQ(waits_nccl_tree_read(channel, sizeof(channel) - 1, WAITS_NCCL_EARLY, &comm, &tree), -EINVAL);
}

static void places_tell_ages_apart(void)
{
	uint8_t channel[WAITS_NCCL_CHANNEL] = { 0 };
	uint32_t place;

	put(channel, 24, 5, 4);
	TEST_EQ(waits_nccl_place_read(channel, sizeof(channel), WAITS_NCCL_EARLY, 8, &place), 0);
	TEST_EQ(place, 5);
	/* There is no map. */
	TEST_EQ(waits_nccl_place_read(channel, sizeof(channel), WAITS_NCCL_LATE, 8, &place), -EINVAL);
	put(channel, 24, UINT64_C(0x560000000010), 8);
	put(channel, 32, 6, 4);
	TEST_EQ(waits_nccl_place_read(channel, sizeof(channel), WAITS_NCCL_LATE, 8, &place), 0);
	TEST_EQ(place, 6);
	TEST_EQ(waits_nccl_place_read(channel, sizeof(channel), WAITS_NCCL_EARLY, 8, &place), -EINVAL);
	/* The heap of a program that lies at low addresses. */
	put(channel, 24, 0x01c8a010, 8);
	TEST_EQ(waits_nccl_place_read(channel, sizeof(channel), WAITS_NCCL_LATE, 8, &place), 0);
	TEST_EQ(place, 6);
	/* The largest place is none. */
	put(channel, 24, 65532, 8);
	TEST_EQ(waits_nccl_place_read(channel, sizeof(channel), WAITS_NCCL_LATE, 8, &place), -EINVAL);
	put(channel, 24, UINT64_C(0x560000000010), 8);
	put(channel, 32, 8, 4);
	TEST_EQ(waits_nccl_place_read(channel, sizeof(channel), WAITS_NCCL_LATE, 8, &place), -EINVAL);
	put(channel, 24, UINT64_C(0x560000000012), 8);
	put(channel, 32, 6, 4);
	TEST_EQ(waits_nccl_place_read(channel, sizeof(channel), WAITS_NCCL_LATE, 8, &place), -EINVAL);
}

TEST_SUITE(waits_nccl_work, TEST(what_a_block_keeps_is_believed_where_it_fits), TEST(a_work_says_of_whom_it_receives),
	   TEST(parts_are_dealt_otherwise_since_2_28), TEST(a_channel_has_a_part_of_its_work),
	   TEST(neighbours_in_a_tree_fit), TEST(places_tell_ages_apart));
