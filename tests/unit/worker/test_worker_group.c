/* SPDX-License-Identifier: MIT */
#include "agentd/worker/snapshot/groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/snapshot/locations.h"
#include "agentd/worker/snapshot/queue_waves.h"
#include "agentd/worker/snapshot/wave_convert.h"
#include "agentd/worker/target/waves.h"
#include "base/out.h"
#include "testlib.h"

#define MANY 100000

static struct wave wave(uint64_t pc, uint8_t lanes, uint32_t leader, uint32_t reasons)
{
	return (struct wave){ .pc = pc, .place = (uint32_t)pc, .gpu_id = 1, .lanes = lanes, .leader = leader,
			      .reasons = reasons,
			      .state = reasons ? RPC_WAVE_STATE_STOPPED : RPC_WAVE_STATE_RUNNING };
}

static void nothing_gives_no_group(void)
{
	auto_free struct group *groups = NULL;
	auto_free uint32_t *of = NULL;
	size_t n = 77;

	TEST_EQ(group_waves(NULL, 0, &groups, &n, &of), 0);
	CU_ASSERT_PTR_NOT_NULL(groups);
	TEST_EQ(n, 0);
}

/* Six waves at three places: a fault of one wave stands above the large group. */
static void faults_come_first_then_size_then_pc(void)
{
	const uint32_t assertion = STOP_REASON_BIT(RPC_STOP_REASON_ASSERT);
	const struct wave waves[] = {
		wave(0x300, 64, 0, 0), wave(0x100, 3, 0, 0),  wave(0x300, 1, 2, 0),
		wave(0x300, 8, 2, 0),  wave(0x200, 64, 4, assertion), wave(0x080, 1, 5, 0),
	};
	auto_free struct group *g = NULL;
	auto_free uint32_t *of = NULL;
	size_t n;

	TEST_EQ_FATAL(group_waves(waves, TEST_COUNT(waves), &g, &n, &of), 0);
	TEST_EQ_FATAL(n, 4);
	for (size_t i = 0; i < TEST_COUNT(waves); i++)
		TEST_ROW_EQ(i, g[of[i]].pc, waves[i].pc);
	TEST_EQ(g[0].pc, 0x200);
	TEST_EQ(g[0].state, RPC_WAVE_STATE_STOPPED);
	TEST_EQ(g[0].reasons, assertion);
	TEST_EQ(g[1].pc, 0x300);
	TEST_EQ(g[1].waves, 3);
	TEST_EQ(g[1].lanes_min, 1);
	TEST_EQ(g[1].lanes_median, 8);
	TEST_EQ(g[1].lanes_max, 64);
	TEST_EQ(g[1].workgroups, 2);
	TEST_EQ(g[1].representative, 0);
	TEST_EQ(g[2].pc, 0x080);
	TEST_EQ(g[3].pc, 0x100);
}

/* Everything in the key tells groups apart; everything else does not. */
static void the_key_is_place_and_reason(void)
{
	struct wave waves[7];
	auto_free struct group *g = NULL;
	auto_free uint32_t *of = NULL;
	size_t n;

	for (size_t i = 0; i < TEST_COUNT(waves); i++)
		waves[i] = wave(0x100, 64, 0, STOP_REASON_BIT(RPC_STOP_REASON_TRAP));
	waves[1].gpu_id = 2;
	waves[2].place = 0x104;
	waves[3].state = RPC_WAVE_STATE_HALTED;
	waves[4].reasons |= STOP_REASON_BIT(RPC_STOP_REASON_BREAKPOINT);
	waves[5].kernel = 3;
	waves[6].queue_id = 9;
	waves[6].unit = 3;
	waves[6].exec = 5;
	waves[6].trap_id = 7;
	waves[6].pc = 0x108;
	waves[6].site = 1;
	TEST_EQ_FATAL(group_waves(waves, TEST_COUNT(waves), &g, &n, &of), 0);
	TEST_EQ_FATAL(n, 6);
	TEST_EQ(g[0].waves, 2);
	TEST_EQ(g[0].sites, 2);
	TEST_EQ(g[0].pc, 0x100);
	TEST_EQ(of[6], 0);
	TEST_EQ(of[0], 0);
}

