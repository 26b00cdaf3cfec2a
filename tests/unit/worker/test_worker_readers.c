/* SPDX-License-Identifier: MIT */
/* How long queues may be stopped for clients that may only look. */
#include "agentd/worker/session/readers.h"
#include "testlib.h"

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

static void a_full_bucket_is_all_there_is_at_once(void)
{
	struct readers b;
	uint32_t retry = 1;

	readers_init(&b, 250, 50, 7 * S);
	TEST_EQ(readers_grant(&b, 1000, 7 * S, &retry), 250);
	TEST_EQ(readers_grant(&b, 20, 7 * S, &retry), 20);
	readers_charge(&b, 200 * MS, 7 * S);
	TEST_EQ(readers_grant(&b, 1000, 7 * S, &retry), 50);
	readers_charge(&b, MS, 7 * S);
	TEST_EQ(readers_grant(&b, 1000, 7 * S, &retry), 0);
	TEST_EQ(retry, 21);
	/* Who wants less need not wait for so much. */
	TEST_EQ(readers_grant(&b, 49, 7 * S, &retry), 49);
}

static void it_fills_at_its_rate_and_no_further(void)
{
	struct readers b;
	uint32_t retry;

	readers_init(&b, 250, 50, 7 * S);
	readers_charge(&b, 250 * MS, 7 * S);
	TEST_EQ(readers_grant(&b, 1000, 7 * S + 999 * MS, &retry), 0);
	TEST_EQ(readers_grant(&b, 1000, 8 * S, &retry), 50);
	TEST_EQ(readers_grant(&b, 1000, 10 * S, &retry), 150);
	TEST_EQ(readers_grant(&b, 1000, 3600 * S, &retry), 250);
	/* A clock that stands still, or goes back, fills nothing. */
	readers_charge(&b, 250 * MS, 3600 * S);
	TEST_EQ(readers_grant(&b, 1000, 3000 * S, &retry), 0);
}

static void asking_often_does_not_slow_it_down(void)
{
	struct readers b;
	uint32_t retry;
	uint64_t now = 7 * S;

	readers_init(&b, 250, 50, now);
	readers_charge(&b, 250 * MS, now);
	while (now < 8 * S) {
		now += 100000;
		readers_grant(&b, 1000, now, &retry);
	}
	TEST_EQ(readers_grant(&b, 1000, now, &retry), 50);
}

/* However the stops are cut: never more than the bucket and what came in meanwhile, and one stop too long. */
static void the_sum_is_bounded(void)
{
	static const uint32_t stops_ms[] = { 1, 7, 20, 49, 50, 90, 251 };

	for (size_t i = 0; i < TEST_COUNT(stops_ms); i++) {
		struct readers b;
		uint64_t now = 7 * S, sum = 0;
		uint32_t retry;

		readers_init(&b, 250, 50, now);
		while (now < 12 * S) {
			if (readers_grant(&b, 1000, now, &retry)) {
				now += stops_ms[i] * MS;
				sum += stops_ms[i];
				readers_charge(&b, stops_ms[i] * MS, now);
			}
			now += 5 * MS;
		}
		TEST_ROW_EQ(i, sum <= 250 + 250 + stops_ms[i], true);
		TEST_ROW_EQ(i, sum >= 400, true);
	}
}

static void a_stop_longer_than_granted_is_paid_off_first(void)
{
	struct readers b;
	uint32_t retry;

	readers_init(&b, 250, 50, 7 * S);
	readers_charge(&b, 1250 * MS, 7 * S);
	TEST_EQ(readers_grant(&b, 1000, 7 * S, &retry), 0);
	TEST_EQ(retry, 21001);
	TEST_EQ(readers_grant(&b, 1000, 7 * S + retry * MS, &retry), 50);
	readers_charge(&b, UINT64_MAX, 8 * S);
	TEST_EQ(readers_grant(&b, 1000, 80 * S, &retry), 0);
}

static void another_session_goes_on(void)
{
	struct readers b;
	struct ipc_readers m = { .left_ns = 0, .at_ns = 6 * S };
	uint32_t retry;

	readers_init(&b, 250, 50, 7 * S);
	readers_go_on(&b, &m, 7 * S);
	TEST_EQ(readers_grant(&b, 1000, 7 * S, &retry), 50);
	/* What is no such state gives nothing that there would not be without. */
	m = (struct ipc_readers){ .left_ns = INT64_MAX, .at_ns = UINT64_MAX };
	readers_go_on(&b, &m, 7 * S);
	TEST_EQ(readers_grant(&b, 1000, 7 * S, &retry), 250);
	m = (struct ipc_readers){ .left_ns = INT64_MIN, .at_ns = 0 };
	readers_go_on(&b, &m, 7 * S);
	readers_charge(&b, UINT64_MAX, 7 * S);
	TEST_EQ(readers_grant(&b, 1000, 7 * S, &retry), 0);
}

static void none_may_be_allowed(void)
{
	struct readers b;
	uint32_t retry = 1;

	readers_init(&b, 0, 50, 7 * S);
	TEST_EQ(readers_grant(&b, 1, 3600 * S, &retry), 0);
	TEST_EQ(retry, 0);
	readers_init(&b, 3, 0, 7 * S);
	TEST_EQ(readers_grant(&b, 1000, 7 * S, &retry), 3);
	readers_charge(&b, MS, 7 * S);
	TEST_EQ(readers_grant(&b, 1000, 3600 * S, &retry), 0);
	TEST_EQ(retry, 0);
}

TEST_SUITE(worker_readers, TEST(a_full_bucket_is_all_there_is_at_once),
	   TEST(it_fills_at_its_rate_and_no_further), TEST(asking_often_does_not_slow_it_down),
	   TEST(the_sum_is_bounded), TEST(a_stop_longer_than_granted_is_paid_off_first),
	   TEST(another_session_goes_on), TEST(none_may_be_allowed));
