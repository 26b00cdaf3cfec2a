/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "testlib.h"
#include "waits/rocm/hostcall.h"

#define AT	UINT64_C(0x7f6000000000)
#define PACKETS 4u
#define CALL	1u
#define NEXT(i) packets[(i) * WAITS_HOSTCALL_PACKET_BYTES]
#define MARK(i) packets[(i) * WAITS_HOSTCALL_PACKET_BYTES + 20]

/* A buffer of four packets: 3 is free, 1 is ready, the host has taken 2, and 0 is answered and not given back. */
static const uint64_t WORDS[6] = { AT + 56, AT + 56 + 96, AT + 0x1000, 0x103, 0x201, 3 };
static const struct {
	uint64_t next, lanes;
	uint32_t service, control;
} HEADERS[PACKETS] = {
	{ 0, 1, 2, 0 },
	{ 0, 0x8001, 2, CALL },
	{ 0x55, UINT64_MAX, 3, CALL },
	{ 0, UINT64_MAX, 77, CALL },
};

static uint8_t packets[PACKETS * WAITS_HOSTCALL_PACKET_BYTES];

static void put(uint8_t *to, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		to[i] = (uint8_t)(value >> 8 * i);
}

static int read_words(const uint64_t *words, size_t size, struct waits_hostcall *ret)
{
	uint8_t bytes[WAITS_HOSTCALL_BYTES];

	for (size_t i = 0; i < 6; i++)
		put(bytes + 8 * i, words[i], 8);
	for (size_t i = 0; i < PACKETS; i++) {
		uint8_t *p = packets + i * WAITS_HOSTCALL_PACKET_BYTES;

		put(p, HEADERS[i].next, 8);
		put(p + 8, HEADERS[i].lanes, 8);
		put(p + 16, HEADERS[i].service, 4);
		put(p + 20, HEADERS[i].control, 4);
	}
	return waits_hostcall_read(bytes, size, AT, ret);
}

/* What waits_hostcall_read() makes of a buffer of which one word is another one. */
static int read_with(size_t which, uint64_t word)
{
	struct waits_hostcall b;
	uint64_t words[6];

	memcpy(words, WORDS, sizeof(words));
	words[which] = word;
	return read_words(words, WAITS_HOSTCALL_BYTES, &b);
}

static void calls_are_counted(void)
{
	uint8_t marks[PACKETS];
	struct waits_hostcall b;
	struct waits_calls c;

	TEST_EQ(read_words(WORDS, WAITS_HOSTCALL_BYTES, &b), 0);
	TEST_EQ(b.headers, AT + 56);
	TEST_EQ(b.doorbell, AT + 0x1000);
	TEST_EQ(b.packets, PACKETS);
	TEST_EQ(waits_hostcall_calls(&b, packets, sizeof(packets), marks, &c), 0);
	TEST_EQ(c.free, 1);
	TEST_EQ(c.ready, 1);
	TEST_EQ(c.taken, 1);
	TEST_EQ(c.answered, 1);
	TEST_EQ(c.services[WAITS_SERVICE_PRINTF], 1);
	TEST_EQ(c.services[WAITS_SERVICE_MEMORY], 1);
	TEST_EQ(c.services[WAITS_SERVICE_OTHER], 0);
	TEST_EQ(c.lanes, 66);
}

static void what_is_asked_for_may_be_unknown(void)
{
	uint8_t marks[PACKETS];
	struct waits_hostcall b;
	struct waits_calls c;

	TEST_EQ(read_words(WORDS, WAITS_HOSTCALL_BYTES, &b), 0);
	b.free = 0;
	TEST_EQ(waits_hostcall_calls(&b, packets, sizeof(packets), marks, &c), 0);
	TEST_EQ(c.free, 0);
	TEST_EQ(c.taken, 2);
	TEST_EQ(c.services[WAITS_SERVICE_OTHER], 1);
	TEST_STR(waits_service_name(WAITS_SERVICE_OTHER), "an unknown service");
	TEST_STR(waits_service_name((enum waits_service)99), "an unknown service");
}