/* From the lowest to the highest, z before y before x; waves without one do not count. */
static void workgroups_have_a_range(void)
{
	static const uint32_t ids[][3] = { { 9, 0, 0 }, { 0, 0, 1 }, { 3, 2, 0 }, { 8, 0, 0 } };
	struct wave waves[TEST_COUNT(ids) + 1];
	auto_free struct group *g = NULL;
	auto_free uint32_t *of = NULL;
	size_t n;

	for (size_t i = 0; i < TEST_COUNT(waves); i++) {
		waves[i] = wave(0x100, 64, (uint32_t)i, 0);
		waves[i].has_workgroup = i < TEST_COUNT(ids);
		if (waves[i].has_workgroup)
			memcpy(waves[i].workgroup, ids[i], sizeof(ids[i]));
	}
	TEST_EQ_FATAL(group_waves(waves, TEST_COUNT(waves), &g, &n, &of), 0);
	TEST_EQ_FATAL(n, 1);
	TEST_EQ(g->workgroups, 5);
	TEST_EQ(g->has_range, true);
	CU_ASSERT_EQUAL(memcmp(g->first_workgroup, ids[3], sizeof(ids[3])), 0);
	CU_ASSERT_EQUAL(memcmp(g->last_workgroup, ids[1], sizeof(ids[1])), 0);
}

/* A wave at two places, with its parts: so many lanes at each. */
static struct wave_parts apart(struct wave parts[], uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		parts[i].is_part = true;
	return (struct wave_parts){ parts, n };
}

/*
 * Four waves: one at 0x100, one with parts at 0x100 and 0x200, one at 0x200 and 0x300 of which its
 * own pc is 0x300, and one whose two parts are at different addresses of one place.
 */
static void parts_count_where_they_are(void)
{
	struct wave waves[] = { wave(0x100, 32, 0, 0), wave(0x100, 20, 0, 0), wave(0x300, 1, 2, 0),
				wave(0x400, 30, 3, 0) };
	struct wave second[] = { wave(0x100, 20, 0, 0), wave(0x200, 12, 0, 0) };
	struct wave third[] = { wave(0x300, 1, 2, 0), wave(0x200, 31, 2, 0) };
	struct wave fourth[] = { wave(0x400, 30, 3, 0), wave(0x404, 2, 3, 0) };
	struct wave_parts parts[] = { apart(second, 2), apart(third, 2),
				      apart(fourth, 2) };
	auto_free struct group *g = NULL;
	auto_free uint32_t *of = NULL;
	size_t n;

	for (size_t i = 0; i < 3; i++) {
		waves[i + 1].parts = &parts[i];
		parts[i].list[0].parts = parts[i].list[1].parts = &parts[i];
		parts[i].list[1].lane = 5;
	}
	fourth[1].place = fourth[0].place;
	fourth[1].site = 1;
	TEST_EQ_FATAL(group_waves(waves, TEST_COUNT(waves), &g, &n, &of), 0);
	TEST_EQ_FATAL(n, 4);
	/* 0x100: one wave as a whole, and a part. */
	TEST_EQ(g[0].pc, 0x100);
	TEST_EQ(g[0].waves, 2);
	TEST_EQ(g[0].parts, 1);
	TEST_EQ(g[0].lanes_min, 20);
	TEST_EQ(g[0].lanes_max, 32);
	TEST_EQ(g[0].workgroups, 1);
	TEST_EQ(g[0].representative, 0);
	TEST_EQ(g[0].has_lane, false);
	TEST_EQ(g[0].speaks, true);
	/* 0x200: only parts, and of none of them the lane that speaks for its wave. */
	TEST_EQ(g[1].pc, 0x200);
	TEST_EQ(g[1].waves, 2);
	TEST_EQ(g[1].parts, 2);
	TEST_EQ(g[1].lanes_min, 12);
	TEST_EQ(g[1].lanes_max, 31);
	TEST_EQ(g[1].workgroups, 2);
	TEST_EQ(g[1].representative, 1);
	TEST_EQ(g[1].has_lane, true);
	TEST_EQ(g[1].lane, 5);
	TEST_EQ(g[1].speaks, false);
	TEST_EQ(g[2].pc, 0x300);
	TEST_EQ(g[2].parts, 1);
	TEST_EQ(g[2].speaks, true);
	TEST_EQ(g[2].has_lane, true);
	TEST_EQ(g[2].lane, 0);
	/* All of the fourth wave is in one group, at two addresses. */
	TEST_EQ(g[3].pc, 0x400);
	TEST_EQ(g[3].waves, 1);
	TEST_EQ(g[3].sites, 2);
	TEST_EQ(g[3].parts, 0);
	TEST_EQ(g[3].lanes_max, 32);
	TEST_EQ(g[3].has_lane, false);
	for (uint32_t i = 0; i < 4; i++)
		TEST_ROW_EQ(i, of[i], ((uint32_t[]){ 0, 0, 2, 3 })[i]);
	TEST_EQ(second[0].group * 10 + second[1].group, 1);
	TEST_EQ(third[0].group * 10 + third[1].group, 21);
	TEST_EQ(fourth[0].group * 10 + fourth[1].group, 33);
}

