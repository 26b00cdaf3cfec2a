/* SPDX-License-Identifier: MIT */
#include "agentd/worker/process/undo.h"
#include "base/out.h"
#include "rpc_gen.h"
#include "testlib.h"

/* What ran, in order, and which of them are to fail. */
static struct {
	char ran[32];
	size_t n;
	const char *failing;
	int failures; /* still to happen; negative: no end */
} trace;

static int step(void *ctx, uint64_t arg, struct agent_err *err)
{
	TEST_EQ(ctx == &trace, true);
	trace.ran[trace.n++] = (char)arg;
	trace.ran[trace.n] = '\0';
	if (!strchr(trace.failing, (int)arg) || !trace.failures)
		return 0;
	trace.failures -= trace.failures > 0;
	return agent_err_set(err, RPC_ERROR_FAILED, (int)arg, NULL, NULL, "step %c", (char)arg);
}

static uint32_t push(struct undo *u, char letter)
{
	uint32_t ticket = UNDO_NONE;

	TEST_EQ_FATAL(undo_push(u, "step", step, &trace, (uint64_t)letter, &ticket, NULL), 0);
	CU_ASSERT_NOT_EQUAL(ticket, UNDO_NONE);
	return ticket;
}

static struct undo filled(const char *letters)
{
	struct undo u = UNDO_NULL;

	memset(&trace, 0, sizeof(trace));
	trace.failing = "";
	trace.failures = -1;
	for (const char *l = letters; *l; l++)
		push(&u, *l);
	return u;
}

static void newest_first(void)
{
	/* More than the first allocation holds. */
	struct undo u = filled("abcdefghijklmnopqrst");

	TEST_EQ(undo_run(&u, 0, NULL), 0);
	TEST_STR(trace.ran, "tsrqponmlkjihgfedcba");
	TEST_EQ(undo_run(&u, 0, NULL), 0);
	TEST_EQ(trace.n, 20);
	undo_deinit(&u);
}

static void what_others_need_stays(void)
{
	struct undo u = filled("ab");
	uint32_t mark = undo_mark(&u), ticket = push(&u, 'c');

	undo_keep(&u, ticket);
	push(&u, 'd');
	undo_keep(&u, UNDO_NONE);
	TEST_EQ(undo_run(&u, mark, NULL), 0);
	TEST_STR(trace.ran, "d");
	TEST_EQ(undo_run(&u, 0, NULL), 0);
	TEST_STR(trace.ran, "dcba");
	undo_deinit(&u);
}

/*
 * Two steps fail: all run, the first failure is reported with what was being undone.  All tries are
 * the first one's.  What failed is not forgotten.
 */
static void failures_do_not_stop_it(void)
{
	struct undo u = filled("abcd");
	struct agent_err err = { 0 };

	trace.failing = "ac";
	TEST_EQ(undo_run(&u, 0, &err), -'c');
	TEST_STR(trace.ran, "dccccba");
	TEST_EQ(err.err, 'c');
	TEST_STR(err.message, "step: step c");
	trace.failing = "";
	TEST_EQ(undo_run(&u, 0, &err), 0);
	TEST_STR(trace.ran, "dccccbaca");
	TEST_EQ(u.n, 0);
	undo_deinit(&u);
}

/* What fails once is undone all the same, and nothing is reported; alone or with others. */
static void failing_once_is_no_failure(void)
{
	struct undo u = filled("ab");
	struct agent_err err = { 0 };

	trace.failing = "b";
	trace.failures = 1;
	TEST_EQ(undo_run(&u, 0, &err), 0);
	TEST_STR(trace.ran, "bba");
	TEST_EQ(err.err, 0);
	TEST_EQ(u.n, 0);
	trace.failures = 1;
	TEST_EQ(undo_run_one(&u, push(&u, 'b'), &err), 0);
	TEST_STR(trace.ran, "bbabb");
	/* It stays where it is as long as it fails. */
	trace.failures = 1000;
	TEST_EQ(undo_run_one(&u, push(&u, 'b'), &err), -'b');
	TEST_EQ(u.n, 1);
	undo_deinit(&u);
}

/* What was there before the mark stays: losing the writer does not end the session. */
static void mark_protects_the_session(void)
{
	struct undo u = filled("ab");
	uint32_t mark = undo_mark(&u);

	push(&u, 'x');
	push(&u, 'y');
	TEST_EQ(undo_run(&u, mark, NULL), 0);
	TEST_STR(trace.ran, "yx");
	push(&u, 'z');
	TEST_EQ(undo_run(&u, mark, NULL), 0);
	TEST_STR(trace.ran, "yxz");
	TEST_EQ(undo_run(&u, 0, NULL), 0);
	TEST_STR(trace.ran, "yxzba");
	undo_deinit(&u);
}

/* An entry runs once, alone, whatever its place; dropped and unknown ones do nothing. */
static void single_entries(void)
{
	struct undo u = filled("a");
	uint32_t b = push(&u, 'b'), c = push(&u, 'c');

	push(&u, 'd');
	undo_drop(&u, c);
	undo_drop(&u, c);
	undo_drop(&u, UNDO_NONE);
	TEST_EQ(undo_run_one(&u, b, NULL), 0);
	TEST_EQ(undo_run_one(&u, b, NULL), 0);
	TEST_EQ(undo_run_one(&u, UNDO_NONE, NULL), 0);
	TEST_STR(trace.ran, "b");
	TEST_EQ(undo_run(&u, 0, NULL), 0);
	TEST_STR(trace.ran, "bda");
	undo_deinit(&u);
}

TEST_SUITE(worker_undo, TEST(newest_first), TEST(what_others_need_stays),
	   TEST(failures_do_not_stop_it), TEST(failing_once_is_no_failure),
	   TEST(mark_protects_the_session), TEST(single_entries));
