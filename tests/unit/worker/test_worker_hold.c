/* SPDX-License-Identifier: MIT */
/* How long a rule withholds exceptions from the application. */
#include <event2/event.h>

#include "agentd/worker/rule/hold.h"
#include "testlib.h"

#define HOLD_MS 50
/* For a loop that nobody ends. */
#define NEVER_S 20

static struct scene {
	struct target target;
	struct rule_host host;
	struct ipc_rule rule;
	struct rule_hold hold;
	unsigned given, works;
} scene;

static void work_begin(void *session)
{
	scene.works++;
}

static void work_end(void *session)
{
	scene.works--;
}

static void nothing(void *session)
{
}

static int give(struct target *t, const struct target_event *e, struct agent_err *err)
{
	TEST_EQ(e->address, ++scene.given);
	event_base_loopbreak(scene.host.base);
	return 0;
}

static void begin(void)
{
	static const struct target_ops target = { .event_done = give };
	static const struct rule_host_ops ops = { .work_begin = work_begin, .work_end = work_end,
						  .undo_begin = nothing, .undo_end = nothing };

	scene = (struct scene){ .target.ops = &target, .rule = { .name = "all", .hold_ms = HOLD_MS } };
	scene.host = (struct rule_host){ .ops = &ops, .target = &scene.target, .base = event_base_new() };
	scene.hold = (struct rule_hold){ .host = &scene.host, .rule = &scene.rule };
	CU_ASSERT_PTR_NOT_NULL_FATAL(scene.host.base);
}

static void end(void)
{
	rule_hold_deinit(&scene.hold);
	event_base_free(scene.host.base);
}

static bool keep(uint64_t number)
{
	const struct target_event e = { .kind = TARGET_EVENT_EXCEPTION, .address = number, .forwarded = true };

	return rule_hold_keep(&scene.hold, &e);
}

/* @return whether the loop has ended because somebody was given an exception. */
static bool wait_for_patience(void)
{
	event_base_loopexit(scene.host.base, &(struct timeval){ .tv_sec = NEVER_S });
	event_base_dispatch(scene.host.base);
	return event_base_got_break(scene.host.base);
}

/* Records overlap: the core of one begins before the threads of the other are read, and so on. */
static void reasons_that_overlap_hold_nobody_for_ever(void)
{
	begin();
	rule_hold_begin(&scene.hold, RULE_HOLD_THREADS);
	CU_ASSERT_TRUE(keep(1));
	rule_hold_begin(&scene.hold, RULE_HOLD_CORE);
	rule_hold_end(&scene.hold, RULE_HOLD_THREADS);
	CU_ASSERT_TRUE(keep(2));
	rule_hold_begin(&scene.hold, RULE_HOLD_THREADS);
	rule_hold_end(&scene.hold, RULE_HOLD_CORE);
	TEST_EQ(scene.given, 0);
	CU_ASSERT_TRUE(wait_for_patience());
	TEST_EQ(scene.given, 2);
	TEST_EQ(scene.works, 0);
	/* What the rule still waits for, it waits for alone. */
	CU_ASSERT_FALSE(keep(3));
	end();
}

/* Another reason does not begin the time again. */
static void the_time_runs_from_the_first(void)
{
	struct timeval first, later;

	begin();
	rule_hold_begin(&scene.hold, RULE_HOLD_THREADS);
	CU_ASSERT_TRUE(keep(1));
	CU_ASSERT_TRUE_FATAL(event_pending(scene.hold.patience, EV_TIMEOUT, &first));
	rule_hold_begin(&scene.hold, RULE_HOLD_CORE);
	CU_ASSERT_TRUE(keep(2));
	CU_ASSERT_TRUE_FATAL(event_pending(scene.hold.patience, EV_TIMEOUT, &later));
	TEST_EQ(timercmp(&first, &later, ==), true);
	rule_hold_end(&scene.hold, RULE_HOLD_THREADS);
	TEST_EQ(scene.given, 0);
	rule_hold_end(&scene.hold, RULE_HOLD_CORE);
	TEST_EQ(scene.given, 2);
	CU_ASSERT_PTR_NULL(scene.hold.patience);
	end();
}

TEST_SUITE(worker_hold, TEST(reasons_that_overlap_hold_nobody_for_ever), TEST(the_time_runs_from_the_first));