/* Where a whole wave is, or the lane that speaks for one, the group shows that one and its callers. */
static void a_wave_that_speaks_represents(void)
{
	struct wave waves[] = { wave(0x100, 20, 0, 0), wave(0x200, 32, 1, 0) };
	struct wave first[] = { wave(0x100, 20, 0, 0), wave(0x204, 12, 0, 0) };
	struct wave_parts parts = apart(first, 2);
	auto_free struct group *g = NULL;
	auto_free uint32_t *of = NULL;
	size_t n;

	first[0].parts = first[1].parts = waves[0].parts = &parts;
	first[1].lane = 20;
	first[1].place = waves[1].place;
	TEST_EQ_FATAL(group_waves(waves, TEST_COUNT(waves), &g, &n, &of), 0);
	TEST_EQ_FATAL(n, 2);
	TEST_EQ(g[0].waves, 2);
	TEST_EQ(g[0].representative, 1);
	TEST_EQ(g[0].pc, 0x200);
	TEST_EQ(g[0].speaks, true);
	TEST_EQ(g[0].has_lane, false);
	TEST_EQ(g[0].parts, 1);
}

static void which_reasons_are_faults(void)
{
	for (uint32_t bit = 0; bit < WAVE_REASONS_COUNT; bit++)
		TEST_ROW_EQ(bit, (STOP_REASON_BIT(bit) & STOP_REASONS_FAULT) != 0,
			    bit == RPC_STOP_REASON_MEMORY_VIOLATION ||
				    bit == RPC_STOP_REASON_ADDRESS_ERROR ||
				    bit == RPC_STOP_REASON_ILLEGAL_INSTRUCTION ||
				    bit == RPC_STOP_REASON_MATH_ERROR ||
				    bit == RPC_STOP_REASON_ASSERT || bit == RPC_STOP_REASON_FAULT);
	/* A reason that the table lacks would be cut off in replies. */
	TEST_EQ(rpc_stop_reason_enum.n, WAVE_REASONS_COUNT);
}

/* ------------------------------------------------------------------ against a naive one ------ */

static struct wave *random_waves(size_t n, uint32_t places)
{
	struct wave *waves = calloc(n, sizeof(*waves));
	uint32_t leader = 0;

	for (size_t i = 0; waves && i < n; i++) {
		if (test_random() % 4 == 0)
			leader = (uint32_t)i;
		waves[i] = wave(0x7f0000000000 + test_random() % places * 4,
				(uint8_t)(test_random() % 65), leader,
				test_random() % 8 ? 0 : (uint32_t)(test_random() & 0x7ff));
		waves[i].gpu_id = 1 + (uint32_t)(test_random() % 3);
		waves[i].place = (uint32_t)(waves[i].pc / 4);
		waves[i].site = places < n ? waves[i].place % places : (uint32_t)i;
	}
	return waves;
}

