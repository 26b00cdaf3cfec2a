/* SPDX-License-Identifier: MIT */
#include "agentd/worker/session/subscribers.h"
#include "testlib.h"

static struct subscriber wants(uint32_t client, uint64_t exceptions, uint32_t look_ms, bool hold)
{
	return (struct subscriber){ client, exceptions, look_ms, hold };
}

/* Three clients; the sum follows each change, and a client that wants nothing counts for nothing. */
static void the_sum_follows_the_clients(void)
{
	struct subscribers s = { 0 };
	struct subscriber who, sum;

	sum = subscribers_sum(&s);
	TEST_EQ(sum.exceptions, 0);
	who = wants(1, 3, 20, false);
	TEST_EQ(subscribers_set(&s, &who), 0);
	who = wants(2, 4, 0, true);
	TEST_EQ(subscribers_set(&s, &who), 0);
	who = wants(3, 0, 900, true);
	TEST_EQ(subscribers_set(&s, &who), 0);
	sum = subscribers_sum(&s);
	TEST_EQ(sum.exceptions, 7);
	TEST_EQ(sum.look_ms, 20);
	TEST_EQ(sum.hold, true);
	TEST_EQ(s.n, 2);
	who = wants(1, 8, 5, false);
	TEST_EQ(subscribers_set(&s, &who), 0);
	TEST_EQ(subscribers_get(&s, 2).exceptions, 4);
	TEST_EQ(subscribers_get(&s, 2).hold, true);
	TEST_EQ(subscribers_remove(&s, 2), true);
	TEST_EQ(subscribers_get(&s, 2).client, 2);
	TEST_EQ(subscribers_get(&s, 2).exceptions, 0);
	TEST_EQ(subscribers_remove(&s, 2), false);
	sum = subscribers_sum(&s);
	TEST_EQ(sum.exceptions, 8);
	TEST_EQ(sum.look_ms, 5);
	TEST_EQ(sum.hold, false);
	who = wants(1, 0, 5, false);
	TEST_EQ(subscribers_set(&s, &who), 0);
	TEST_EQ(s.n, 0);
	subscribers_deinit(&s);
}

/* More clients than the first allocation has room for. */
static void many_clients(void)
{
	struct subscribers s = { 0 };

	for (uint32_t i = 1; i <= 40; i++) {
		const struct subscriber who = wants(i, UINT64_C(1) << i, i, false);

		TEST_EQ(subscribers_set(&s, &who), 0);
	}
	TEST_EQ(subscribers_sum(&s).exceptions, (UINT64_C(1) << 41) - 2);
	TEST_EQ(subscribers_sum(&s).look_ms, 40);
	for (uint32_t i = 1; i <= 40; i++)
		TEST_EQ(subscribers_remove(&s, i), true);
	TEST_EQ(subscribers_sum(&s).exceptions, 0);
	subscribers_deinit(&s);
}

TEST_SUITE(worker_subscribers, TEST(the_sum_follows_the_clients), TEST(many_clients));
