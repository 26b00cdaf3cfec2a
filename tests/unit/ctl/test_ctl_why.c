/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/cleanup.h"
#include "ctl/verbs/wait/page.h"
#include "testlib.h"

static struct ctl ctl;

/* What the page begins with. */
static const char *causes_of(const struct rpc_why_get_result *r)
{
	out_reset(&ctl.output.text);
	rpc_arena_init(&ctl.arena, 0);
	why_page_causes(&ctl, r);
	rpc_arena_deinit(&ctl.arena);
	return ctl.output.text.data;
}

/* ------------------------------------------------------------------ the first line ----------- */

static void one_wait_is_told_as_one(void)
{
	static const struct {
		uint32_t waits, samples;
		bool has_stuck, stuck;
		enum rpc_wait_end end;
		const char *want;
	} rows[] = {
		{ 1, 1, false, false, RPC_WAIT_END_RUNS, "1 wait, and one sample does not tell for how long (--twice)" },
		{ 2, 1, false, false, RPC_WAIT_END_RUNS, "2 waits, and one sample does not tell for how long (--twice)" },
		{ 1, 2, false, false, RPC_WAIT_END_RUNS, "1 wait for what runs" },
		{ 2, 2, false, false, RPC_WAIT_END_RUNS, "2 waits for what runs" },
		{ 1, 2, false, false, RPC_WAIT_END_UNKNOWN, "1 wait, and it is not known whether it lasts" },
		{ 2, 2, false, false, RPC_WAIT_END_UNKNOWN, "2 waits, and it is not known whether they last" },
		{ 1, 2, true, false, RPC_WAIT_END_RUNS, "1 wait, which has moved" },
		{ 2, 2, true, false, RPC_WAIT_END_RUNS, "2 waits, all of which have moved" },
		{ 1, 2, true, true, RPC_WAIT_END_UNKNOWN, "1 wait, which does not move" },
		{ 2, 2, true, true, RPC_WAIT_END_UNKNOWN, "2 waits, of which some do not move" },
		{ 0, 2, false, false, RPC_WAIT_END_RUNS, "nothing waits" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct rpc_wait waits[2] = { { .text = "one" }, { .text = "another" } };
		struct rpc_wait_node node = { .text = "somebody" };
		struct rpc_wait_cause cause = { .text = "somebody", .end = rows[i].end };
		const struct rpc_why_get_result r = { .samples = rows[i].samples, .nodes = &node, .n_nodes = 1,
						      .waits = waits, .n_waits = rows[i].waits,
						      .causes = &cause, .n_causes = 1,
						      .has_stuck = rows[i].has_stuck, .stuck = rows[i].stuck };
		auto_out struct out want = { 0 };

		out_fmt(&want, "       no culprit found: %s\n", rows[i].want);
		TEST_ROW_STR(i, causes_of(&r), want.data);
	}
}

/* Ranks that wait for others stand in front of what waits in this process. */
static void ranks_are_told_first(void)
{
	uint32_t other = 2;
	struct rpc_collective k = { .rank = 1, .ranks = 4, .waits_for = &other, .n_waits_for = 1 };
	struct rpc_wait wait = { .text = "one" };
	struct rpc_why_get_result r = { .samples = 2, .waits = &wait, .collectives = &k, .n_collectives = 1 };

	TEST_STR(causes_of(&r), "       no culprit found in this process: rank 1 waits for rank 2, which was not looked at "
				"(job and merge compare ranks)\n");
	r.n_waits = 1;
	TEST_STR(causes_of(&r), "       no culprit found in this process: rank 1 waits for rank 2, which was not looked at "
				"(job and merge compare ranks); 1 wait for what runs\n");
	/* Ranks do not make less of what stands still beside them. */
	r.has_stuck = r.stuck = true;
	TEST_STR(causes_of(&r), "       no culprit found in this process: rank 1 waits for rank 2, which was not looked at "
				"(job and merge compare ranks); 1 wait, which does not move\n");
}

/* What waits for ranks is told by them, and counts as no wait of this process; what waits for it counts. */
static void waits_for_ranks_are_not_counted(void)
{
	struct rpc_wait waits[] = { { .text = "of ranks", .kind = RPC_WAIT_KIND_COLLECTIVE },
				    { .text = "a packet", .kind = RPC_WAIT_KIND_QUEUE } };
	struct rpc_wait_node nodes[] = { { .text = "the operation", .has_wait = true },
					 { .text = "rank 2", .kind = RPC_WAIT_NODE_KIND_RANK },
					 { .text = "the packet", .has_wait = true, .wait = 1 } };
	struct rpc_wait_edge edges[] = { { .from = 0, .to = 1 }, { .from = 2, .to = 0 } };
	struct rpc_wait_cause cause = { .text = "rank 2", .node = 1, .end = RPC_WAIT_END_UNKNOWN, .waits = 1 };
	struct rpc_why_get_result r = { .samples = 2, .waits = waits, .n_waits = 1, .nodes = nodes, .n_nodes = 3,
					.edges = edges, .n_edges = 1, .causes = &cause, .n_causes = 1 };

	TEST_STR(causes_of(&r), "       no culprit found: nothing waits\n");
	/* A packet behind the operation waits as long as that does. */
	r.n_waits = r.n_edges = cause.waits = 2;
	TEST_STR(causes_of(&r), "       no culprit found: 1 wait, and it is not known whether it lasts\n");
	/* One that waits for what runs, beside it. */
	r.n_edges = cause.waits = 1;
	TEST_STR(causes_of(&r), "       no culprit found: 1 wait for what runs\n");
	/* It has moved, whatever the operation has done. */
	waits[1].has_stuck = true;
	TEST_STR(causes_of(&r), "       no culprit found: 1 wait, which has moved\n");
	waits[1].stuck = r.has_stuck = r.stuck = true;
	TEST_STR(causes_of(&r), "       no culprit found: 1 wait, which does not move\n");
}

/* ------------------------------------------------------------------ the rest ----------------- */

static const char *waits_of(const struct rpc_why_get_result *r)
{
	out_reset(&ctl.output.text);
	rpc_arena_init(&ctl.arena, 0);
	why_page_waits(&ctl, r);
	rpc_arena_deinit(&ctl.arena);
	return ctl.output.text.data;
}

/* Waits come first, but for those of ranks, which have lines of their own; then who waits for nobody else. */
static void each_kind_is_told_apart(void)
{
	struct rpc_wait waits[10], alone[6];
	struct rpc_why_get_result r = { .samples = 1, .waits = waits, .n_waits = 10, .alone = alone, .n_alone = 6 };

	for (size_t i = 0; i < 10; i++)
		waits[i] = (struct rpc_wait){ .text = "waits", .kind = i ? RPC_WAIT_KIND_BARRIER : RPC_WAIT_KIND_COLLECTIVE };
	for (size_t i = 0; i < 6; i++)
		alone[i] = (struct rpc_wait){ .text = "sleeps", .kind = RPC_WAIT_KIND_SLEEP };
#define WAIT "WAITS  waits  [proven]\n"
#define NOTE "NOTE   sleeps  [proven]\n"
	TEST_STR(waits_of(&r), WAIT WAIT WAIT WAIT WAIT WAIT WAIT WAIT "       (1 more wait: --verbose)\n"
			       NOTE NOTE NOTE NOTE "       (2 more notes: --verbose)\n");
	r.n_waits = 9;
	r.n_alone = 1;
	TEST_STR(waits_of(&r), WAIT WAIT WAIT WAIT WAIT WAIT WAIT WAIT NOTE);
#undef WAIT
#undef NOTE
}

/* ------------------------------------------------------------------ chains ------------------- */

/* Two wait for each other, and one of them for who has stopped as well: a chain goes around once. */
static void a_chain_ends_where_it_comes_round(void)
{
	struct rpc_wait_node nodes[] = { { .text = "who has stopped" }, { .text = "a" }, { .text = "b" } };
	struct rpc_wait_edge edges[] = { { .from = 1, .to = 0 }, { .from = 2, .to = 1 }, { .from = 1, .to = 2 } };
	struct rpc_wait_cause cause = { .text = "who has stopped", .culprit = true };
	const struct rpc_why_get_result r = { .samples = 1, .nodes = nodes, .n_nodes = 3, .edges = edges, .n_edges = 3,
					      .causes = &cause, .n_causes = 1 };

	TEST_STR(causes_of(&r), "CAUSE  who has stopped  [proven]\n"
				"       <- a  [proven]\n"
				"       <- b  [proven]\n");
	/* Of a circle each is told once, and the one that it is told with comes last. */
	cause.node = 1;
	cause.text = "a circle";
	TEST_STR(causes_of(&r), "CAUSE  a circle  [proven]\n"
				"       <- b  [proven]\n"
				"       <- a  [proven]\n");
}

/* ------------------------------------------------------------------ memory ------------------- */

/* Whatever there is no room for, what is shown is text of the document, or none. */
static void memory_may_end_anywhere(void)
{
	uint32_t others[] = { 2, 3 };
	struct rpc_collective k = { .operation = "AllReduce", .algorithm = "RING", .type = "f32", .reduction = "Sum",
				    .has_number = true, .rank = 1, .ranks = 4, .waits_for = others, .n_waits_for = 2 };
	struct rpc_wait wait = { .who = "wave 0", .text = "wave 0 waits", .kind = RPC_WAIT_KIND_BARRIER, .alike = 3,
				 .waves = 1, .has_at = true, .at = { .pc = 0x100 } };
	struct rpc_wait_node nodes[] = { { .text = "the host" }, { .text = "wave 0", .has_wait = true } };
	struct rpc_wait_edge edge = { .from = 1, .to = 0 };
	struct rpc_wait_cause cause = { .text = "the host", .culprit = true, .waits = 9 };
	struct rpc_why_get_result r = { .samples = 1, .waits = &wait, .n_waits = 1, .nodes = nodes, .n_nodes = 2,
					.edges = &edge, .n_edges = 1, .causes = &cause, .n_causes = 1,
					.collectives = &k, .n_collectives = 1 };

	for (size_t limit = 1; limit < 4096; limit += 8) {
		out_reset(&ctl.output.text);
		rpc_arena_init(&ctl.arena, limit);
		cause.culprit = limit / 8 % 2;
		why_page_causes(&ctl, &r);
		why_page_waits(&ctl, &r);
		TEST_ROW_EQ(limit, strstr(ctl.output.text.data, "(null)") != NULL, false);
		TEST_ROW_EQ(limit, strstr(ctl.output.text.data, "WAITS  wave 0 waits") != NULL, true);
		rpc_arena_deinit(&ctl.arena);
	}
}

TEST_SUITE(ctl_why, TEST(one_wait_is_told_as_one), TEST(ranks_are_told_first),
	   TEST(waits_for_ranks_are_not_counted), TEST(each_kind_is_told_apart),
	   TEST(a_chain_ends_where_it_comes_round), TEST(memory_may_end_anywhere));