static int by_key(const void *x, const void *y)
{
	const struct wave *a = *(struct wave *const *)x, *b = *(struct wave *const *)y;
	int64_t d = (int64_t)(a->pc - b->pc);

	d = d ? d : (int64_t)a->gpu_id - b->gpu_id;
	d = d ? d : (int64_t)a->state - b->state;
	d = d ? d : (int64_t)a->reasons - b->reasons;
	d = d ? d : (int64_t)a->lanes - b->lanes;
	return d < 0 ? -1 : d > 0;
}

static int by_leader(const void *x, const void *y)
{
	const struct wave *a = *(struct wave *const *)x, *b = *(struct wave *const *)y;

	return a->leader < b->leader ? -1 : a->leader > b->leader;
}

static bool same_place(const struct wave *a, const struct wave *b)
{
	return a->pc == b->pc && a->gpu_id == b->gpu_id && a->state == b->state &&
	       a->reasons == b->reasons;
}

static const struct group *find(const struct group *g, size_t n, const struct wave *w)
{
	for (size_t i = 0; i < n; i++)
		if (g[i].pc == w->pc && g[i].gpu_id == w->gpu_id && g[i].state == w->state &&
		    g[i].reasons == w->reasons)
			return &g[i];
	return NULL;
}

/* One run of sorted waves, summed up in the most obvious way. */
static void check_run(const struct group *g, const struct wave **run, size_t n,
		      const struct wave *waves)
{
	uint32_t workgroups = 1;

	CU_ASSERT_PTR_NOT_NULL_FATAL(g);
	TEST_EQ(g->waves, n);
	TEST_EQ(g->lanes_min, run[0]->lanes);
	TEST_EQ(g->lanes_median, run[(n - 1) / 2]->lanes);
	TEST_EQ(g->lanes_max, run[n - 1]->lanes);
	CU_ASSERT(same_place(&waves[g->representative], run[0]));
	qsort(run, n, sizeof(*run), by_leader);
	for (size_t i = 1; i < n; i++)
		workgroups += run[i]->leader != run[i - 1]->leader;
	TEST_EQ(g->workgroups, workgroups);
}

static void many_random_waves_agree_with_sorting(void)
{
	static const uint32_t places[] = { 1, 7, 300 };

	for (size_t p = 0; p < TEST_COUNT(places); p++) {
		auto_free struct wave *waves = random_waves(MANY, places[p]);
		auto_free const struct wave **sorted = malloc(MANY * sizeof(*sorted));
		auto_free struct group *groups = NULL;
		auto_free uint32_t *of = NULL;
		size_t n = 0, n_runs = 0, end;

		CU_ASSERT_FATAL(waves && sorted);
		for (size_t i = 0; i < MANY; i++)
			sorted[i] = &waves[i];
		qsort(sorted, MANY, sizeof(*sorted), by_key);
		TEST_EQ_FATAL(group_waves(waves, MANY, &groups, &n, &of), 0);
		for (size_t i = 0; i < MANY; i = end, n_runs++) {
			for (end = i; end < MANY && same_place(sorted[i], sorted[end]); end++)
				;
			if (p < 2 || n_runs % 97 == 0)
				check_run(find(groups, n, sorted[i]), sorted + i, end - i, waves);
		}
		TEST_ROW_EQ(p, n, n_runs);
		for (size_t i = 0; i < MANY; i++)
			CU_ASSERT_FATAL(of[i] < n && groups[of[i]].place == waves[i].place &&
					groups[of[i]].reasons == waves[i].reasons);
		for (size_t i = 1; i < n; i++) {
			bool a = groups[i - 1].reasons & STOP_REASONS_FAULT;
			bool b = groups[i].reasons & STOP_REASONS_FAULT;

			CU_ASSERT(a || !b);
			CU_ASSERT(a != b || groups[i - 1].waves >= groups[i].waves);
		}
	}
}

