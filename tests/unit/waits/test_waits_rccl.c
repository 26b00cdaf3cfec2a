/* SPDX-License-Identifier: MIT */
/* What RCCL gives its kernels, and what is not that. */
#include <errno.h>
#include <string.h>

#include "testlib.h"
#include "waits/collective/collective.h"
#include "waits/collective/rccl.h"

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

/* ------------------------------------------------------------------ what a rank receives ----- */

static const struct waits_rccl_comm comm = { .rank = 2, .ranks = 4, .previous = 1, .next = 3 };
static const struct waits_rccl_channel channel = { .peers = COMM, .order = COMM, .previous = 1, .next = 3 };

static void functions_say_how_they_receive(void)
{
	static const struct {
		const char *name;
		bool is_pair, is_ring;
	} rows[] = {
		{ "_Z44ncclFunction_SendRecv_RING_SIMPLE_Sum_int8_tv", true, false },
		{ "_Z44ncclFunction_AllReduce_RING_SIMPLE_Sum_floatv", false, true },
		{ "_Z45ncclFunction_AllGather_RING_SIMPLE_Sum_int8_tv", false, true },
		{ "_Z48ncclFunction_ReduceScatter_RING_SIMPLE_Sum_floatv", false, true },
		/* Not every rank receives in these, or not so. */
		{ "_Z45ncclFunction_Broadcast_RING_SIMPLE_Sum_int8_tv", false, false },
		{ "_Z41ncclFunction_Reduce_RING_SIMPLE_Sum_floatv", false, false },
		{ "_Z44ncclFunction_AllReduce_TREE_SIMPLE_Sum_floatv", false, false },
		{ "_Z40ncclFunction_AllReduce_RING_LL_Sum_floatv", false, false },
		{ "_Z42ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_tP11ncclDevCommmP8ncclWork", false, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct waits_collective c;

		TEST_ROW_EQ(i, waits_collective_read(rows[i].name, &c), 0);
		TEST_ROW_EQ(i, waits_rccl_is_pair(&c), rows[i].is_pair);
		TEST_ROW_EQ(i, waits_rccl_is_ring(&c), rows[i].is_ring);
	}
}

static void channels_lie_as_each_release_has_them(void)
{
	static const uint32_t bytes[WAITS_RCCL_LAYOUTS] = { 160, 176, 224, 256 };

	for (unsigned i = 0; i < WAITS_RCCL_LAYOUTS; i++) {
		bool is_pointer;

		TEST_ROW_EQ(i, waits_rccl_channel_at(i, COMM, 0), COMM + 80);
		TEST_ROW_EQ(i, waits_rccl_channel_at(i, COMM, 3), COMM + 80 + 3 * bytes[i]);
		TEST_ROW_EQ(i, waits_rccl_peer_at(i, &channel, 3, &is_pointer), COMM + 3 * (i == 3 ? 8 : 672));
		TEST_ROW_EQ(i, is_pointer, i == 3);
	}
	TEST_EQ(waits_rccl_connection_at(COMM, 2), COMM + 336 + 2 * 112);
}

static void a_channel_has_the_ring_that_it_says(void)
{
	static const struct {
		size_t at;
		uint64_t value;
		size_t size;
	} wrong[] = { { 0, 0, 8 }, { 0, COMM + 4, 8 }, { 8, 4, 4 }, { 12, 4, 4 }, { 16, 0, 8 }, { 16, COMM + 2, 8 } };
	uint8_t bytes[WAITS_RCCL_CHANNEL];
	struct waits_rccl_channel c;

	for (size_t i = 0; i <= ARRAY_SIZE(wrong); i++) {
		memset(bytes, 0, sizeof(bytes));
		put(bytes, 0, COMM, 8);
		put(bytes, 8, 1, 4);
		put(bytes, 12, 3, 4);
		put(bytes, 16, COMM + 4, 8);
		if (i < ARRAY_SIZE(wrong))
			put(bytes, wrong[i].at, wrong[i].value, wrong[i].size);
		TEST_ROW_EQ(i, waits_rccl_channel_read(bytes, sizeof(bytes), 4, &c),
			    i < ARRAY_SIZE(wrong) ? -EINVAL : 0);
	}
	TEST_EQ(c.peers == COMM && c.order == COMM + 4 && c.previous == 1 && c.next == 3, true);
	TEST_EQ(waits_rccl_channel_read(bytes, sizeof(bytes) - 1, 4, &c), -EINVAL);
	TEST_EQ(waits_rccl_is_order(&comm, &channel, 2, 3, 1), true);
	TEST_EQ(waits_rccl_is_order(&comm, &channel, 1, 3, 1), false);
	TEST_EQ(waits_rccl_is_order(&comm, &channel, 2, 1, 1), false);
	TEST_EQ(waits_rccl_is_order(&comm, &channel, 2, 3, 3), false);
}

/* A work that receives of rank 3 by the second connection, in two waves, and sends in two more. */
static void make_pair(uint8_t *bytes, bool has_protocol)
{
	memset(bytes, 0, WAITS_RCCL_WORK);
	bytes[6] = 1;
	bytes[7] = 2;
	put(bytes, 8, has_protocol ? 0x90000003 : 0x40000003, 4);
	put(bytes, 12, 0x2022, 2);
	put(bytes, 36, has_protocol ? 0x90000003 : 0x40000003, 4);
	put(bytes, 40, 0x2221, 2);
}

static void a_pair_receives_of_one_rank(void)
{
	static const struct {
		unsigned layout;
		size_t at;
		uint64_t value;
		size_t size;
		int result;
	} rows[] = {
		{ 0, 0, 0, 0, 0 },
		{ 1, 0, 0, 0, 0 },
		{ 3, 0, 0, 0, 0 },
		{ 0, 6, 0, 1, -ENOENT },                              /* another work follows */
		{ 0, 7, 1, 1, -EINVAL },                              /* a collective operation */
		{ 0, 12, 0x2021, 2, -ENOENT },                        /* it sends */
		{ 0, 12, 0x2020, 2, -ENOENT },                        /* nothing */
		{ 1, 8, 0x10000003, 4, -ENOENT },                     /* by another protocol */
		{ 0, 8, 0xc0000003, 4, -EINVAL },                     /* no such connection */
		{ 0, 8, 0x40000002, 4, -EINVAL },                     /* of itself */
		{ 0, 8, 0x40000004, 4, -EINVAL },                     /* no such rank */
		{ 0, 8, 0x7fffffff, 4, -EINVAL },                     /* of nobody */
		{ 0, 12, 0x2002, 2, -EINVAL }, { 0, 12, 0x2092, 2, -EINVAL }, /* no waves, and too many */
		{ 0, 12, 0x2122, 2, -EINVAL },                        /* not from the first wave on */
		{ 0, 12, 0x3022, 2, -EINVAL }, { 0, 12, 0x0022, 2, -EINVAL }, /* so many parts there are not */
	};
	uint8_t bytes[WAITS_RCCL_WORK];
	struct waits_rccl_receive got;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		make_pair(bytes, rows[i].layout != 0);
		put(bytes, rows[i].at, rows[i].value, rows[i].size);
		TEST_ROW_EQ(i,
			    waits_rccl_receive_read(rows[i].layout, bytes, sizeof(bytes), true, &comm, &channel,
						    &got),
			    rows[i].result);
		if (!rows[i].result)
			TEST_ROW_EQ(i, got.from == 3 && got.connection == 1 && got.waves == 2, true);
	}
	TEST_EQ(waits_rccl_receive_read(0, bytes, sizeof(bytes) - 1, true, &comm, &channel, &got), -EINVAL);
}

