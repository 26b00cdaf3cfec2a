/* SPDX-License-Identifier: MIT */
#include "symbols/aql.h"
#include "testlib.h"

static void decodes_a_dispatch(void)
{
	static const struct {
		uint16_t header, setup, workgroup[3], reserved;
		uint32_t grid[3], private_bytes, group_bytes;
		uint64_t object, kernarg, reserved2, signal;
	} packet = { 0x1502, 0xfffe, { 64, 2, 3 }, 0xffff, { 1000, 20, 30 }, 16, 4096,
		     0x7f0000001000, 0x7f0000002000, UINT64_MAX, 0x7f0000003000 };
	struct symbols_aql_packet p;

	TEST_EQ_FATAL(symbols_aql_decode(test_tail_dup(&packet, 64), 64, &p), 0);
	TEST_EQ(p.type, SYMBOLS_AQL_KERNEL_DISPATCH);
	TEST_EQ(p.barrier, true);
	TEST_EQ(p.acquire, SYMBOLS_AQL_SCOPE_SYSTEM);
	TEST_EQ(p.release, SYMBOLS_AQL_SCOPE_SYSTEM);
	TEST_EQ(p.n_dimensions, 2);
	TEST_EQ(p.workgroup_size[0], 64);
	TEST_EQ(p.workgroup_size[1], 2);
	TEST_EQ(p.workgroup_size[2], 3);
	TEST_EQ(p.grid_size[0], 1000);
	TEST_EQ(p.grid_size[1], 20);
	TEST_EQ(p.grid_size[2], 30);
	TEST_EQ(p.private_segment_bytes, 16);
	TEST_EQ(p.group_segment_bytes, 4096);
	TEST_EQ(p.kernel_object, 0x7f0000001000);
	TEST_EQ(p.kernarg_address, 0x7f0000002000);
	TEST_EQ(p.completion_signal, 0x7f0000003000);
	TEST_EQ(symbols_aql_decode(&packet, 63, &p), -EINVAL);
}

/* Only a dispatch has sizes; every header decodes to some type with a name. */
static void decodes_every_type(void)
{
	for (unsigned type = 0; type < 256; type++) {
		uint8_t bytes[64];
		struct symbols_aql_packet p;

		memset(bytes, 0x11, sizeof(bytes));
		bytes[0] = (uint8_t)type;
		TEST_ROW_EQ(type, symbols_aql_decode(bytes, 64, &p), 0);
		TEST_ROW_EQ(type, p.type, type < 6 ? type : SYMBOLS_AQL_TYPE_COUNT);
		TEST_ROW_EQ(type, p.kernel_object, type == 2 ? 0x1111111111111111 : 0);
		TEST_ROW_EQ(type, p.completion_signal,
			    type >= 2 && type <= 5 ? 0x1111111111111111 : 0);
	}
}

static void decodes_what_barriers_wait_for(void)
{
	uint64_t words[8] = { 3, 0x1000, 0, 0x2000, 0, 0x3000, 0, 0x4000 };
	struct symbols_aql_packet p;

	TEST_EQ_FATAL(symbols_aql_decode(test_tail_dup(words, 64), 64, &p), 0);
	TEST_EQ(p.type, SYMBOLS_AQL_BARRIER_AND);
	TEST_EQ(p.dependencies[0], 0x1000);
	TEST_EQ(p.dependencies[1], 0);
	TEST_EQ(p.dependencies[4], 0x3000);
	TEST_EQ(p.completion_signal, 0x4000);
	/* Of AMD's own kinds, the one with format 2. */
	words[0] = 0x20000;
	words[2] = UINT64_MAX;
	words[3] = 0xff;
	words[4] = 3;
	TEST_EQ_FATAL(symbols_aql_decode(test_tail_dup(words, 64), 64, &p), 0);
	TEST_EQ(p.type, SYMBOLS_AQL_BARRIER_VALUE);
	TEST_EQ(p.dependencies[0], 0x1000);
	TEST_EQ(p.value, -1);
	TEST_EQ(p.mask, 0xff);
	TEST_EQ(p.condition, SYMBOLS_AQL_GTE);
	TEST_EQ(p.completion_signal, 0x4000);
	words[4] = 4;
	TEST_EQ_FATAL(symbols_aql_decode(test_tail_dup(words, 64), 64, &p), 0);
	TEST_EQ(p.condition, SYMBOLS_AQL_CONDITION_COUNT);
	words[0] = 0x10000;
	TEST_EQ_FATAL(symbols_aql_decode(test_tail_dup(words, 64), 64, &p), 0);
	TEST_EQ(p.type, SYMBOLS_AQL_VENDOR_SPECIFIC);
	TEST_EQ(p.completion_signal, 0);
}

static void decodes_a_descriptor(void)
{
	struct symbols_kernel_descriptor d;
	uint8_t bytes[64] = { 0x00, 0x10, 0, 0, 0x20, 0, 0, 0, 12, 0, 0, 0 };
	int64_t offset = -0x1040;

	memcpy(bytes + 16, &offset, 8);
	bytes[44] = 3;
	bytes[48] = 1;
	bytes[52] = 2;
	bytes[57] = 4;
	TEST_EQ_FATAL(symbols_kernel_descriptor_decode(test_tail_dup(bytes, 64), 64, 0x5040, &d), 0);
	TEST_EQ(d.group_segment_bytes, 4096);
	TEST_EQ(d.private_segment_bytes, 32);
	TEST_EQ(d.kernarg_bytes, 12);
	TEST_EQ(d.entry, 0x4000);
	TEST_EQ(d.pgm_rsrc1, 1);
	TEST_EQ(d.pgm_rsrc2, 2);
	TEST_EQ(d.pgm_rsrc3, 3);
	TEST_EQ(d.properties, 0x400);
	TEST_EQ(symbols_kernel_descriptor_decode(bytes, 63, 0, &d), -EINVAL);
}

TEST_SUITE(symbols_aql, TEST(decodes_a_dispatch), TEST(decodes_every_type), TEST(decodes_what_barriers_wait_for),
	   TEST(decodes_a_descriptor));