/* Time is printed, and asserted only so far that a quadratic step shows on any machine. */
static void many_waves_are_quick(void)
{
	static const uint32_t places[] = { 1, 300, UINT32_C(1) << 30 };

	for (size_t p = 0; p < TEST_COUNT(places); p++) {
		auto_free struct wave *waves = random_waves(MANY, places[p]);
		auto_free struct group *groups = NULL;
		auto_free uint32_t *of = NULL;
		uint64_t begin_ns = test_cpu_ns(), took_ns;
		size_t n = 0;

		CU_ASSERT_PTR_NOT_NULL_FATAL(waves);
		TEST_EQ_FATAL(group_waves(waves, MANY, &groups, &n, &of), 0);
		took_ns = test_cpu_ns() - begin_ns;
		printf("  %d waves, %zu groups: %.1f ms\n", MANY, n, (double)took_ns / 1e6);
		CU_ASSERT(took_ns < UINT64_C(1000000000));
	}
}

/* ------------------------------------------------------------------ on the wire -------------- */

static void waves_and_groups_read_well_in_json(void)
{
	struct wave waves[] = {
		{ .pc = 0x7f0000001000, .exec = 0xf, .dispatch = 5, .gpu_id = 11, .queue_id = 3,
		  .unit = 1, .index = 17, .leader = 0, .workgroup = { 4, 5, 6 }, .lanes = 4,
		  .width = 64, .wave_in_group = 2, .trap_id = 2, .state = RPC_WAVE_STATE_STOPPED,
		  .reasons = STOP_REASON_BIT(RPC_STOP_REASON_ASSERT) | STOP_REASON_BIT(RPC_STOP_REASON_WATCHPOINT),
		  .kernel = 1, .has_dispatch = true, .has_workgroup = true, .has_wave_in_group = true },
		{ .pc = 0x20, .gpu_id = 11, .queue_id = 3, .leader = 1, .site = 1, .place = 1,
		  .width = 32 },
	};
	struct rpc_frame frames[] = {
		{ .function = "f(int)", .raw = "_Z1fi", .file = "a.cl", .has_line = true, .line = 7,
		  .inlined = true },
		{ .function = "k" },
	};
	struct location places[] = { { frames, 2 }, { 0 } };
	struct location_kernel kernels[] = { { 0 }, { 0x7f0000000040, "k", "k.kd" } };
	const struct locations p = { .places = places, .n_places = 2, .kernels = kernels,
				  .n_kernels = 2 };
	auto_rpc_arena struct rpc_arena arena;
	auto_free struct group *groups = NULL;
	auto_free uint32_t *of = NULL;
	auto_out struct out text;
	struct rpc_wave *w;
	struct rpc_group *g;
	size_t n;

	rpc_arena_init(&arena, 0);
	out_init(&text, 0);
	TEST_EQ_FATAL(group_waves(waves, 2, &groups, &n, &of), 0);
	TEST_EQ_FATAL(n, 2);
	w = waves_convert(&arena, waves, of, 2);
	g = waves_convert_groups(&arena, waves, groups, n, &p);
	CU_ASSERT_FATAL(w && g);
	rpc_wave_encode(&text, &w[0]);
	TEST_STR(text.data, "{\"ref\":{\"queue_id\":3,\"unit\":1,\"index\":17,\"dispatch\":5,"
			    "\"workgroup\":[4,5,6],\"wave_in_group\":2},\"gpu_id\":11,"
			    "\"pc\":\"0x7f0000001000\",\"exec\":\"0xf\",\"lanes\":4,\"width\":64,"
			    "\"state\":\"stopped\",\"reasons\":[\"watchpoint\",\"assert\"],\"trap_id\":2,"
			    "\"group\":0}");
	out_reset(&text);
	rpc_group_encode(&text, &g[0]);
	TEST_STR(text.data, "{\"gpu_id\":11,"
			    "\"kernel\":{\"address\":\"0x7f0000000040\",\"name\":\"k\",\"raw\":\"k.kd\"},"
			    "\"frames\":[{\"function\":\"f(int)\",\"raw\":\"_Z1fi\",\"file\":\"a.cl\","
			    "\"line\":7,\"inlined\":true},{\"function\":\"k\",\"inlined\":false}],"
			    "\"pc\":\"0x7f0000001000\",\"pcs\":1,\"state\":\"stopped\","
			    "\"reasons\":[\"watchpoint\",\"assert\"],"
			    "\"waves\":1,\"lanes_min\":4,\"lanes_median\":4,\"lanes_max\":4,"
			    "\"workgroups\":1,\"first_workgroup\":[4,5,6],\"last_workgroup\":[4,5,6],"
			    "\"representative\":{\"queue_id\":3,\"unit\":1,\"index\":17,\"dispatch\":5,"
			    "\"workgroup\":[4,5,6],\"wave_in_group\":2}}");
	out_reset(&text);
	rpc_group_encode(&text, &g[1]);
	TEST_STR(text.data, "{\"gpu_id\":11,\"frames\":[],\"pc\":\"0x20\",\"pcs\":1,"
			    "\"state\":\"running\",\"reasons\":[],"
			    "\"waves\":1,\"lanes_min\":0,\"lanes_median\":0,\"lanes_max\":0,"
			    "\"workgroups\":1,\"first_workgroup\":[],\"last_workgroup\":[],"
			    "\"representative\":{\"queue_id\":3,\"unit\":0,"
			    "\"index\":0,\"workgroup\":[]}}");
}

