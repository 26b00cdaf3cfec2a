/* SPDX-License-Identifier: MIT */
/* Convergence barriers of a warp: who is blocked, and for whom; and states that contradict themselves. */
#include <errno.h>
#include <string.h>

#include "testlib.h"
#include "waits/cbu.h"

#define ALL UINT32_MAX

enum { ACTIVE, EXITED, COLLECTIVE, MASKS, STATES = MASKS + WAITS_CBU_BARRIERS };

/* A warp whose lanes are all ready. */
static void make(uint32_t *words, uint32_t lanes)
{
	memset(words, 0, WAITS_CBU_WORDS * sizeof(*words));
	words[EXITED] = ~lanes;
	for (uint32_t i = 0; i < WAITS_CBU_LANES; i++)
		words[STATES + i] = lanes >> i & 1;
}

static void set(uint32_t *words, uint32_t lanes, uint32_t state)
{
	for (uint32_t i = 0; i < WAITS_CBU_LANES; i++)
		if (lanes >> i & 1)
			words[STATES + i] = state;
}

static void who_is_blocked_waits_for_those_who_have_not_come(void)
{
	uint32_t words[WAITS_CBU_WORDS];
	struct waits_cbu c;

	make(words, 0x0fffffff);
	words[ACTIVE] = 0xfc;
	words[MASKS + 2] = ALL;
	set(words, 3, 9 + 2);
	words[MASKS + 15] = 0xff00;
	set(words, 0xff00, 9 + 15);
	TEST_EQ(waits_cbu_read(words, WAITS_CBU_WORDS, 0x0fffffff, &c), 0);
	TEST_EQ(c.blocked[2], 3u);
	/* Those that have exited are waited for no more. */
	TEST_EQ(c.missing[2], 0x0ffffffcu);
	TEST_EQ(c.blocked[15], 0xff00u);
	TEST_EQ(c.missing[15], 0u);
	TEST_EQ(c.missing[0], 0u);
	TEST_EQ(c.ready, 0x0fff00fcu);
	TEST_EQ(waits_cbu_barrier_of(&c, 1), 2u);
	TEST_EQ(waits_cbu_barrier_of(&c, 0xff00), 15u);
	TEST_EQ(waits_cbu_barrier_of(&c, 0x101), WAITS_CBU_BARRIERS);
	TEST_EQ(waits_cbu_barrier_of(&c, 7), WAITS_CBU_BARRIERS);
	TEST_EQ(waits_cbu_barrier_of(&c, 0), WAITS_CBU_BARRIERS);
}

static void who_is_in_a_collective_operation_is_told(void)
{
	uint32_t words[WAITS_CBU_WORDS];
	struct waits_cbu c;

	make(words, ALL);
	words[COLLECTIVE] = 0xffff;
	set(words, 0xff, 8);
	set(words, 0xf0000000, 4);
	set(words, 0x0f000000, 7);
	TEST_EQ(waits_cbu_read(words, WAITS_CBU_WORDS, ALL, &c), 0);
	TEST_EQ(c.in_collective, 0xffu);
	TEST_EQ(c.collective, 0xffffu);
	/* Who sleeps waits for nobody; of the others it is not known for whom they do. */
	TEST_EQ(c.ready, 0xf0ffff00u);
}

/* Each is one change of a state that is sound: of word @c at. */
static void what_contradicts_itself_proves_nothing(void)
{
	static const struct {
		uint32_t at, value;
		int r;
	} rows[] = {
		{ ACTIVE, 0x2, 0 },
		/* Lane 0 is blocked, and lane 31 has exited. */
		{ ACTIVE, 0x1, -EBADMSG },
		{ ACTIVE, 0x80000000, -EBADMSG },
		{ EXITED, 0x80000001, -EBADMSG },
		/* Lane 31 has not exited, and is not there: the barrier counts it. */
		{ EXITED, 0, -EBADMSG },
		{ MASKS, 0x7ffffffe, -EBADMSG },
		{ MASKS, 0x7fffffff, 0 },
		/* Nobody is blocked there. */
		{ MASKS + 1, ALL, 0 },
		{ COLLECTIVE, 0, -EBADMSG },
		{ COLLECTIVE, 0x2, 0 },
		{ STATES + 0, 10, -EBADMSG },
		{ STATES + 0, 0, -EBADMSG },
		{ STATES + 0, 25, -EBADMSG },
		{ STATES + 0, ALL, -EBADMSG },
		{ STATES + 0, 24, -EBADMSG },
		{ STATES + 0, 6, 0 },
		/* What is told of lanes that are gone does not matter. */
		{ STATES + 31, 9, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint32_t words[WAITS_CBU_WORDS];
		struct waits_cbu c;

		make(words, 0x7fffffff);
		words[MASKS] = ALL;
		set(words, 1, 9);
		words[COLLECTIVE] = 2;
		set(words, 2, 8);
		/* Who is in a collective operation does not execute. */
		if (rows[i].at == ACTIVE && rows[i].value == 2)
			set(words, 2, 1);
		words[rows[i].at] = rows[i].value;
		TEST_ROW_EQ(i, waits_cbu_read(words, WAITS_CBU_WORDS, 0x7fffffff, &c), rows[i].r);
	}
}

static void so_many_words_are_a_state(void)
{
	uint32_t words[WAITS_CBU_WORDS + 1] = { 0 };
	struct waits_cbu c;

	TEST_EQ(waits_cbu_read(words, WAITS_CBU_WORDS - 1, 0, &c), -EINVAL);
	TEST_EQ(waits_cbu_read(words, WAITS_CBU_WORDS + 1, 0, &c), -EINVAL);
	TEST_EQ(waits_cbu_read(words, 0, 0, &c), -EINVAL);
	TEST_EQ(waits_cbu_read(words, WAITS_CBU_WORDS, 0, &c), 0);
	/* What a driver has not filled in is all ones. */
	memset(words, 0xff, sizeof(words));
	TEST_EQ(waits_cbu_read(words, WAITS_CBU_WORDS, ALL, &c), -EBADMSG);
	TEST_EQ(waits_cbu_read(words, WAITS_CBU_WORDS, 1, &c), -EBADMSG);
}

TEST_SUITE(waits_cbu, TEST(who_is_blocked_waits_for_those_who_have_not_come),
	   TEST(who_is_in_a_collective_operation_is_told),
	   TEST(what_contradicts_itself_proves_nothing), TEST(so_many_words_are_a_state));
