/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "testlib.h"
#include "waits/grid.h"

/* What waits_grid_read() makes of a record with these two words; the rest of it does not matter. */
static int read_words(uint32_t word, uint32_t groups, size_t size, struct waits_grid *ret)
{
	uint8_t record[WAITS_GRID_BYTES];

	memset(record, 0xa5, sizeof(record));
	for (unsigned i = 0; i < 4; i++) {
		record[32 + i] = (uint8_t)(word >> 8 * i);
		record[40 + i] = (uint8_t)(groups >> 8 * i);
	}
	return waits_grid_read(record, size, ret);
}

static void records_are_read(void)
{
	static const struct {
		uint32_t word, groups;
		struct waits_grid want;
	} rows[] = {
		{ 0x00000001, 2, { 1, 2, 0 } },
		{ 0x00050027, 40, { 39, 40, 5 } },
		/* All have come, and the last one has not counted the rounds on yet. */
		{ 0x00050028, 40, { 40, 40, 5 } },
		{ 0xffff0000, 65535, { 0, 65535, 65535 } },
	};
	struct waits_grid g;

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		TEST_ROW_EQ(i, read_words(rows[i].word, rows[i].groups, WAITS_GRID_BYTES, &g), 0);
		TEST_ROW_EQ(i, g.has, rows[i].want.has);
		TEST_ROW_EQ(i, g.expects, rows[i].want.expects);
		TEST_ROW_EQ(i, g.generation, rows[i].want.generation);
	}
}

static void other_memory_is_no_record(void)
{
	struct waits_grid g;

	TEST_EQ(read_words(0x00050029, 40, WAITS_GRID_BYTES, &g), -EINVAL);
	TEST_EQ(read_words(0x00050000, 0, WAITS_GRID_BYTES, &g), -EINVAL);
	TEST_EQ(read_words(0x00050000, 65536, WAITS_GRID_BYTES, &g), -EINVAL);
	TEST_EQ(read_words(0x0005ffff, UINT32_MAX, WAITS_GRID_BYTES, &g), -EINVAL);
	TEST_EQ(read_words(0x00050027, 40, WAITS_GRID_BYTES - 1, &g), -EINVAL);
	TEST_EQ(read_words(0x00050027, 40, 0, &g), -EINVAL);
}

static void only_a_change_of_the_upper_half_is_polled(void)
{
	const struct waits_word good = { .bytes = 4, .op = WAITS_COMPARE_NE, .mask = 0xffff0000, .with = 0x50000 };
	struct waits_word other = good;

	TEST_EQ(waits_grid_is_word(&good), true);
	other.mask = 0xffff;
	TEST_EQ(waits_grid_is_word(&other), false);
	other = good;
	other.op = WAITS_COMPARE_EQ;
	TEST_EQ(waits_grid_is_word(&other), false);
	other = good;
	other.bytes = 8;
	TEST_EQ(waits_grid_is_word(&other), false);
}

TEST_SUITE(waits_grid, TEST(records_are_read), TEST(other_memory_is_no_record),
	   TEST(only_a_change_of_the_upper_half_is_polled));
