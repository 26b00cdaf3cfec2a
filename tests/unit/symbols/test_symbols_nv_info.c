/* SPDX-License-Identifier: MIT */
/* The records are those that nvcc 13.0 wrote, but for what is wrong with them on purpose. */
#include "symbols/metadata/nv_info.h"
#include "testlib.h"

/* Parameter 1 of 8 bytes at 8, then 0 of 8 at 0; bank: 0x210, 16 bytes. */
static const uint8_t two[] = {
	4, 0x37, 4, 0, 0x82, 0, 0, 0,
	4, 0x17, 12, 0, 0, 0, 0, 0, 1, 0, 8, 0, 0, 0xf0, 0x21, 0,
	4, 0x17, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf5, 0x21, 0,
	3, 0x1b, 0xff, 0,
	3, 0x19, 16, 0,
	4, 0x0a, 8, 0, 0x15, 0, 0, 0, 0x10, 2, 16, 0,
};

static void reads_records(void)
{
	struct symbols_nv_info i;

	TEST_EQ(symbols_nv_info_read(test_tail_dup(two, sizeof(two)), sizeof(two), &i), 0);
	TEST_EQ(i.has_bank, true);
	TEST_EQ(i.base, 0x210);
	TEST_EQ(i.size, 16);
	TEST_EQ_FATAL(i.n, 2);
	for (size_t k = 0; k < 2; k++) {
		TEST_ROW_EQ(k, i.parameters[k].is_known, true);
		TEST_ROW_EQ(k, i.parameters[k].offset, 8 * k);
		TEST_ROW_EQ(k, i.parameters[k].size, 8);
	}
}

/* Of kernels with more than 4 KiB of parameters. */
static void reads_the_second_form(void)
{
	static const uint8_t bytes[] = {
		4, 0x45, 12, 0, 0, 0, 0, 0, 1, 0, 0x70, 0x17, 4, 0, 0, 0,
		4, 0x45, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x70, 0x17, 0, 5,
		3, 0x19, 0x80, 0x17,
	};
	struct symbols_nv_info i;

	TEST_EQ(symbols_nv_info_read(test_tail_dup(bytes, sizeof(bytes)), sizeof(bytes), &i), 0);
	TEST_EQ(i.has_bank, false);
	TEST_EQ(i.size, 0x1780);
	TEST_EQ_FATAL(i.n, 2);
	TEST_EQ(i.parameters[0].size, 6000);
	TEST_EQ(i.parameters[1].offset, 6000);
	TEST_EQ(i.parameters[1].size, 4);
}

/* Every cut is told but those between two records, and nothing is read behind it. */
static void survives_any_end(void)
{
	static const size_t ends[] = { 0, 8, 24, 40, 44, 48, sizeof(two) };
	struct symbols_nv_info i;

	for (size_t size = 0, k = 0; size <= sizeof(two); size++) {
		bool fits = size == ends[k];

		k += fits;
		TEST_ROW_EQ(size, symbols_nv_info_read(test_tail_dup(two, size), size, &i),
			    fits ? 0 : -EBADMSG);
	}
}

static void survives_lies(void)
{
	/* A record that is too short; position 65535; the same position twice. */
	static const uint8_t bytes[] = {
		4, 0x17, 4, 0, 0, 0, 0, 0,
		4, 0x0a, 0, 0,
		4, 0x17, 12, 0, 0, 0, 0, 0, 0xff, 0xff, 8, 0, 0, 0xf0, 0x21, 0,
		4, 0x17, 12, 0, 0, 0, 0, 0, 3, 0, 8, 0, 0, 0xf0, 0x21, 0,
		4, 0x17, 12, 0, 0, 0, 0, 0, 3, 0, 9, 0, 0, 0xf0, 0x21, 0,
	};
	struct symbols_nv_info i;

	TEST_EQ(symbols_nv_info_read(test_tail_dup(bytes, sizeof(bytes)), sizeof(bytes), &i), 0);
	TEST_EQ(i.has_bank, false);
	TEST_EQ(i.n, 65536);
	TEST_EQ(i.parameters[3].offset, 8);
	TEST_EQ(i.parameters[0].is_known, false);
}

TEST_SUITE(symbols_nv_info, TEST(reads_records), TEST(reads_the_second_form), TEST(survives_any_end),
	   TEST(survives_lies));
