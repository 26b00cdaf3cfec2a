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
	uint8_t bytes[WAITS_HOSTCALL_BYTES] = { 0 };

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
	TEST_EQ(b.layout, WAITS_HOSTCALL_STACKS);
	TEST_EQ(b.at, AT + 56);
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
		/* The other layout has the signal there. */
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
	TEST_EQ(waits_hostcall_calls(&b, packets, sizeof(packets) - 1, marks, &c), -EBADMSG);
	/* A circle, on which each packet is free: it has an end for who counts them. */
	NEXT(3) = 3;
	TEST_EQ(waits_hostcall_calls(&b, packets, sizeof(packets), marks, &c), -EBADMSG);
	/* A packet on both stacks. */
	NEXT(3) = 1;
	TEST_EQ(waits_hostcall_calls(&b, packets, sizeof(packets), marks, &c), -EBADMSG);
	NEXT(3) = 0;
	/* A ready one that is answered. */
	MARK(1) = 0;
	TEST_EQ(waits_hostcall_calls(&b, packets, sizeof(packets), marks, &c), -EBADMSG);
	MARK(1) = 1;
	TEST_EQ(waits_hostcall_calls(&b, packets, sizeof(packets), marks, &c), 0);
	/* One behind the last. */
	other = b;
	other.packets = 3;
	TEST_EQ(waits_hostcall_calls(&other, packets, sizeof(packets), marks, &c), -EBADMSG);
}

/* With phases: three packets, of which 1 and 2 are not answered; 0 never called. */
#define PHASES	3u
#define BITS(i) bits[(i) * 4]
#define ASKS(i) bits[PHASES * 8 + (i) * 16 + 8]

static const uint64_t PHASE_WORDS[6] = { AT + 80, AT + 80 + 12, AT + 0x2000, AT + 80 + 24, AT + 80 + 72, AT + 0x1000 };
static const uint32_t PHASE_BITS[2 * PHASES] = { 0, 1, 0, 0, 0, 1 };
static uint8_t bits[PHASES * WAITS_HOSTCALL_PACKET_BYTES];

static int read_phases(const uint64_t *words, uint64_t n, struct waits_hostcall *ret)
{
	uint8_t bytes[WAITS_HOSTCALL_BYTES];

	for (size_t i = 0; i < 6; i++)
		put(bytes + 8 * i, words[i], 8);
	put(bytes + 48, n, 8);
	for (size_t i = 0; i < 2 * PHASES; i++)
		put(&BITS(i), PHASE_BITS[i], 4);
	for (size_t i = 0; i < PHASES; i++) {
		put(&ASKS(i) - 8, HEADERS[i].lanes, 8);
		put(&ASKS(i), HEADERS[i].service, 4);
		put(&ASKS(i) + 4, UINT32_MAX, 4);
	}
	return waits_hostcall_read(bytes, sizeof(bytes), AT, ret);
}

static void phases_that_differ_are_calls(void)
{
	struct waits_hostcall b;
	struct waits_calls c;

	/* Behind the number is what the compiler left there. */
	TEST_EQ(read_phases(PHASE_WORDS, UINT64_C(0xffffffff00000003), &b), 0);
	TEST_EQ(b.layout, WAITS_HOSTCALL_PHASES);
	TEST_EQ(b.at, AT + 80);
	TEST_EQ(b.doorbell, AT + 0x1000);
	TEST_EQ(b.packets, PHASES);
	TEST_EQ(waits_hostcall_again(&b), PHASES * 8);
	TEST_EQ(waits_hostcall_calls(&b, bits, sizeof(bits), NULL, &c), 0);
	TEST_EQ(c.free, 1);
	TEST_EQ(c.ready, 2);
	TEST_EQ(c.taken, 0);
	TEST_EQ(c.answered, 0);
	TEST_EQ(c.services[WAITS_SERVICE_PRINTF], 1);
	TEST_EQ(c.services[WAITS_SERVICE_MEMORY], 1);
	TEST_EQ(c.lanes, 66);

	/* Answered, and of another phase than at first. */
	BITS(PHASES + 1) = 1;
	TEST_EQ(waits_hostcall_calls(&b, bits, sizeof(bits), NULL, &c), 0);
	TEST_EQ(c.free, 2);
	TEST_EQ(c.ready, 1);
	TEST_EQ(c.services[WAITS_SERVICE_PRINTF], 0);
	ASKS(2) = 77;
	TEST_EQ(waits_hostcall_calls(&b, bits, sizeof(bits), NULL, &c), 0);
	TEST_EQ(c.services[WAITS_SERVICE_OTHER], 1);
}

