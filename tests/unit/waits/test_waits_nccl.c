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
	TEST_EQ(waits_nccl_launch_read(bytes, sizeof(bytes) - 1, &l), -EINVAL);
	put(bytes, 0, COMM + 4, 8);
	TEST_EQ(waits_nccl_launch_read(bytes, sizeof(bytes), &l), -EINVAL);
}

/* Pointer to the channels, their place and distance, and how many; connection of a rank, and its count: by release. */
static const struct {
	unsigned layout;
	size_t pointer;
	uint32_t first, channel, channels, receive, step, layouts;
} releases[] = {
	{ 0, 48, 64, 240, 32, 304, 104, 0x01 }, /* 2.19 */
	{ 1, 64, 80, 272, 32, 288, 96, 0x16 },  /* 2.20 */
	{ 2, 64, 80, 368, 32, 304, 104, 0x16 }, /* 2.21, 2.23, 2.24 */
	{ 3, 56, 64, 368, 32, 304, 104, 0x08 }, /* 2.22 */
	{ 4, 64, 80, 352, 64, 304, 104, 0x16 }, /* 2.25 */
	{ 5, 64, 96, 368, 64, 304, 104, 0x20 }, /* 2.26 */
	{ 6, 56, 96, 368, 64, 304, 104, 0x40 }, /* 2.27 to 2.30 */
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

TEST_SUITE(waits_nccl, TEST(kernels_are_known_by_their_names), TEST(arguments_name_communicator_and_channels),
	   TEST(communicators_lie_as_each_release_has_them), TEST(what_does_not_fit_is_no_communicator));