static void a_ring_receives_of_the_rank_in_front(void)
{
	uint8_t bytes[WAITS_RCCL_WORK];
	struct waits_rccl_receive got;

	make_work(bytes);
	bytes[8] = 0x21;
	bytes[15] = 0x80;
	TEST_EQ(waits_rccl_receive_read(0, bytes, sizeof(bytes), false, &comm, &channel, &got), 0);
	TEST_EQ(got.from == 1 && got.connection == 2 && got.waves == 4, true);
	bytes[8] = 1;
	TEST_EQ(waits_rccl_receive_read(0, bytes, sizeof(bytes), false, &comm, &channel, &got), -EINVAL);
	make_pair(bytes, false);
	TEST_EQ(waits_rccl_receive_read(0, bytes, sizeof(bytes), false, &comm, &channel, &got), -ENOENT);
}

static void a_connection_counts(void)
{
	uint8_t bytes[WAITS_RCCL_CONNECTION] = { 0 };
	struct waits_rccl_connection c;

	TEST_EQ(waits_rccl_connection_read(bytes, sizeof(bytes), &c), -EINVAL);
	put(bytes, 24, COMM + 8, 8);
	put(bytes, 80, 100, 8);
	TEST_EQ(waits_rccl_connection_read(bytes, sizeof(bytes), &c), 0);
	TEST_EQ(c.arrived == COMM + 8 && c.taken == 100, true);
	TEST_EQ(waits_rccl_connection_read(bytes, sizeof(bytes) - 1, &c), -EINVAL);
	put(bytes, 24, COMM + 9, 8);
	TEST_EQ(waits_rccl_connection_read(bytes, sizeof(bytes), &c), -EINVAL);
}

