/* SPDX-License-Identifier: MIT */
/* How much of the time that a client asks for is left to it. */
#include "agentd/worker/session/suspension.h"
#include "testlib.h"

#define MS UINT64_C(1000000)

static void a_lease_ends_with_the_longest_stop(void)
{
	const uint64_t since = 5000 * MS;

	TEST_EQ(suspension_grant(since, 600000, since, 60000), 60000);
	TEST_EQ(suspension_grant(since, 600000, since + 540000 * MS, 60000), 60000);
	TEST_EQ(suspension_grant(since, 600000, since + 540001 * MS, 60000), 59999);
	TEST_EQ(suspension_grant(since, 600000, since + 599999 * MS, 60000), 1);
	TEST_EQ(suspension_grant(since, 2000, since, 60000), 2000);
}

static void renewing_adds_nothing_to_it(void)
{
	const uint64_t since = 1 * MS;
	uint64_t now = since, end = 0;

	while (now < since + 600000 * MS) {
		end = now + suspension_grant(since, 600000, now, 60000) * MS;
		TEST_EQ(end <= since + 600000 * MS, true);
		now += 1500 * MS;
	}
	TEST_EQ(end, since + 600000 * MS);
	/* Never 0, which would be no lease, and so no end. */
	TEST_EQ(suspension_grant(since, 600000, now, 60000), 1);
	TEST_EQ(suspension_grant(since, 600000, now + 999999 * MS, 60000), 1);
}

static void without_a_limit_all_is_granted(void)
{
	TEST_EQ(suspension_grant(MS, 0, UINT64_C(1000000) * 3600000, 60000), 60000);
}

static void its_end_is_announced_when_a_fifth_is_left(void)
{
	TEST_EQ(suspension_warn_ns(5000 * MS, 600000), 485000 * MS);
	TEST_EQ(suspension_warn_ns(5000 * MS, 1), 5000 * MS + 800000);
	TEST_EQ(suspension_warn_ns(0, UINT32_MAX), UINT64_C(800000) * UINT32_MAX);
}

TEST_SUITE(worker_suspension, TEST(a_lease_ends_with_the_longest_stop),
	   TEST(renewing_adds_nothing_to_it), TEST(without_a_limit_all_is_granted),
	   TEST(its_end_is_announced_when_a_fifth_is_left));