static void other_memory_has_no_phases(void)
{
	static const struct {
		size_t which;
		uint64_t word;
	} rows[] = {
		{ 0, AT + 0x2000 }, { 0, AT + 48 },  { 0, AT - 64 },	 { 0, 0 },	     { 0, AT + 84 },
		{ 1, AT + 80 },	    { 1, AT + 96 },  { 1, UINT64_MAX },	 { 2, 0 },	     { 2, AT + 0x2002 },
		{ 3, AT + 80 + 16 }, { 3, AT },	     { 4, AT + 80 + 96 }, { 4, AT },	     { 4, UINT64_MAX },
		{ 5, 0 },	    { 5, AT + 0x1004 },
		/* A mask of stacks. */
		{ 5, 3 },	    { 5, UINT64_MAX },
	};
	static const uint64_t counts[] = { 0, 1, 2, 4, UINT32_MAX };
	struct waits_hostcall b;
	uint64_t words[6];

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		memcpy(words, PHASE_WORDS, sizeof(words));
		words[rows[i].which] = rows[i].word;
		TEST_ROW_EQ(i, read_phases(words, PHASES, &b), -EINVAL);
	}
	for (size_t i = 0; i < TEST_COUNT(counts); i++)
		TEST_ROW_EQ(i, read_phases(PHASE_WORDS, counts[i], &b), -EINVAL);
	/* Each of the three arrays has its own length. */
	for (size_t i = 0; i < 3; i++) {
		memcpy(words, PHASE_WORDS, sizeof(words));
		for (size_t k = 0; k < 3 - i; k++)
			words[(const size_t[]){ 4, 3, 1 }[k]] += 16;
		TEST_ROW_EQ(i, read_phases(words, PHASES, &b), -EINVAL);
	}
}

/* As many packets as a buffer says itself to have. */
static int read_many(uint64_t at, uint64_t n)
{
	const uint64_t words[6] = { at, at + 4 * n, AT + 0x2000, at + 8 * n, at + 24 * n, AT + 0x1000 };
	struct waits_hostcall b;

	return read_phases(words, n, &b);
}

static void more_phases_than_are_looked_at_are_refused(void)
{
	TEST_EQ(read_many(AT + 88, 1), 0);
	TEST_EQ(read_many(AT + 80, WAITS_HOSTCALL_PACKETS_MAX), 0);
	TEST_EQ(read_many(AT + 80, WAITS_HOSTCALL_PACKETS_MAX + 1), -E2BIG);
	TEST_EQ(read_many(AT + 80, UINT32_MAX), -E2BIG);
}

static void phases_that_do_not_fit_are_refused(void)
{
	struct waits_hostcall b;
	struct waits_calls c;

	TEST_EQ(read_phases(PHASE_WORDS, PHASES, &b), 0);
	TEST_EQ(waits_hostcall_calls(&b, bits, sizeof(bits) - 1, NULL, &c), -EBADMSG);
	BITS(0) = 2;
	TEST_EQ(waits_hostcall_calls(&b, bits, sizeof(bits), NULL, &c), -EBADMSG);
	BITS(0) = 0;
	BITS(2 * PHASES - 1) = 0x81;
	TEST_EQ(waits_hostcall_calls(&b, bits, sizeof(bits), NULL, &c), -EBADMSG);
	BITS(2 * PHASES - 1) = 1;
	TEST_EQ(waits_hostcall_calls(&b, bits, sizeof(bits), NULL, &c), 0);
}

TEST_SUITE(waits_hostcall, TEST(calls_are_counted), TEST(what_is_asked_for_may_be_unknown),
	   TEST(other_memory_is_no_buffer), TEST(stacks_that_do_not_fit_are_refused),
	   TEST(phases_that_differ_are_calls), TEST(other_memory_has_no_phases),
	   TEST(more_phases_than_are_looked_at_are_refused), TEST(phases_that_do_not_fit_are_refused));
