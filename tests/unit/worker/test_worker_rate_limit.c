/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "agentd/worker/rule/rate_limit.h"
#include "testlib.h"

#define MS UINT64_C(1000000)

static struct ipc_rule rule(uint32_t events, uint32_t rate_ms, uint32_t parts, uint32_t key_ms)
{
	return (struct ipc_rule){ .rate_events = events, .rate_ms = rate_ms, .key_parts = parts, .key_ms = key_ms };
}

/* Two in a second, whatever they are; the third is counted, the next second allows two more. */
static void rate_is_for_a_period(void)
{
	static const struct {
		uint64_t ms;
		bool allowed;
	} rows[] = { { 5, true },    { 6, true },    { 7, false },   { 1004, false },
		     { 1005, true }, { 1006, true }, { 1999, false } };
	const struct ipc_rule r = rule(2, 1000, 0, 0);
	static struct rate_limit s;

	s = (struct rate_limit){ 0 };
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		bool allowed = rate_limit_allows(&s, &r, rows[i].ms * MS);

		TEST_ROW_EQ(i, allowed, rows[i].allowed);
		if (allowed)
			TEST_ROW_EQ(i, rate_limit_recorded(&s, &r, "x", rows[i].ms * MS), 1);
	}
	TEST_EQ(rate_limit_untold(&s), 3);
}

static void no_limit_is_no_limit(void)
{
	const struct ipc_rule r = rule(0, 0, 0, 0);
	static struct rate_limit s;

	s = (struct rate_limit){ 0 };
	for (uint64_t i = 1; i <= 1000; i++) {
		TEST_ROW_EQ(i, rate_limit_allows(&s, &r, i), true);
		TEST_ROW_EQ(i, rate_limit_is_repeat(&s, &r, "same", i), false);
		rate_limit_recorded(&s, &r, "same", i);
	}
	TEST_EQ(rate_limit_untold(&s), 0);
}

/* The next record stands for what was left out since the last one. */
static void repeats_are_counted_once(void)
{
	const struct ipc_rule r = rule(0, 0, IPC_KEY_CODE, 1000);
	static struct rate_limit s;

	s = (struct rate_limit){ 0 };
	TEST_EQ(rate_limit_is_repeat(&s, &r, "a", 1 * MS), false);
	TEST_EQ(rate_limit_recorded(&s, &r, "a", 1 * MS), 1);
	TEST_EQ(rate_limit_is_repeat(&s, &r, "b", 2 * MS), false);
	TEST_EQ(rate_limit_recorded(&s, &r, "b", 2 * MS), 1);
	TEST_EQ(rate_limit_is_repeat(&s, &r, "a", 3 * MS), true);
	TEST_EQ(rate_limit_is_repeat(&s, &r, "a", 1000 * MS), true);
	TEST_EQ(rate_limit_is_repeat(&s, &r, "b", 1001 * MS), true);
	TEST_EQ(rate_limit_untold(&s), 3);
	TEST_EQ(rate_limit_is_repeat(&s, &r, "a", 1001 * MS), false);
	TEST_EQ(rate_limit_recorded(&s, &r, "a", 1001 * MS), 3);
	TEST_EQ(rate_limit_untold(&s), 1);
}

/* A program that faults at ever new places takes no more memory; nothing is lost of the counts. */
static void the_oldest_key_is_forgotten(void)
{
	const struct ipc_rule r = rule(0, 0, IPC_KEY_PC, 1000000);
	static struct rate_limit s;
	char key[16];

	s = (struct rate_limit){ 0 };
	for (unsigned i = 0; i < RATE_LIMIT_KEYS_MAX + 8; i++) {
		snprintf(key, sizeof(key), "%u", i);
		TEST_ROW_EQ(i, rate_limit_recorded(&s, &r, key, (1 + i) * MS), 1);
		TEST_ROW_EQ(i, rate_limit_is_repeat(&s, &r, key, (1 + i) * MS), true);
	}
	TEST_EQ(s.n_keys, RATE_LIMIT_KEYS_MAX);
	TEST_EQ(rate_limit_is_repeat(&s, &r, "7", 100 * MS), false);
	TEST_EQ(rate_limit_is_repeat(&s, &r, "8", 100 * MS), true);
	TEST_EQ(rate_limit_untold(&s), RATE_LIMIT_KEYS_MAX + 8 + 1);
}

TEST_SUITE(worker_rate_limit, TEST(rate_is_for_a_period), TEST(no_limit_is_no_limit), TEST(repeats_are_counted_once),
	   TEST(the_oldest_key_is_forgotten));
