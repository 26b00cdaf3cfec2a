/* SPDX-License-Identifier: MIT */
/* What RCCL gives its kernels, and what is not that. */
#include <errno.h>
#include <string.h>

#include "testlib.h"
#include "waits/rccl.h"

#define COMM UINT64_C(0x7f5000000000)

static void put(uint8_t *bytes, size_t at, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		bytes[at + i] = (uint8_t)(value >> 8 * i);
}

static void make_comm(uint8_t *bytes)
{
	memset(bytes, 0, WAITS_RCCL_COMM);
	put(bytes, 0, 2, 4);
	put(bytes, 4, 4, 4);
	put(bytes, 40, COMM + 80, 8);
	put(bytes, 88, 1, 4);
	put(bytes, 92, 3, 4);
}

static void make_work(uint8_t *bytes)
{
	memset(bytes, 0, WAITS_RCCL_WORK);
	bytes[6] = bytes[7] = 1;
	bytes[8] = 0x21;
	bytes[11] = 2;
	put(bytes, 8 + 48, 0x28c, 8);
}

static void kernels_are_known_by_their_arguments(void)
{
	static const struct {
		const char *symbol;
		bool is;
	} rows[] = {
		{ "_Z42ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_tP11ncclDevCommmP8ncclWork", true },
		{ "_Z42ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_tP11ncclDevCommmP8ncclWork.kd", true },
		{ "_Z47ncclKernelDebug_SendRecv_RING_SIMPLE_Sum_int8_tP11ncclDevCommmP8ncclWork",
		  true },
		{ "_Z42ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_tP11ncclDevComm12ncclWorkElem",
		  false },
		{ "_Z22ncclDevKernel_SendRecvP11ncclDevCommmP8ncclWork", false },
		{ "_Z44ncclFunction_AllReduce_RING_SIMPLE_Sum_floatv", false },
		{ "_Z4gemmP11ncclDevCommmP8ncclWork", false },
		{ "P11ncclDevCommmP8ncclWork", false },
		{ NULL, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		TEST_ROW_EQ(i, waits_rccl_is_kernel(rows[i].symbol), rows[i].is);
}

static void arguments_name_communicator_and_work(void)
{
	uint8_t bytes[WAITS_RCCL_ARGUMENTS] = { 0 };
	struct waits_rccl_launch l;

	put(bytes, 0, COMM, 8);
	put(bytes, 8, 5, 8);
	put(bytes, 16, COMM + 0x1000, 8);
	TEST_EQ(waits_rccl_launch_read(bytes, sizeof(bytes), &l), 0);
	TEST_EQ(l.comm, COMM);
	TEST_EQ(l.work, COMM + 0x1000);
	TEST_EQ(l.n, 2);
	TEST_EQ(waits_rccl_launch_read(bytes, sizeof(bytes) - 1, &l), -EINVAL);
	/* So many channels there are not. */
	put(bytes, 8, UINT64_C(1) << 32, 8);
	TEST_EQ(waits_rccl_launch_read(bytes, sizeof(bytes), &l), -EINVAL);
	put(bytes, 8, 0, 8);
	TEST_EQ(waits_rccl_launch_read(bytes, sizeof(bytes), &l), -EINVAL);
}

/* Whatever does not fit is refused: one field at a time. */
static void a_communicator_fits_together(void)
{
	static const struct {
		size_t at;
		uint64_t value;
		size_t size;
	} wrong[] = {
		{ 0, 4, 4 },  { 0, UINT32_MAX, 4 }, { 4, 0, 4 },     { 4, 65537, 4 },
		{ 88, 4, 4 }, { 92, 4, 4 },         { 40, COMM, 8 }, { 40, COMM + 96, 8 },
	};
	uint8_t bytes[WAITS_RCCL_COMM];
	struct waits_rccl_comm c;

	make_comm(bytes);
	TEST_EQ(waits_rccl_comm_read(bytes, sizeof(bytes), COMM, &c), 0);
	TEST_EQ(c.rank == 2 && c.ranks == 4 && c.previous == 1 && c.next == 3, true);
	TEST_EQ(waits_rccl_comm_read(bytes, sizeof(bytes) - 1, COMM, &c), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		make_comm(bytes);
		put(bytes, wrong[i].at, wrong[i].value, wrong[i].size);
		TEST_ROW_EQ(i, waits_rccl_comm_read(bytes, sizeof(bytes), COMM, &c), -EINVAL);
	}
}

static void a_number_is_that_of_the_only_operation(void)
{
	static const struct {
		size_t at;
		uint8_t value;
		int result;
	} rows[] = {
		{ 6, 0, -ENOENT },                          /* another work follows */
		{ 7, 2, -ENOENT },                          /* sends and receives */
		{ 7, 3, -ENOENT },  { 8 + 56, 1, -ENOENT }, /* a second operation */
		{ 7, 0, -EINVAL },  { 7, 4, -EINVAL },      { 8, 0x20, -EINVAL },
		{ 10, 2, -EINVAL }, { 11, 0, -EINVAL },     { 11, 33, -EINVAL },
	};
	uint8_t bytes[WAITS_RCCL_WORK];
	uint64_t number = 0;

	make_work(bytes);
	TEST_EQ(waits_rccl_work_read(bytes, sizeof(bytes), &number), 0);
	TEST_EQ(number, 0x28c);
	TEST_EQ(waits_rccl_work_read(bytes, sizeof(bytes) - 1, &number), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		make_work(bytes);
		bytes[rows[i].at] = rows[i].value;
		TEST_ROW_EQ(i, waits_rccl_work_read(bytes, sizeof(bytes), &number), rows[i].result);
	}
}

TEST_SUITE(waits_rccl, TEST(kernels_are_known_by_their_arguments),
	   TEST(arguments_name_communicator_and_work), TEST(a_communicator_fits_together),
	   TEST(a_number_is_that_of_the_only_operation));
