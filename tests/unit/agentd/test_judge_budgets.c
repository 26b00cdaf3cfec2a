/* SPDX-License-Identifier: MIT */
/* Records of refusals and the like: a flood of them hides nobody else's, and is told as one. */
#include "agentd/judge/budgets.h"
#include <stdio.h>
#include <string.h>

#include "testlib.h"

#define SECOND_NS UINT64_C(1000000000)
#define NOBODY	  ((uid_t)-1)

static struct {
	uid_t uid;
	uint32_t n, seconds, calls;
	char kinds[BUDGETS_KINDS];
} told;

static void tell(uid_t uid, uint32_t n, const char *kinds, uint32_t seconds)
{
	told.uid = uid;
	told.n = n;
	told.seconds = seconds;
	strcpy(told.kinds, kinds);
	told.calls++;
}

/* @return how many of @p n refusals at the same moment get a record. */
static unsigned flood(struct budgets *r, uid_t uid, unsigned n, uint64_t now)
{
	unsigned records = 0;

	for (unsigned i = 0; i < n; i++)
		records += budgets_add(r, uid, "attach", 1, now);
	return records;
}

static void a_flood_is_told_in_one_record(void)
{
	struct budgets r = { 0 };
	uint64_t begun = 1000 * SECOND_NS, now = begun, due;

	told = (typeof(told)){ 0 };
	TEST_EQ(flood(&r, 1001, 15000, now), 20);
	/* Others are heard. */
	TEST_EQ(flood(&r, 1002, 1, now), 1);
	due = budgets_due(&r, now, false, tell);
	TEST_EQ(due, begun + 10 * SECOND_NS);
	TEST_EQ(told.calls, 0);
	/* Five a second meanwhile. */
	for (now += SECOND_NS; now < due; now += SECOND_NS)
		TEST_EQ(flood(&r, 1001, 10, now), 5);
	TEST_EQ(budgets_due(&r, due, false, tell), 0);
	TEST_EQ(told.calls, 1);
	TEST_EQ(told.uid, 1001);
	TEST_EQ(told.n, 15000 - 20 + 9 * 5);
	TEST_EQ(told.seconds, 10);
	/* At the end at once. */
	flood(&r, 1001, 10, due);
	TEST_EQ(budgets_due(&r, due + SECOND_NS / 2, true, tell), 0);
	TEST_EQ(told.calls, 2);
	TEST_EQ(told.n, 5);
	TEST_EQ(told.seconds, 1);
	/* Nothing is owed any more, and after a pause there are twenty again. */
	TEST_EQ(budgets_due(&r, due + 100 * SECOND_NS, false, tell), 0);
	TEST_EQ(flood(&r, 1001, 50, due + 100 * SECOND_NS), 20);
}

/* One record may stand for many events. */
static void events_that_came_together_count(void)
{
	const uint64_t now = 1000 * SECOND_NS;
	struct budgets r = { 0 };

	told = (typeof(told)){ 0 };
	TEST_EQ(flood(&r, 1001, 19, now), 19);
	TEST_EQ(budgets_add(&r, 1001, "attach", 1000, now), true);
	TEST_EQ(budgets_add(&r, 1001, "attach", 70, now), false);
	TEST_EQ(budgets_add(&r, 1001, "attach", UINT32_MAX, now), false);
	TEST_EQ(budgets_due(&r, now, true, tell), 0);
	TEST_EQ(told.n, UINT32_MAX);
}

/* What was only counted is told by its kinds, each once, as far as there is room. */
static void kinds_are_told(void)
{
	const uint64_t now = 1000 * SECOND_NS;
	struct budgets r = { 0 };
	char kind[28];

	flood(&r, 1001, 20, now);
	budgets_add(&r, 1001, "gpu.renew", 1, now);
	budgets_add(&r, 1001, "gpu.suspend", 1, now);
	budgets_add(&r, 1001, "gpu.renew", 1, now);
	budgets_add(&r, 1001, "gpu.re", 1, now);
	budgets_due(&r, now, true, tell);
	TEST_STR(told.kinds, "gpu.renew gpu.suspend gpu.re");
	for (unsigned i = 0; i < 100; i++) {
		snprintf(kind, sizeof(kind), "abcdefghijklmnopqrstuvw%03u", i);
		budgets_add(&r, 1001, kind, 1, now);
	}
	budgets_due(&r, now, true, tell);
	CU_ASSERT_PTR_NOT_NULL(strstr(told.kinds, "abcdefghijklmnopqrstuvw000 "));
	TEST_STR(strrchr(told.kinds, ' '), " ...");
	CU_ASSERT_TRUE(strlen(told.kinds) < BUDGETS_KINDS);
}

/* Who comes with a new user each time gets no more than all of them have together. */
static void many_users_are_no_way_around_it(void)
{
	const uint64_t now = 1000 * SECOND_NS;
	struct budgets r = { 0 };
	unsigned records = 0;

	told = (typeof(told)){ 0 };
	for (uid_t uid = 0; uid < 5000; uid++)
		records += flood(&r, uid, 30, now);
	TEST_EQ(records, BUDGETS_USERS * 20);
	TEST_EQ(budgets_due(&r, now + 10 * SECOND_NS, false, tell), 0);
	TEST_EQ(told.calls, BUDGETS_USERS);
	TEST_EQ(told.uid, NOBODY);
	TEST_EQ(told.n, (5000 - (BUDGETS_USERS - 1)) * 30 - 20);
	/* Later each has a place again. */
	TEST_EQ(flood(&r, 7777, 30, now + 100 * SECOND_NS), 20);
}

TEST_SUITE(judge_budgets, TEST(a_flood_is_told_in_one_record), TEST(events_that_came_together_count),
	   TEST(kinds_are_told), TEST(many_users_are_no_way_around_it));