static void too_little_memory_is_an_answer(void)
{
	struct wave waves[100] = { 0 };
	const uint32_t of[100] = { 0 };
	auto_rpc_arena struct rpc_arena arena;

	rpc_arena_init(&arena, 4096);
	CU_ASSERT_PTR_NULL(waves_convert(&arena, waves, of, TEST_COUNT(waves)));
	TEST_EQ(rpc_arena_error(&arena), -EFBIG);
}

/* Four waves of two queues at two places; @swap: saved in the other order; @move: one has gone on. */
static int fill_queues(struct rpc_arena *a, bool swap, bool move, struct rpc_queue queues[3],
		       struct rpc_group **ret, size_t *ret_n)
{
	struct wave waves[] = { wave(0x100, 64, 0, 0), wave(0x200, 64, 1, 0), wave(0x100, 64, 2, 0),
				wave(0x100, 64, 3, STOP_REASON_BIT(RPC_STOP_REASON_ASSERT)) };
	auto_free struct group *g = NULL;
	auto_free uint32_t *of = NULL;

	for (size_t i = 0; i < TEST_COUNT(waves); i++)
		waves[i].queue_id = i < 2 ? 5 : 9;
	waves[0].wave_in_group = 1;
	if (move)
		waves[0].pc = 0x104;
	if (swap) {
		struct wave first = waves[0];

		waves[0] = waves[1];
		waves[1] = first;
	}
	for (size_t i = 0; i < 3; i++)
		queues[i] = (struct rpc_queue){ .gpu_id = 1, .queue_id = (uint32_t[]){ 5, 7, 9 }[i] };
	queues[1].has_not_stopped = true;
	if (group_waves(waves, TEST_COUNT(waves), &g, ret_n, &of) < 0)
		return -ENOMEM;
	*ret = rpc_arena_array(a, *ret_n, sizeof(**ret));
	for (size_t i = 0; i < *ret_n; i++)
		(*ret)[i] = (struct rpc_group){ .pc = g[i].pc, .waves = g[i].waves };
	return queue_waves_fill(a, waves, of, TEST_COUNT(waves), *ret, *ret_n, queues, 3);
}

