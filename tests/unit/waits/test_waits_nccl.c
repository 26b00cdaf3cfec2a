/* SPDX-License-Identifier: MIT */
/* What NCCL gives its kernels, where each release keeps what has come, and what is not that. */
#include <errno.h>
#include <string.h>

#include "testlib.h"
#include "waits/collective/nccl.h"

#define COMM UINT64_C(0x7f5c00000000)

static void put(uint8_t *bytes, size_t at, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		bytes[at + i] = (uint8_t)(value >> 8 * i);
}

static void kernels_are_known_by_their_names(void)
{
	static const struct {
		const char *symbol;
		bool is;
	} rows[] = {
		{ "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE", true },
		{ "_Z21ncclDevKernel_Generic24ncclDevKernelArgsStorageILm4096EE", true },
		{ "_Z22ncclDevKernel_SendRecvP11ncclDevCommmP8ncclWork", true },
		{ "_Z41ncclDevFunc_AllReduce_Sum_f32_RING_SIMPLEv", false },
		/* Other arguments: symmetric memory, releases before 2.19, a service kernel. */
		{ "_Z41ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_f3225ncclSymkDevWorkArgs4K", false },
		{ "_Z42ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_tP11ncclDevCommmP8ncclWork", false },
		{ "_Z40ncclDevKernelGinResetSignalsAndCounters", false },
		{ "gemm", false },
		{ NULL, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		TEST_ROW_EQ(i, waits_nccl_is_kernel(rows[i].symbol), rows[i].is);
}

static void names_say_how_data_comes(void)
{
	static const struct {
		const char *symbol;
		enum waits_nccl_protocol protocol;
		bool is_kernel, has_empty_steps;
	} rows[] = {
		{ "_Z41ncclDevFunc_AllReduce_Sum_f32_RING_SIMPLEv", WAITS_NCCL_SIMPLE, false, true },
		{ "_Z37ncclDevFunc_AllReduce_Sum_f32_RING_LLv", WAITS_NCCL_LL, false, true },
		{ "_Z40ncclDevFunc_AllReduce_Sum_f32_RING_LL128v", WAITS_NCCL_LL128, false, true },
		{ "_Z29ncclDevFunc_AllGather_RING_LLv", WAITS_NCCL_LL, false, false },
		{ "_Z44ncclDevFunc_ReduceScatter_Sum_f32_RING_LL128v", WAITS_NCCL_LL128, false, false },
		{ "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE", WAITS_NCCL_LL, true,
		  true },
		/* A rank may end before it has received, or receives of several. */
		{ "_Z29ncclDevFunc_Broadcast_RING_LLv", WAITS_NCCL_NO_PROTOCOL, false, false },
		{ "_Z34ncclDevFunc_Reduce_Sum_f32_RING_LLv", WAITS_NCCL_NO_PROTOCOL, false, false },
		{ "_Z34ncclDevFunc_Reduce_Sum_f32_TREE_LLv", WAITS_NCCL_NO_PROTOCOL, false, false },
		{ "_Z37ncclDevFunc_AllReduce_Sum_f32_TREE_LLv", WAITS_NCCL_LL, false, false },
		{ "_Z41ncclDevFunc_AllReduce_Sum_f32_NVLS_SIMPLEv", WAITS_NCCL_NO_PROTOCOL, false, false },
		{ "_Z20ncclDevFunc_SendRecvv", WAITS_NCCL_NO_PROTOCOL, false, false },
		{ "_Z21ncclDevKernel_Generic24ncclDevKernelArgsStorageILm4096EE", WAITS_NCCL_NO_PROTOCOL, true, false },
	};
	static const char *const others[] = { "gemm", NULL, "_Z41ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_f3225ncclSymkDevWorkArgs4K",
					      "_Z42ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_tP11ncclDevCommmP8ncclWork" };
	struct waits_nccl_function f;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		TEST_ROW_EQ(i, waits_nccl_function_read(rows[i].symbol, &f), 0);
		TEST_ROW_EQ(i, f.protocol, rows[i].protocol);
		TEST_ROW_EQ(i, f.is_kernel, rows[i].is_kernel);
		TEST_ROW_EQ(i, f.has_empty_steps, rows[i].has_empty_steps);
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		TEST_ROW_EQ(i, waits_nccl_function_read(others[i], &f), -ENOENT);
}

static void arguments_name_communicator_and_channels(void)
{
	uint8_t bytes[WAITS_NCCL_ARGUMENTS] = { 0 };
	struct waits_nccl_launch l;

	put(bytes, 0, COMM, 8);
	TEST_EQ(waits_nccl_launch_read(bytes, sizeof(bytes), &l), -EINVAL);
	put(bytes, 8, UINT64_C(0x8000000000000005), 8);
	TEST_EQ(waits_nccl_launch_read(bytes, sizeof(bytes), &l), 0);
	TEST_EQ(l.comm, COMM);
	TEST_EQ(waits_nccl_channel_of(l.channels, 0), 0);
	TEST_EQ(waits_nccl_channel_of(l.channels, 1), 2);
	TEST_EQ(waits_nccl_channel_of(l.channels, 2), 63);
	TEST_EQ(waits_nccl_channel_of(l.channels, 3), WAITS_NCCL_CHANNELS_MAX);
	TEST_EQ(waits_nccl_channel_of(l.channels, UINT32_MAX), WAITS_NCCL_CHANNELS_MAX);
	TEST_EQ(l.has_empty_channels, true);
	TEST_EQ(waits_nccl_launch_read(bytes, 24, &l) == 0 && l.has_empty_channels, true);
	TEST_EQ(waits_nccl_launch_read(bytes, 4096, &l) == 0 && !l.has_empty_channels, true);
	TEST_EQ(waits_nccl_launch_read(bytes, sizeof(bytes) - 1, &l), -EINVAL);
	put(bytes, 0, COMM + 4, 8);
	TEST_EQ(waits_nccl_launch_read(bytes, sizeof(bytes), &l), -EINVAL);
}

/* Pointer to the channels, their place and distance, and how many; connection of a rank, and its count: by release. */
static const struct {
	unsigned layout;
	size_t pointer;
	uint32_t first, channel, channels, receive, step, layouts, sizes;
} releases[] = {
	{ 0, 48, 64, 240, 32, 304, 104, 0x01, 8 }, /* 2.19 */
	{ 1, 64, 80, 272, 32, 288, 96, 0x16, 16 },  /* 2.20 */
	{ 2, 64, 80, 368, 32, 304, 104, 0x16, 16 }, /* 2.21, 2.23, 2.24 */
	{ 3, 56, 64, 368, 32, 304, 104, 0x08, 16 }, /* 2.22 */
	{ 4, 64, 80, 352, 64, 304, 104, 0x16, 16 }, /* 2.25 */
	{ 5, 64, 96, 368, 64, 304, 104, 0x20, 16 }, /* 2.26 */
	{ 6, 56, 96, 368, 64, 304, 104, 0x40, 16 }, /* 2.27 to 2.30 */
};

static void communicators_lie_as_each_release_has_them(void)
{
	uint8_t bytes[WAITS_NCCL_CONNECTION] = { 0 };
	struct waits_rccl_connection connection;
	struct waits_rccl_comm c;
	uint32_t layouts;

	TEST_EQ(ARRAY_SIZE(releases), WAITS_NCCL_LAYOUTS);
	for (size_t i = 0; i < ARRAY_SIZE(releases); i++) {
		const unsigned layout = releases[i].layout;

		memset(bytes, 0, sizeof(bytes));
		put(bytes, 0, 2, 4);
		put(bytes, 4, 4, 4);
		put(bytes, releases[i].pointer, COMM + releases[i].first, 8);
		put(bytes, releases[i].sizes, 8 * 65536, 4);
		put(bytes, releases[i].sizes + 4, 8 * 614400, 4);
		TEST_ROW_EQ(i, waits_nccl_slot_bytes(layout, bytes, WAITS_NCCL_COMM, WAITS_NCCL_LL), 65536);
		TEST_ROW_EQ(i, waits_nccl_slot_bytes(layout, bytes, WAITS_NCCL_COMM, WAITS_NCCL_LL128), 614400);
		TEST_ROW_EQ(i, waits_nccl_comm_read(bytes, WAITS_NCCL_COMM, COMM, &c, &layouts), 0);
		TEST_ROW_EQ(i, layouts, releases[i].layouts);
		TEST_ROW_EQ(i, c.rank == 2 && c.ranks == 4, true);
		/* A copy of it elsewhere is none. */
		TEST_ROW_EQ(i, waits_nccl_comm_read(bytes, WAITS_NCCL_COMM, COMM + 8, &c, &layouts), -EINVAL);
		TEST_ROW_EQ(i, waits_nccl_channel_at(layout, 0), releases[i].first);
		TEST_ROW_EQ(i, waits_nccl_channel_at(layout, 3), releases[i].first + 3 * releases[i].channel);
		TEST_ROW_EQ(i, waits_nccl_channel_at(layout, releases[i].channels - 1) != 0, true);
		TEST_ROW_EQ(i, waits_nccl_channel_at(layout, releases[i].channels), 0);
		TEST_ROW_EQ(i, waits_nccl_connection_at(layout), releases[i].receive);
		memset(bytes, 0, sizeof(bytes));
		put(bytes, 48, COMM + 0x100, 8);
		put(bytes, releases[i].step, 77, 8);
		TEST_ROW_EQ(i, waits_nccl_connection_read(layout, bytes, sizeof(bytes), &connection), 0);
		TEST_ROW_EQ(i, connection.arrived == COMM + 0x100 && connection.taken == 77, true);
		TEST_ROW_EQ(i, waits_nccl_connection_read(layout, bytes, sizeof(bytes) - 1, &connection), -EINVAL);
	}
}

/* Whatever does not fit is refused: one field at a time. */
static void what_does_not_fit_is_no_communicator(void)
{
	static const struct {
		size_t at;
		uint64_t value;
		size_t size;
	} wrong[] = { { 0, 4, 4 },	    { 4, 0, 4 },  { 4, 65537, 4 },
		      { 4, UINT32_MAX, 4 }, { 56, 0, 8 }, { 56, COMM + 80, 8 } };
	uint8_t bytes[WAITS_NCCL_CONNECTION];
	struct waits_rccl_connection connection;
	struct waits_rccl_comm c;
	uint32_t layouts;

	for (size_t i = 0; i <= ARRAY_SIZE(wrong); i++) {
		memset(bytes, 0, sizeof(bytes));
		put(bytes, 0, 2, 4);
		put(bytes, 4, 4, 4);
		put(bytes, 56, COMM + 96, 8);
		if (i < ARRAY_SIZE(wrong))
			put(bytes, wrong[i].at, wrong[i].value, wrong[i].size);
		TEST_ROW_EQ(i, waits_nccl_comm_read(bytes, WAITS_NCCL_COMM, COMM, &c, &layouts),
			    i < ARRAY_SIZE(wrong) ? -EINVAL : 0);
	}
	TEST_EQ(waits_nccl_comm_read(bytes, WAITS_NCCL_COMM - 1, COMM, &c, &layouts), -EINVAL);
	memset(bytes, 0, sizeof(bytes));
	TEST_EQ(waits_nccl_connection_read(6, bytes, sizeof(bytes), &connection), -EINVAL);
	put(bytes, 48, COMM + 4, 8);
	TEST_EQ(waits_nccl_connection_read(6, bytes, sizeof(bytes), &connection), -EINVAL);
}

static void slots_lie_in_buffers_that_are_believed(void)
{
	static const struct {
		uint32_t size, slot;
	} sizes[] = { { 0, 0 }, { 1016, 0 }, { 1024, 128 }, { 1200, 144 }, { UINT32_MAX, 0 }, { 1u << 30, 1u << 27 } };
	uint8_t comm[WAITS_NCCL_COMM] = { 0 }, connection[WAITS_NCCL_CONNECTION] = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		put(comm, 16, sizes[i].size, 4);
		TEST_ROW_EQ(i, waits_nccl_slot_bytes(6, comm, sizeof(comm), WAITS_NCCL_LL), sizes[i].slot);
	}
	TEST_EQ(waits_nccl_slot_bytes(6, comm, sizeof(comm) - 1, WAITS_NCCL_LL), 0);
	TEST_EQ(waits_nccl_slot_bytes(6, comm, sizeof(comm), WAITS_NCCL_SIMPLE), 0);
	TEST_EQ(waits_nccl_flag_at(connection, sizeof(connection), WAITS_NCCL_LL), 0);
	put(connection, 0, COMM + 0x100, 8);
	put(connection, 8, COMM + 0x208, 8);
	TEST_EQ(waits_nccl_flag_at(connection, sizeof(connection), WAITS_NCCL_LL), COMM + 0x100);
	TEST_EQ(waits_nccl_flag_at(connection, sizeof(connection), WAITS_NCCL_LL128), 0);
	put(connection, 8, COMM + 0x200, 8);
	TEST_EQ(waits_nccl_flag_at(connection, sizeof(connection), WAITS_NCCL_LL128), COMM + 0x270);
	TEST_EQ(waits_nccl_flag_at(connection, sizeof(connection) - 1, WAITS_NCCL_LL), 0);
	TEST_EQ(waits_nccl_flag_at(connection, sizeof(connection), WAITS_NCCL_SIMPLE), 0);
}

/* A flag is the number of its step, plus 1: of LL, the lower half of it. */
static void flags_say_what_has_come(void)
{
	static const struct {
		enum waits_nccl_protocol protocol;
		uint32_t slot;
		uint64_t taken, first, second;
		enum waits_nccl_slot is;
	} rows[] = {
		{ WAITS_NCCL_LL, 0, 0, 0, 0, WAITS_NCCL_SLOT_OLD },
		{ WAITS_NCCL_LL, 7, 0, 0, 0, WAITS_NCCL_SLOT_OLD },
		{ WAITS_NCCL_LL, 0, 0, 1, 1, WAITS_NCCL_SLOT_CAME },
		{ WAITS_NCCL_LL, 4, 100, 93, 93, WAITS_NCCL_SLOT_OLD },
		{ WAITS_NCCL_LL, 4, 100, 101, 101, WAITS_NCCL_SLOT_CAME },
		{ WAITS_NCCL_LL, 4, 100, 109, 109, WAITS_NCCL_SLOT_CAME },
		/* Of a line that is just being written over, a half has come. */
		{ WAITS_NCCL_LL, 4, 100, 101, 93, WAITS_NCCL_SLOT_CAME },
		{ WAITS_NCCL_LL, 4, 100, 93, 101, WAITS_NCCL_SLOT_CAME },
		/* What no step has in this slot, and lines that were never whole. */
		{ WAITS_NCCL_LL, 4, 100, 100, 100, WAITS_NCCL_SLOT_WRONG },
		{ WAITS_NCCL_LL, 4, 100, 101, 102, WAITS_NCCL_SLOT_WRONG },
		{ WAITS_NCCL_LL, 4, 100, 93, 85, WAITS_NCCL_SLOT_WRONG },
		{ WAITS_NCCL_LL, 4, 100, 93, 0, WAITS_NCCL_SLOT_WRONG },
		/* Where the lower half turns over, 0 is a step's: of slot 7 alone. */
		{ WAITS_NCCL_LL, 7, UINT32_MAX, 0, 0, WAITS_NCCL_SLOT_CAME },
		{ WAITS_NCCL_LL, 0, UINT32_MAX, 1, 1, WAITS_NCCL_SLOT_CAME },
		{ WAITS_NCCL_LL, 7, UINT32_MAX, UINT32_MAX - 7, UINT32_MAX - 7, WAITS_NCCL_SLOT_OLD },
		{ WAITS_NCCL_LL, 0, UINT64_C(0x100000000), UINT32_MAX - 6, UINT32_MAX - 6, WAITS_NCCL_SLOT_OLD },
		{ WAITS_NCCL_LL, 0, UINT64_C(0x100000000), 1, 1, WAITS_NCCL_SLOT_CAME },
		{ WAITS_NCCL_LL, 3, UINT64_C(0x90000000), 0, 0, WAITS_NCCL_SLOT_OLD },
		{ WAITS_NCCL_LL128, 0, 0, 0, 0, WAITS_NCCL_SLOT_OLD },
		{ WAITS_NCCL_LL128, 4, 100, UINT64_MAX, 93, WAITS_NCCL_SLOT_OLD },
		{ WAITS_NCCL_LL128, 4, 100, 0, 101, WAITS_NCCL_SLOT_CAME },
		{ WAITS_NCCL_LL128, 4, 100, 0, 102, WAITS_NCCL_SLOT_WRONG },
		{ WAITS_NCCL_LL128, 0, UINT64_C(0x100000000), 0, UINT64_C(0x100000001), WAITS_NCCL_SLOT_CAME },
		{ WAITS_NCCL_LL128, 0, UINT64_C(0x100000000), 0, 1, WAITS_NCCL_SLOT_OLD },
	};
	uint8_t bytes[WAITS_NCCL_FLAG];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const bool is_ll = rows[i].protocol == WAITS_NCCL_LL;

		memset(bytes, 0xa5, sizeof(bytes));
		put(bytes, is_ll ? 4 : 0, rows[i].first, is_ll ? 4 : 8);
		put(bytes, is_ll ? 12 : 8, rows[i].second, is_ll ? 4 : 8);
		TEST_ROW_EQ(i, waits_nccl_slot_read(bytes, rows[i].protocol, rows[i].slot, rows[i].taken), rows[i].is);
	}
}

TEST_SUITE(waits_nccl, TEST(kernels_are_known_by_their_names), TEST(names_say_how_data_comes),
	   TEST(arguments_name_communicator_and_channels), TEST(communicators_lie_as_each_release_has_them),
	   TEST(what_does_not_fit_is_no_communicator), TEST(slots_lie_in_buffers_that_are_believed),
	   TEST(flags_say_what_has_come));
