/* SPDX-License-Identifier: MIT */
/* What is a sign of somebody at the editor, and what an editor does by itself. */
#include "dap/adapter.h"
#include "testlib.h"

#define S UINT64_C(1000000000)

static void what_follows_an_event_is_no_sign(void)
{
	static const char *const reactions[] = { "threads",	 "stackTrace",	"scopes",
						 "variables",	 "source",	"disassemble",
						 "exceptionInfo", "readMemory" };
	struct dap_alive a = { .proof_ns = 100 * S };

	dap_alive_event(&a, "stopped", 110 * S);
	for (size_t i = 0; i < sizeof(reactions) / sizeof(reactions[0]); i++) {
		dap_alive_request(&a, reactions[i], "", 110 * S);
		dap_alive_request(&a, reactions[i], "", 112 * S - 1);
		TEST_EQ(a.proof_ns, 100 * S);
	}
	dap_alive_request(&a, "evaluate", "watch", 111 * S);
	TEST_EQ(a.proof_ns, 100 * S);
	/* Later somebody has clicked. */
	dap_alive_request(&a, "variables", "", 112 * S);
	TEST_EQ(a.proof_ns, 112 * S);
	dap_alive_request(&a, "evaluate", "watch", 113 * S);
	TEST_EQ(a.proof_ns, 113 * S);
}

static void everything_else_is_a_sign(void)
{
	static const char *const signs[] = { "pause", "continue", "setDataBreakpoints",
					     "gpuAgent/groups", "gpuAgent/takeControl",
					     "configurationDone", "nonsense" };
	struct dap_alive a = { 0 };

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		dap_alive_event(&a, "stopped", (200 + i) * S);
		dap_alive_request(&a, signs[i], "", (200 + i) * S + 1);
		TEST_EQ(a.proof_ns, (200 + i) * S + 1);
	}
	dap_alive_event(&a, "stopped", 300 * S);
	dap_alive_request(&a, "evaluate", "repl", 301 * S);
	TEST_EQ(a.proof_ns, 301 * S);
	dap_alive_request(&a, "evaluate", "hover", 301 * S + 1);
	TEST_EQ(a.proof_ns, 301 * S + 1);
}

static void what_is_only_shown_causes_nothing(void)
{
	struct dap_alive a = { .event_ns = 1 * S };

	dap_alive_event(&a, "output", 10 * S);
	dap_alive_event(&a, "progressStart", 10 * S);
	dap_alive_event(&a, "progressEnd", 10 * S);
	dap_alive_request(&a, "variables", "", 11 * S);
	TEST_EQ(a.proof_ns, 11 * S);
	dap_alive_event(&a, "invalidated", 12 * S);
	dap_alive_request(&a, "variables", "", 13 * S);
	TEST_EQ(a.proof_ns, 11 * S);
}

static void the_end_is_counted_from_the_last_sign_or_the_stop(void)
{
	struct dap_alive a = { .proof_ns = 7 * S, .stop_ns = 6 * S };

	TEST_EQ(dap_alive_end_ns(&a, 60000), 67 * S);
	TEST_EQ(dap_alive_end_ns(&a, DAP_STOP_IDLE_MAX_MS), 607 * S);
	TEST_EQ(dap_alive_end_ns(&a, 0), UINT64_MAX);
	/* An exception after an hour: whoever waits for it may look at it. */
	a.stop_ns = 3600 * S;
	TEST_EQ(dap_alive_end_ns(&a, 60000), 3660 * S);
	TEST_EQ(dap_alive_end_ns(&a, 0), UINT64_MAX);
}

static void a_sign_ends_that_somebody_has_left(void)
{
	struct dap_alive a = { .event_ns = 10 * S, .left = true };

	dap_alive_request(&a, "threads", "", 11 * S);
	TEST_EQ(a.left, true);
	dap_alive_request(&a, "threads", "", 12 * S);
	TEST_EQ(a.left, false);
}

TEST_SUITE(dap_alive, TEST(what_follows_an_event_is_no_sign), TEST(everything_else_is_a_sign),
	   TEST(what_is_only_shown_causes_nothing), TEST(the_end_is_counted_from_the_last_sign_or_the_stop),
	   TEST(a_sign_ends_that_somebody_has_left));