/* A snapshot says of each queue how many waves it has, and of each group whose they are. */
static void queues_are_told_apart(void)
{
	auto_rpc_arena struct rpc_arena arena;
	struct rpc_queue queues[3], again[3];
	struct rpc_group *g;
	size_t n;

	rpc_arena_init(&arena, 0);
	TEST_EQ_FATAL(fill_queues(&arena, false, false, queues, &g, &n), 0);
	TEST_EQ(queues[0].waves, 2);
	TEST_EQ(queues[0].faulting_waves, 0);
	TEST_EQ(queues[1].has_waves, false);
	TEST_EQ(queues[1].has_waves_digest, false);
	TEST_EQ(queues[2].waves, 2);
	TEST_EQ(queues[2].faulting_waves, 1);
	TEST_EQ_FATAL(n, 3);
	TEST_EQ_FATAL(g[0].n_queues, 1);
	TEST_EQ(g[0].queues[0], 9);
	TEST_EQ_FATAL(g[1].n_queues, 2);
	TEST_EQ(g[1].queues[0], 5);
	TEST_EQ(g[1].queues[1], 9);
	TEST_EQ_FATAL(g[2].n_queues, 1);
	TEST_EQ(g[2].queues[0], 5);
	/* The digest does not depend on the order, and on one queue's waves only. */
	TEST_EQ_FATAL(fill_queues(&arena, true, false, again, &g, &n), 0);
	TEST_EQ(again[0].waves_digest, queues[0].waves_digest);
	TEST_EQ_FATAL(fill_queues(&arena, false, true, again, &g, &n), 0);
	CU_ASSERT_NOT_EQUAL(again[0].waves_digest, queues[0].waves_digest);
	TEST_EQ(again[2].waves_digest, queues[2].waves_digest);
}

/* A group of parts knows its queue, and the digest when a part has moved, or lanes went over. */
static void parts_are_of_queues(void)
{
	uint64_t digests[3];

	for (uint32_t i = 0; i < 3; i++) {
		struct wave w = wave(0x100, 20, 0, 0);
		struct wave list[] = { wave(0x100, 20, 0, 0), wave(i == 1 ? 0x204 : 0x200, 12, 0, 0) };
		struct wave_parts parts = apart(list, 2);
		struct rpc_queue queue = { .gpu_id = 1, .queue_id = 5 };
		struct rpc_group groups[2] = { 0 };
		auto_rpc_arena struct rpc_arena arena;

		rpc_arena_init(&arena, 0);
		w.parts = list[0].parts = list[1].parts = &parts;
		w.queue_id = list[0].queue_id = list[1].queue_id = 5;
		list[1].group = 1;
		list[1].exec = i == 2 ? 0xff : 0xf0;
		TEST_EQ(queue_waves_fill(&arena, &w, (uint32_t[]){ 0 }, 1, groups, 2, &queue, 1), 0);
		for (uint32_t g = 0; g < 2; g++) {
			TEST_ROW_EQ(g, groups[g].n_queues, 1);
			CU_ASSERT_FATAL(groups[g].n_queues == 1);
			TEST_ROW_EQ(g, groups[g].queues[0], 5);
		}
		TEST_EQ(queue.waves, 1);
		digests[i] = queue.waves_digest;
	}
	CU_ASSERT_NOT_EQUAL(digests[0], digests[1]);
	CU_ASSERT_NOT_EQUAL(digests[0], digests[2]);
}

/* The range of a queue's dispatches is known when each of its waves tells its own. */
static void queues_tell_their_dispatches(void)
{
	static const struct {
		uint64_t dispatch[3];
		bool tells[3];
		bool want;
		uint64_t first, last;
	} rows[] = {
		{ { 7, 5, 6 }, { true, true, true }, true, 5, 7 },
		{ { 0, 0, 0 }, { true, true, true }, true, 0, 0 },
		{ { 5, 7, 6 }, { false, true, true }, false },
		{ { 5, 7, 6 }, { true, false, true }, false },
		{ { 5, 7, 6 }, { true, true, false }, false },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct wave waves[] = { wave(0x100, 64, 0, 0), wave(0x100, 64, 1, 0), wave(0x100, 64, 2, 0) };
		struct rpc_queue queues[] = { { .gpu_id = 1, .queue_id = 5 }, { .gpu_id = 1, .queue_id = 6 } };
		struct rpc_group group = { .pc = 0x100, .waves = 3 };
		const uint32_t of[3] = { 0 };
		auto_rpc_arena struct rpc_arena arena;

		rpc_arena_init(&arena, 0);
		for (size_t k = 0; k < 3; k++) {
			waves[k].queue_id = 5;
			waves[k].dispatch = rows[i].dispatch[k];
			waves[k].has_dispatch = rows[i].tells[k];
		}
		TEST_ROW_EQ(i, queue_waves_fill(&arena, waves, of, 3, &group, 1, queues, 2), 0);
		TEST_ROW_EQ(i, queues[0].has_first_dispatch, rows[i].want);
		TEST_ROW_EQ(i, queues[0].has_last_dispatch, rows[i].want);
		TEST_ROW_EQ(i, queues[1].has_first_dispatch, false);
		if (!rows[i].want)
			continue;
		TEST_ROW_EQ(i, queues[0].first_dispatch, rows[i].first);
		TEST_ROW_EQ(i, queues[0].last_dispatch, rows[i].last);
	}
}