/* ------------------------------------------------------------------ other releases ----------- */

enum { CHANNELS = 4, RANKS = 4, ORDERS = 2048, PEERS = 4096, COUNTS = 16384 };

/* Bytes of a channel, and whether it has the address of what it has of each rank, by release. */
static const struct {
	uint32_t channel;
	bool has_pointers;
} releases[WAITS_RCCL_LAYOUTS] = { { 160, false }, { 176, false }, { 224, false }, { 256, true } };

static uint8_t image[32768];

static uint64_t taken_of(uint32_t i, uint32_t rank)
{
	return 100 + 8 * (uint64_t)(i * RANKS + rank);
}

/* A communicator with its channels, each of them with a ring and connections of its own. */
static void make_image(size_t release)
{
	memset(image, 0, sizeof(image));
	make_comm(image);
	for (uint32_t i = 0; i < CHANNELS; i++) {
		const size_t at = 80 + (size_t)i * releases[release].channel;
		const size_t order = ORDERS + 16 * (size_t)i, peers = PEERS + (size_t)i * RANKS * 672;
		/* Two ways round. */
		const uint32_t previous = i % 2 ? 3 : 1, next = i % 2 ? 1 : 3, ring[RANKS] = { 2, next, 0, previous };

		put(image, at, COMM + (releases[release].has_pointers ? ORDERS + 512 + 32 * i : peers), 8);
		put(image, at + 8, previous, 4);
		put(image, at + 12, next, 4);
		put(image, at + 16, COMM + order, 8);
		for (uint32_t k = 0; k < RANKS; k++) {
			put(image, order + 4 * (size_t)k, ring[k], 4);
			put(image, ORDERS + 512 + 32 * i + 8 * (size_t)k, COMM + peers + 672 * (size_t)k, 8);
			put(image, peers + 672 * (size_t)k + 336 + 24, COMM + COUNTS + 64 * i + 8 * (size_t)k, 8);
			put(image, peers + 672 * (size_t)k + 336 + 80, taken_of(i, k), 8);
		}
	}
}

static uint64_t get(uint64_t address, size_t size)
{
	uint64_t value = 0;

	for (size_t i = size; i--;)
		value = value << 8 | image[(address - COMM + i) % sizeof(image)];
	return value;
}

/* Whether a channel has the ring that it says, where a release has it. */
static bool has_ring(unsigned int layout, uint32_t i, struct waits_rccl_channel *ret)
{
	const uint64_t at = waits_rccl_channel_at(layout, COMM, i) - COMM;

	return waits_rccl_channel_read(image + at, WAITS_RCCL_CHANNEL, RANKS, ret) == 0 &&
	       waits_rccl_is_order(&comm, ret, (uint32_t)get(ret->order, 4), (uint32_t)get(ret->order + 4, 4),
				   (uint32_t)get(ret->order + 12, 4));
}

/* By the second channel a release tells its image from those of all others, whatever else is the same. */
static void images_of_other_releases_are_refused(void)
{
	for (size_t i = 0; i < WAITS_RCCL_LAYOUTS; i++) {
		make_image(i);
		for (unsigned int layout = 0; layout < WAITS_RCCL_LAYOUTS; layout++) {
			struct waits_rccl_channel c;

			TEST_ROW_EQ(10 * i + layout, has_ring(layout, 1, &c), i == layout);
			for (uint32_t k = 0; k < CHANNELS * RANKS && i == layout; k++) {
				struct waits_rccl_connection found;
				bool is_pointer;
				uint64_t peer;

				TEST_ROW_EQ(i, has_ring(layout, k / RANKS, &c), true);
				peer = waits_rccl_peer_at(layout, &c, k % RANKS, &is_pointer);
				peer = waits_rccl_connection_at(is_pointer ? get(peer, 8) : peer, 0);
				TEST_ROW_EQ(i, waits_rccl_connection_read(image + (peer - COMM), WAITS_RCCL_CONNECTION,
									  &found), 0);
				TEST_ROW_EQ(i, found.taken, taken_of(k / RANKS, k % RANKS));
			}
		}
	}
}

TEST_SUITE(waits_rccl, TEST(images_of_other_releases_are_refused),
	   TEST(functions_say_how_they_receive), TEST(channels_lie_as_each_release_has_them),
	   TEST(a_channel_has_the_ring_that_it_says), TEST(a_pair_receives_of_one_rank),
	   TEST(a_ring_receives_of_the_rank_in_front), TEST(a_connection_counts),
	   TEST(kernels_are_known_by_their_arguments),
	   TEST(arguments_name_communicator_and_work), TEST(a_communicator_fits_together),
	   TEST(a_number_is_that_of_the_only_operation));