static void other_memory_is_no_buffer(void)
{
	static const struct {
		size_t which;
		uint64_t word;
		int want;
	} rows[] = {
		{ 0, AT + 0x2000, -EINVAL }, /* Too far from the buffer, */
		{ 0, AT + 40, -EINVAL },     /* in it, */
		{ 0, AT - 64, -EINVAL },     /* in front of it, */
		{ 0, 0, -EINVAL },
		{ 0, AT + 57, -EINVAL },
		{ 1, AT + 56, -EINVAL },      /* no packets, */
		{ 1, AT + 56 + 97, -EINVAL }, /* a part of one, */
		{ 1, AT + 56 + 120, -EINVAL },
		{ 1, AT + 56 + 48, -EINVAL }, /* for which another mask would do. */
		{ 1, AT + 48, -EINVAL },
		{ 2, 0, -EINVAL },
		{ 2, AT + 0x1001, -EINVAL },
		{ 5, 0, -EINVAL },
		{ 5, 5, -EINVAL },
		{ 5, 7, -EINVAL },
		{ 5, UINT64_MAX, -EINVAL },
		/* The layout that newer device libraries can be built with has the signal there. */
		{ 5, AT + 0x1000, -EINVAL },
		/* One less than a power of two. */
		{ 1, AT + 56 + 72, 0 },
	};
	struct waits_hostcall b;
	uint64_t words[6];

	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_ROW_EQ(i, read_with(rows[i].which, rows[i].word), rows[i].want);
	TEST_EQ(read_words(WORDS, WAITS_HOSTCALL_BYTES - 1, &b), -EINVAL);
	TEST_EQ(read_words(WORDS, 0, &b), -EINVAL);

	memcpy(words, WORDS, sizeof(words));
	words[1] = words[0] + UINT64_C(24) * 16384;
	words[5] = 16383;
	TEST_EQ(read_words(words, WAITS_HOSTCALL_BYTES, &b), 0);
	words[1] = words[0] + UINT64_C(24) * 32768;
	words[5] = 32767;
	TEST_EQ(read_words(words, WAITS_HOSTCALL_BYTES, &b), -E2BIG);
	words[1] = words[0] + (UINT64_C(24) << 32);
	words[5] = UINT32_MAX;
	TEST_EQ(read_words(words, WAITS_HOSTCALL_BYTES, &b), -E2BIG);
}

static void stacks_that_do_not_fit_are_refused(void)
{
	uint8_t marks[PACKETS];
	struct waits_hostcall b, other;
	struct waits_calls c;

	TEST_EQ(read_words(WORDS, WAITS_HOSTCALL_BYTES, &b), 0);
	TEST_EQ(waits_hostcall_calls(&b, packets, sizeof(packets) - 1, marks, &c), -EINVAL);
	/* A circle, on which each packet is free: it has an end for who counts them. */
	NEXT(3) = 3;
	TEST_EQ(waits_hostcall_calls(&b, packets, sizeof(packets), marks, &c), -EINVAL);
	/* A packet on both stacks. */
	NEXT(3) = 1;
	TEST_EQ(waits_hostcall_calls(&b, packets, sizeof(packets), marks, &c), -EINVAL);
	NEXT(3) = 0;
	/* A ready one that is answered. */
	MARK(1) = 0;
	TEST_EQ(waits_hostcall_calls(&b, packets, sizeof(packets), marks, &c), -EINVAL);
	MARK(1) = 1;
	TEST_EQ(waits_hostcall_calls(&b, packets, sizeof(packets), marks, &c), 0);
	/* One behind the last. */
	other = b;
	other.packets = 3;
	TEST_EQ(waits_hostcall_calls(&other, packets, sizeof(packets), marks, &c), -EINVAL);
}

TEST_SUITE(waits_hostcall, TEST(calls_are_counted), TEST(what_is_asked_for_may_be_unknown),
	   TEST(other_memory_is_no_buffer), TEST(stacks_that_do_not_fit_are_refused));