static void a_name_is_true_of_its_wave_alone(void)
{
	uint32_t here[] = { 4, 5, 6 }, elsewhere[] = { 4, 5, 7 };
	const struct wave known = { .queue_id = 3, .unit = 1, .index = 17, .dispatch = 5,
				    .has_dispatch = true, .workgroup = { 4, 5, 6 },
				    .has_workgroup = true, .wave_in_group = 2,
				    .has_wave_in_group = true };
	const struct wave unknown = { .queue_id = 3, .unit = 1, .index = 17, .dispatch = 5,
				      .workgroup = { 4, 5, 6 }, .wave_in_group = 2 };
	const struct {
		struct rpc_wave_name name;
		bool is_name, of_known, of_unknown;
	} rows[] = {
		{ { 3, true, 1, true, 17 }, true, true, true },
		{ { 4, true, 1, true, 17 }, true, false, false },
		{ { 3, true, 0, true, 17 }, true, false, false },
		{ { 3, true, 1, true, 18 }, true, false, false },
		{ { 3, true, 1, true, 17, true, 5 }, true, true, false },
		{ { 3, true, 1, true, 17, true, 6 }, true, false, false },
		{ { 3, true, 1, true, 17, false, 0, true, 3, here }, true, true, false },
		{ { 3, true, 1, true, 17, false, 0, true, 2, elsewhere }, true, true, false },
		{ { 3, true, 1, true, 17, false, 0, true, 3, elsewhere }, true, false, false },
		{ { 3, true, 1, true, 17, false, 0, true, 0, NULL, true, 2 }, true, true, false },
		{ { 3, true, 1, true, 17, false, 0, true, 0, NULL, true, 1 }, true, false, false },
		/* By what it works on: the position does not count. */
		{ { 3, false, 0, false, 0, true, 5, true, 3, here, true, 2 }, true, true, false },
		{ { 3, true, 9, true, 99, true, 5, true, 3, here, true, 2 }, true, true, false },
		{ { 4, false, 0, false, 0, true, 5, true, 3, here, true, 2 }, true, false, false },
		{ { 3, false, 0, false, 0, true, 6, true, 3, here, true, 2 }, true, false, false },
		{ { 3, false, 0, false, 0, true, 5, true, 3, here }, false },
		{ { 3, true, 1, false, 0, true, 5, true, 2, here, true, 2 }, false },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct agent_err err = { 0 };

		TEST_EQ(wave_name_check(&rows[i].name, "params.here", &err) == 0, rows[i].is_name);
		CU_ASSERT(rows[i].is_name || strstr(err.message, "params.here: needs index"));
		if (!rows[i].is_name)
			continue;
		TEST_EQ(wave_is_named(&known, &rows[i].name), rows[i].of_known);
		TEST_EQ(wave_is_named(&unknown, &rows[i].name), rows[i].of_unknown);
	}
}

TEST_SUITE(worker_group, TEST(nothing_gives_no_group), TEST(faults_come_first_then_size_then_pc),
	   TEST(the_key_is_place_and_reason), TEST(workgroups_have_a_range),
	   TEST(parts_count_where_they_are), TEST(a_wave_that_speaks_represents),
	   TEST(which_reasons_are_faults),
	   TEST(many_random_waves_agree_with_sorting), TEST(many_waves_are_quick),
	   TEST(waves_and_groups_read_well_in_json), TEST(too_little_memory_is_an_answer),
	   TEST(queues_are_told_apart),
	   TEST(parts_are_of_queues), TEST(queues_tell_their_dispatches), TEST(a_name_is_true_of_its_wave_alone));
