/* SPDX-License-Identifier: MIT */
/* References to what an editor is shown: it may keep them for as long as it likes. */
#include <stdio.h>
#include <string.h>

#include "dap/adapter.h"
#include "testlib.h"

static struct dap dap;
static struct dap_thread threads[2];
static struct dap_snapshot snaps[2];

/* Make a conversation with two threads in each of two snapshots. */
static void start(void)
{
	dap = (struct dap){ .snap = &snaps[0], .before = &snaps[1] };
	snaps[0].threads = snaps[1].threads = threads;
	snaps[0].n_threads = snaps[1].n_threads = 2;
}

/* Take a number apart as if an editor had sent it. */
static int parse(uint32_t n, struct dap_ref *ret)
{
	struct agent_err err;
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	return dap_ref_parse(&dap, (struct dap_json){ text, strlen(text) }, ret, &err);
}

static void numbers_are_taken_apart(void)
{
	static const struct {
		enum dap_scope scope;
		uint32_t thread, index;
	} rows[] = { { DAP_SCOPE_FRAME, 0, 0 },	    { DAP_SCOPE_FRAME, 1, 1023 },
		     { DAP_SCOPE_WAVE, 0, 0 },	    { DAP_SCOPE_LDS_CHUNK, 1, 63 },
		     { DAP_SCOPE_STATISTICS, 1, 0 }, { DAP_SCOPE_FRAME, 0, 7 } };
	uint32_t numbers[TEST_COUNT(rows)];

	start();
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct dap_ref of = dap_ref_focus(&dap);

		of.thread = rows[i].thread;
		numbers[i] = dap_ref_within(&dap, &of, rows[i].scope, rows[i].index);
		TEST_EQ(numbers[i], dap_ref_within(&dap, &of, rows[i].scope, rows[i].index));
	}
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct dap_ref ref;

		TEST_ROW_EQ(i, parse(numbers[i], &ref), 0);
		TEST_ROW_EQ(i, ref.scope, rows[i].scope);
		TEST_ROW_EQ(i, ref.thread, rows[i].thread);
		TEST_ROW_EQ(i, ref.index, rows[i].index);
		CU_ASSERT_PTR_EQUAL(ref.snap, &snaps[0]);
	}
}

static void no_reference_comes_again(void)
{
	struct dap_ref of, ref;
	uint32_t old;

	start();
	of = dap_ref_focus(&dap);
	old = dap_ref_within(&dap, &of, DAP_SCOPE_FRAME, 0);
	dap_refs_renew(&dap);
	TEST_EQ(parse(old, &ref), 0);
	CU_ASSERT_PTR_EQUAL(ref.snap, &snaps[1]);
	for (int i = 0; i < 1000; i++) {
		dap_refs_renew(&dap);
		of = dap_ref_focus(&dap);
		CU_ASSERT_TRUE(dap_ref_within(&dap, &of, DAP_SCOPE_FRAME, 0) > old);
		TEST_EQ(parse(old, &ref) < 0, true);
	}
}

static void used_up_numbers_are_not_given_twice(void)
{
	struct dap_ref of;

	start();
	of = dap_ref_focus(&dap);
	dap.n_refs = INT32_MAX - 1;
	TEST_EQ(dap_ref_within(&dap, &of, DAP_SCOPE_FRAME, 0), 0);
	TEST_EQ(dap_ref_within(&dap, &of, DAP_SCOPE_SCALAR, 0), INT32_MAX);
	TEST_EQ(dap_ref_within(&dap, &of, DAP_SCOPE_STATISTICS, 0), 0);
	TEST_EQ(dap_ref_within(&dap, &of, DAP_SCOPE_SCALAR, 1), 0);
}

/* A conversation of weeks: those of ages ago begin again, those that are still shown do not. */
static void numbers_do_not_run_out(void)
{
	struct dap_ref of, ref;
	uint32_t old;

	start();
	dap.n_refs = INT32_MAX / 2;
	of = dap_ref_focus(&dap);
	old = dap_ref_within(&dap, &of, DAP_SCOPE_FRAME, 5);
	TEST_EQ(old, INT32_MAX / 2 + 6);
	dap_refs_renew(&dap);
	of = dap_ref_focus(&dap);
	TEST_EQ(dap_ref_within(&dap, &of, DAP_SCOPE_FRAME, 0), 1);
	TEST_EQ(parse(old, &ref), 0);
	TEST_EQ(ref.index, 5);
	CU_ASSERT_PTR_EQUAL(ref.snap, &snaps[1]);
}

TEST_SUITE(dap_refs, TEST(numbers_are_taken_apart), TEST(no_reference_comes_again),
	   TEST(numbers_do_not_run_out),
	   TEST(used_up_numbers_are_not_given_twice));
