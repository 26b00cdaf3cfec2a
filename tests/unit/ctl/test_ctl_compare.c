/* SPDX-License-Identifier: MIT */
#include "base/out.h"
#include "ctl/document/compare.h"
#include "ctl/document/place.h"
#include "tests/unit/ctl/ctl_snapshot.h"
#include "testlib.h"

#define SECOND UINT64_C(1000000)

/* Two snapshots that are two seconds apart. */
struct verdict_row {
	const char *before, *after;
	enum rpc_progress want;
	const char *evidence;
};

static void check_verdict(size_t i, const struct verdict_row *row)
{
	auto_rpc_arena struct rpc_arena arena;
	struct snapshot_build before, after;
	struct rpc_comparison c;

	rpc_arena_init(&arena, 0);
	snapshot_build(&before, SECOND, row->before);
	snapshot_build(&after, 3 * SECOND, row->after);
	TEST_ROW_EQ(i, compare_snapshots(&arena, &before.s, &after.s, false, &c), 0);
	TEST_ROW_EQ(i, c.verdict, row->want);
	TEST_ROW_STR(i, c.evidence, row->evidence);
}

/* Each verdict, with the line that explains it. */
static void finds_the_verdict(void)
{
	static const struct verdict_row rows[] = {
		{ "q3:5/12 g100:64@3/5", "q3:9/12 g100:64@3/9", RPC_PROGRESS_PROGRESSING,
		  "queue 3 took 4 packets in 2.0 s" },
		{ "q3:5/12 q4:0/9", "q3:6/12 q4:1/9", RPC_PROGRESS_PROGRESSING,
		  "queue 3 took 1 packet in 2.0 s; queue 4 took 1 packet in 2.0 s" },
		/* Copy engines count bytes: they move on, but take no packets. */
		{ "q0:5/9 q1:4096/9000c g100:8@0/5", "q0:6/9 q1:8192/9000c g100:8@0/5",
		  RPC_PROGRESS_PROGRESSING, "queue 0 took 1 packet in 2.0 s; queue 1 moved on in 2.0 s" },
		{ "q0:5/9 q1:4096/9000c g100:8@0/5", "q0:5/9 q1:8192/9000c g100:8@0/5",
		  RPC_PROGRESS_HUNG, "dispatch 5 of queue 0: 8 waves at the same place for 2.0 s; "
				     "progressing: queue 1" },
		/* Its packet was not written when the first snapshot was taken. */
		{ "q0:5/5 g100:64@0/4", "q0:5/6 g100:64@0/5", RPC_PROGRESS_PROGRESSING,
		  "dispatch 5 of queue 0 is new" },
		{ "q0:5/5", "q0:5/6 g100:64@0/5", RPC_PROGRESS_PROGRESSING,
		  "dispatch 5 of queue 0 is new" },
		/* Progress is progress, whatever else is missing. */
		{ "q0:5/9 missing=waves:gone", "q0:6/9", RPC_PROGRESS_PROGRESSING,
		  "queue 0 took 1 packet in 2.0 s" },
		{ "q3:5/12 g100:200@3/5 g110:56@3/5", "q3:5/12 g100:200@3/5 g110:56@3/5",
		  RPC_PROGRESS_HUNG, "dispatch 5 of queue 3: 256 waves at the same 2 places for 2.0 s" },
		{ "q0:5/12 q1:0/0 g100:8@0/5", "q0:5/12 q1:0/0 g100:8@0/5", RPC_PROGRESS_HUNG,
		  "dispatch 5 of queue 0: 8 waves at the same place for 2.0 s" },
		{ "q0:5/12 g100:8@0/5 g108:4@0/6", "q0:5/12 g100:8@0/5 g108:4@0/6", RPC_PROGRESS_HUNG,
		  "queue 0: 12 waves, some of dispatch 5, at the same 2 places for 2.0 s" },
		{ "q0:5/12 g100:1@0/5!", "q0:5/12 g100:1@0/5!", RPC_PROGRESS_HUNG,
		  "dispatch 5 of queue 0: 1 wave at the same place for 2.0 s; 1 wave stopped by "
		  "memory_violation at 0x100" },
		{ "q0:5/12", "q0:5/13", RPC_PROGRESS_HUNG,
		  "7 packets of queue 0 waited for 2.0 s and no wave ran" },
		{ "q0:5/12 g100:64@0/5 g104:8@0/5", "q0:5/12 g100:60@0/5 g104:12@0/5",
		  RPC_PROGRESS_SLOW,
		  "queue 0: 72 waves moving, but within 8 bytes of code; no packet was done in 2.0 s" },
		{ "q0:5/12 g100:64@0/5", "q0:5/12 g900:64@0/5", RPC_PROGRESS_SLOW,
		  "queue 0: 64 waves moving over 2 places; no packet was done in 2.0 s" },
		{ "q0:5/12 g100:64@0/5", "q0:5/12 g100:60@0/5", RPC_PROGRESS_SLOW,
		  "queue 0: 4 waves ended; no packet was done in 2.0 s" },
		{ "q0:5/12 g100:64@0/5", "q0:5/12", RPC_PROGRESS_SLOW,
		  "queue 0: 64 waves ended; no packet was done in 2.0 s" },
		{ "q0:5/12 g100:64@0/5", "q0:5/12 g100:65@0/5", RPC_PROGRESS_SLOW,
		  "queue 0: 1 wave started; no packet was done in 2.0 s" },
		{ "q0:5/5", "q0:5/5", RPC_PROGRESS_IDLE, "no waves, and no packets waiting" },
		{ "", "", RPC_PROGRESS_IDLE, "no waves, and no packets waiting" },
		{ "q0:5/5", "q0:5/6", RPC_PROGRESS_UNKNOWN,
		  "queue 0 got packets between the snapshots and has taken none yet" },
		{ "q0:5/9 g100:8@0/5 missing=queue 0: gone", "q0:5/9 g100:8@0/5",
		  RPC_PROGRESS_UNKNOWN,
		  "the earlier snapshot is not complete: queue 0: gone" },
		{ "q0:5/9 g100:8@0/5", "q0:5/9 g100:8@0/5 missing=waves: gone",
		  RPC_PROGRESS_UNKNOWN, "the later snapshot is not complete: waves: gone" },
		/* Not what decides it. */
		{ "q0:5/9 g100:8@0/5 missing=device 7: not in the topology", "q0:5/9 g100:8@0/5",
		  RPC_PROGRESS_HUNG, "dispatch 5 of queue 0: 8 waves at the same place for 2.0 s" },
		{ "q0:5/9 unseen", "q0:5/9 unseen", RPC_PROGRESS_UNKNOWN,
		  "the earlier snapshot did not look at the waves of queue 0, and it took no packet" },
		{ "q0:5/9 unseen", "q0:5/9 g100:8@0/9", RPC_PROGRESS_PROGRESSING,
		  "dispatch 9 of queue 0 is new" },
		{ "q0:5/9 unseen", "q0:5/9 g100:8@0/5", RPC_PROGRESS_UNKNOWN,
		  "the earlier snapshot did not look at the waves of queue 0, and it took no packet" },
		{ "q0:5/9s g100:8@0/5", "q0:5/9s g100:8@0/5", RPC_PROGRESS_UNKNOWN,
		  "queue 0 is suspended under a lease and cannot move" },
		{ "q0:? g100:8@0/5", "q0:? g100:8@0/5", RPC_PROGRESS_HUNG,
		  "dispatch 5 of queue 0: 8 waves at the same place for 2.0 s" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		check_verdict(i, &rows[i]);
}

/* Where no packets are known, dispatches tell: when all that ran have ended, others run in their place. */
static void sees_ended_dispatches(void)
{
	static const struct verdict_row rows[] = {
		{ "q0:?x r0:7-8 g100:64@0/7", "q0:?x r0:9-9 g100:64@0/9", RPC_PROGRESS_PROGRESSING,
		  "queue 0: dispatch 9 runs in place of dispatches 7 to 8 after 2.0 s" },
		{ "q0:?x r0:7-7 g100:64@0/7", "q0:?x r0:9-11 g100:64@0/9", RPC_PROGRESS_PROGRESSING,
		  "queue 0: dispatches 9 to 11 run in place of dispatch 7 after 2.0 s" },
		/* One of them runs on; what others do is no proof. */
		{ "q0:?x r0:7-8 g100:64@0/7", "q0:?x r0:8-9 g104:64@0/9", RPC_PROGRESS_SLOW,
		  "queue 0: 64 waves moving, but within 8 bytes of code in 2.0 s" },
		{ "q0:?x r0:7-7 g100:64@0/7", "q0:?x r0:7-7 g100:64@0/7", RPC_PROGRESS_HUNG,
		  "dispatch 7 of queue 0: 64 waves at the same place for 2.0 s" },
		/* A grid that another one has launched may wait for it without warps. */
		{ "q0:?x r0:7-7 g100:64@0/7", "q0:?x r0:18446744073709551615-18446744073709551615 g104:64@0/1",
		  RPC_PROGRESS_SLOW, "queue 0: 64 waves moving, but within 8 bytes of code in 2.0 s" },
		{ "q0:?x r0:7-7 g100:64@0/7", "q0:?x r0:9-18446744073709551615 g104:64@0/9",
		  RPC_PROGRESS_SLOW, "queue 0: 64 waves moving, but within 8 bytes of code in 2.0 s" },
		/* Either snapshot may have missed one of them. */
		{ "q0:?x r0:7-7 g100:64@0/7 missing=device 7: grid 5 is not known", "q0:?x r0:9-9 g100:64@0/9",
		  RPC_PROGRESS_UNKNOWN, "the earlier snapshot is not complete: device 7: grid 5 is not known" },
		{ "q0:?x r0:7-7 g100:64@0/7", "q0:?x r0:9-9 g100:64@0/9 missing=device 7: gone",
		  RPC_PROGRESS_UNKNOWN, "the later snapshot is not complete: device 7: gone" },
		{ "q0:?x g100:64@0/7", "q0:?x r0:9-9 g104:64@0/9", RPC_PROGRESS_SLOW,
		  "queue 0: 64 waves moving, but within 8 bytes of code in 2.0 s" },
		{ "q0:?x r0:7-7 g100:64@0/7", "q0:?x g104:64@0/9", RPC_PROGRESS_SLOW,
		  "queue 0: 64 waves moving, but within 8 bytes of code in 2.0 s" },
		/* A fault is worse than what others do. */
		{ "q0:?x r0:7-7 g100:64@0/7", "q0:?x r0:9-9 g100:64@0/9!", RPC_PROGRESS_HUNG,
		  "queue 0: dispatch 9 runs in place of dispatch 7 after 2.0 s; "
		  "64 waves stopped by memory_violation at 0x100" },
		{ "q0:?x r0:7-7 g100:64@0/7 q1:?x r1:3-3 g200:8@1/3", "q0:?x r0:9-9 g100:64@0/9 q1:?x r1:3-3 g200:8@1/3",
		  RPC_PROGRESS_HUNG, "dispatch 3 of queue 1: 8 waves at the same place for 2.0 s; progressing: queue 0" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		check_verdict(i, &rows[i]);
}

/* A packet may take half a second: snapshots that are closer together prove nothing. */
static void needs_time_between(void)
{
	static const struct {
		uint64_t apart_us;
		const char *after;
		enum rpc_progress want;
		const char *evidence;
	} rows[] = {
		{ 0, "q0:5/9 g100:8@0/5", RPC_PROGRESS_UNKNOWN,
		  "too short to tell: the snapshots are 0 ms apart, and must be 500" },
		{ 30000, "q0:5/9 g100:8@0/5", RPC_PROGRESS_UNKNOWN,
		  "too short to tell: the snapshots are 30 ms apart, and must be 500" },
		{ 499999, "q0:6/9 g100:8@0/6!", RPC_PROGRESS_UNKNOWN,
		  "too short to tell: the snapshots are 499 ms apart, and must be 500" },
		{ 500000, "q0:5/9 g100:8@0/5", RPC_PROGRESS_HUNG,
		  "dispatch 5 of queue 0: 8 waves at the same place for 500 ms" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_rpc_arena struct rpc_arena arena;
		struct snapshot_build b, a;
		struct rpc_comparison c;

		rpc_arena_init(&arena, 0);
		snapshot_build(&b, SECOND, "q0:5/9 g100:8@0/5");
		snapshot_build(&a, SECOND + rows[i].apart_us, rows[i].after);
		TEST_ROW_EQ(i, compare_snapshots(&arena, &b.s, &a.s, false, &c), 0);
		TEST_ROW_EQ(i, c.verdict, rows[i].want);
		TEST_ROW_EQ(i, c.queues[0].verdict, rows[i].want);
		TEST_ROW_STR(i, c.evidence, rows[i].evidence);
		TEST_ROW_EQ(i, c.interval_us, rows[i].apart_us);
	}
}

/* Groups that tell their last workgroup show whether workgroups follow each other. */
static void sees_new_workgroups(void)
{
	static const struct {
		uint32_t before[3], after[3];
		const char *evidence;
	} rows[] = {
		{ { 7, 0, 0 }, { 9, 0, 0 }, "queue 0: 8 waves moving, but within 8 bytes of code, new "
					    "workgroups started; no packet was done in 1.0 s" },
		{ { 7, 0, 1 }, { 9, 0, 0 }, "queue 0: 8 waves moving, but within 8 bytes of code, no new "
					    "workgroup; no packet was done in 1.0 s" },
		{ { 7, 2, 1 }, { 0, 3, 1 }, "queue 0: 8 waves moving, but within 8 bytes of code, new "
					    "workgroups started; no packet was done in 1.0 s" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_rpc_arena struct rpc_arena arena;
		struct snapshot_build b, a;
		struct rpc_comparison c;

		rpc_arena_init(&arena, 0);
		snapshot_build(&b, SECOND, "q0:5/9 g100:8@0/5");
		snapshot_build(&a, 2 * SECOND, "q0:5/9 g104:8@0/5");
		b.groups[0].last_workgroup = (uint32_t *)rows[i].before;
		a.groups[0].last_workgroup = (uint32_t *)rows[i].after;
		b.groups[0].n_last_workgroup = a.groups[0].n_last_workgroup = 3;
		TEST_ROW_EQ(i, compare_snapshots(&arena, &b.s, &a.s, false, &c), 0);
		TEST_ROW_STR(i, c.evidence, rows[i].evidence);
	}
}

/* Waves that change places within a line: every number of their group stays the same. */
static void digests_decide(void)
{
	auto_rpc_arena struct rpc_arena arena;
	struct snapshot_build b, a;
	struct rpc_comparison c;

	rpc_arena_init(&arena, 0);
	snapshot_build(&b, SECOND, "q0:5/9 g100:2@0/5");
	snapshot_build(&a, 2 * SECOND, "q0:5/9 g100:2@0/5");
	TEST_EQ(compare_snapshots(&arena, &b.s, &a.s, false, &c), 0);
	TEST_EQ(c.verdict, RPC_PROGRESS_HUNG);
	TEST_EQ(c.queues[0].change, RPC_CHANGE_SAME);
	a.queues[0].waves_digest++;
	TEST_EQ(compare_snapshots(&arena, &b.s, &a.s, false, &c), 0);
	TEST_EQ(c.verdict, RPC_PROGRESS_SLOW);
	TEST_EQ(c.queues[0].change, RPC_CHANGE_CHANGED);
}

/* A queue that hangs is not hidden by others that go on. */
static void each_queue_has_a_verdict(void)
{
	static const struct {
		const char *before, *after;
		bool any_progress;
		enum rpc_progress want;
		enum rpc_progress queues[4];
		const char *evidence;
	} rows[] = {
		{ "q0:5/12 q1:5/12 q2:5/12 q3:1/1 g100:8@0/5 g200:2@1/5! g300:4@2/5",
		  "q0:5/12 q1:5/12 q2:9/12 q3:1/1 g100:8@0/5 g200:2@1/5! g300:4@2/9", false, RPC_PROGRESS_HUNG,
		  { RPC_PROGRESS_HUNG, RPC_PROGRESS_HUNG, RPC_PROGRESS_PROGRESSING, RPC_PROGRESS_IDLE },
		  "dispatch 5 of queue 0: 8 waves at the same place for 2.0 s; dispatch 5 of queue 1: 2 waves at "
		  "the same place for 2.0 s; 2 waves stopped by memory_violation at 0x200; progressing: queue 2" },
		{ "q0:5/12 q1:5/12 g100:8@0/5", "q0:5/12 q1:9/12 g100:8@0/5", true, RPC_PROGRESS_PROGRESSING,
		  { RPC_PROGRESS_HUNG, RPC_PROGRESS_PROGRESSING },
		  "queue 1 took 4 packets in 2.0 s; hung: queue 0" },
		{ "q0:5/12 g100:8@0/5", "q0:5/12 g100:8@0/5", true, RPC_PROGRESS_HUNG, { RPC_PROGRESS_HUNG },
		  "dispatch 5 of queue 0: 8 waves at the same place for 2.0 s" },
		/* The others of its waves move, its packets are taken: those that faulted do not end. */
		{ "q0:5/12 g100:8@0/5", "q0:9/12 g104:6@0/9 g100:2@0/5!", false, RPC_PROGRESS_HUNG,
		  { RPC_PROGRESS_HUNG },
		  "queue 0 took 4 packets in 2.0 s; 2 waves stopped by memory_violation at 0x100" },
		/* A barrier packet waits for another queue. */
		{ "q0:5/12 q1:5/12", "q0:9/12 q1:5/12", false, RPC_PROGRESS_UNKNOWN,
		  { RPC_PROGRESS_PROGRESSING, RPC_PROGRESS_UNKNOWN },
		  "7 packets of queue 1 waited for 2.0 s and no wave ran; they may wait for queue 0, which goes on; "
		  "progressing: queue 0" },
		{ "q0:5/12 q1:5/12 g100:8@0/5", "q0:5/12 q1:5/12 g100:8@0/5", false, RPC_PROGRESS_HUNG,
		  { RPC_PROGRESS_HUNG, RPC_PROGRESS_HUNG },
		  "dispatch 5 of queue 0: 8 waves at the same place for 2.0 s; 7 packets of queue 1 waited for 2.0 s "
		  "and no wave ran" },
		/* What is not known of one queue says nothing about another one. */
		{ "q0:5/12 q1:5/12 g100:8@0/5 missing=queue 1: gone", "q0:5/12 q1:5/12 g100:8@0/5", false,
		  RPC_PROGRESS_HUNG, { RPC_PROGRESS_HUNG, RPC_PROGRESS_UNKNOWN },
		  "dispatch 5 of queue 0: 8 waves at the same place for 2.0 s; unknown: queue 1" },
		{ "q0:5/12 g100:8@0/5 missing=device 7: not in the topology that the agent may read",
		  "q0:5/12 g100:8@0/5", false, RPC_PROGRESS_HUNG, { RPC_PROGRESS_HUNG },
		  "dispatch 5 of queue 0: 8 waves at the same place for 2.0 s" },
		{ "q0:5/12 g100:8@0/5 missing=device 7: warps: lost", "q0:5/12 g100:8@0/5", false,
		  RPC_PROGRESS_UNKNOWN, { RPC_PROGRESS_UNKNOWN },
		  "the earlier snapshot is not complete: device 7: warps: lost" },
		{ "q0:5/12s q1:5/12 g100:8@0/5", "q0:5/12s q1:9/12 g100:8@0/5", false, RPC_PROGRESS_UNKNOWN,
		  { RPC_PROGRESS_UNKNOWN, RPC_PROGRESS_PROGRESSING },
		  "queue 0 is suspended under a lease and cannot move; progressing: queue 1" },
		/* What may wait for a queue that was not seen, or that somebody holds, is not hung. */
		{ "q0:5/12 q1:10/90c unseen", "q0:5/12 q1:10/90c unseen", false, RPC_PROGRESS_UNKNOWN,
		  { RPC_PROGRESS_UNKNOWN, RPC_PROGRESS_UNKNOWN },
		  "the earlier snapshot did not look at the waves of queue 0, and it took no packet; 80 packets of "
		  "queue 1 waited for 2.0 s and no wave ran; they may wait for queue 0, which may go on" },
		{ "q0:5/12s q1:10/90c g100:8@0/5", "q0:5/12s q1:10/90c g100:8@0/5", false, RPC_PROGRESS_UNKNOWN,
		  { RPC_PROGRESS_UNKNOWN, RPC_PROGRESS_UNKNOWN },
		  "queue 0 is suspended under a lease and cannot move; 80 packets of queue 1 waited for 2.0 s and "
		  "no wave ran; they may wait for queue 0, which may go on" },
		{ "q0:5/12 q1:5/5", "q0:5/12 q1:5/9", false, RPC_PROGRESS_HUNG,
		  { RPC_PROGRESS_HUNG, RPC_PROGRESS_UNKNOWN },
		  "7 packets of queue 0 waited for 2.0 s and no wave ran; unknown: queue 1" },
		/* It ran for a moment only. */
		{ "q0:5/12s g100:8@0/5", "q0:5/12 g100:8@0/5", false, RPC_PROGRESS_UNKNOWN,
		  { RPC_PROGRESS_UNKNOWN }, "queue 0 was suspended under a lease and could not move" },
		/* The ring begins anew. */
		{ "q0:90/95c", "q0:10/95c", false, RPC_PROGRESS_PROGRESSING, { RPC_PROGRESS_PROGRESSING },
		  "queue 0 moved on in 2.0 s" },
		{ "q0:5/12 g100:8@0/5", "q0:5/12 g100:8@0/5 missing=queue 0: the dispatch of 8 waves is unknown: gone",
		  false, RPC_PROGRESS_HUNG, { RPC_PROGRESS_HUNG },
		  "dispatch 5 of queue 0: 8 waves at the same place for 2.0 s" },
		/* Contexts of CUDA are queues with waves as well. */
		{ "q0:?x g100:8@0/5", "q0:?x g100:8@0/5", false, RPC_PROGRESS_HUNG, { RPC_PROGRESS_HUNG },
		  "dispatch 5 of queue 0: 8 waves at the same place for 2.0 s" },
		{ "q0:?X g100:8@0/5", "q0:?X g100:8@0/5", false, RPC_PROGRESS_UNKNOWN, { RPC_PROGRESS_UNKNOWN },
		  "queue 0 is suspended under a lease and cannot move" },
		{ "q0:?x unseen", "q0:?x unseen", false, RPC_PROGRESS_UNKNOWN, { RPC_PROGRESS_UNKNOWN },
		  "the earlier snapshot did not look at the waves of queue 0" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_rpc_arena struct rpc_arena arena;
		struct snapshot_build before, after;
		struct rpc_comparison c;

		rpc_arena_init(&arena, 0);
		snapshot_build(&before, SECOND, rows[i].before);
		snapshot_build(&after, 3 * SECOND, rows[i].after);
		TEST_ROW_EQ(i, compare_snapshots(&arena, &before.s, &after.s, rows[i].any_progress, &c), 0);
		TEST_ROW_EQ(i, c.verdict, rows[i].want);
		TEST_ROW_STR(i, c.evidence, rows[i].evidence);
		for (size_t k = 0; k < c.n_queues; k++)
			TEST_ROW_EQ(i, c.queues[k].verdict, rows[i].queues[k]);
	}
}

static void set_line(struct rpc_group *g, struct rpc_frame *f, unsigned line)
{
	*f = (struct rpc_frame){ .function = "sum", .file = "/src/reduce.cl", .has_line = true,
				 .line = line };
	g->frames = f;
	g->n_frames = 1;
	g->has_kernel = true;
	g->kernel = (struct rpc_kernel){ .address = 0x40, .name = "reduce(float*)" };
}

/* With source lines, a waiting loop is told by its lines, and a fault by its own. */
static void speaks_of_lines(void)
{
	static const struct {
		const char *before, *after;
		unsigned lines[2]; /* of both groups, later */
		enum rpc_progress want;
		const char *evidence;
	} rows[] = {
		{ "q0:5/9 g100:8@0/5 g200:4@0/5", "q0:5/9 g100:7@0/5 g200:5@0/5", { 10, 11 },
		  RPC_PROGRESS_SLOW,
		  "queue 0: 12 waves moving, but within 2 lines; no packet was done in 1.0 s" },
		{ "q0:5/9 g100:8@0/5 g200:4@0/5", "q0:5/9 g100:8@0/5 g200:4@0/5", { 10, 11 },
		  RPC_PROGRESS_HUNG,
		  "dispatch 5 of queue 0: 12 waves at the same 2 lines for 1.0 s" },
		{ "q0:5/9 g100:8@0/5 g200:4@0/5!", "q0:5/9 g100:8@0/5 g200:4@0/5!", { 10, 11 },
		  RPC_PROGRESS_HUNG,
		  "dispatch 5 of queue 0: 12 waves at the same 2 lines for 1.0 s; 4 waves stopped "
		  "by memory_violation at reduce.cl:11 in reduce" },
		/* One wave of the same name is elsewhere in its line. */
		{ "q0:5/9 g100:8@0/5 g200:4@0/5", "q0:5/9 g100:8@0/5 g204:4@0/5", { 10, 11 },
		  RPC_PROGRESS_SLOW,
		  "queue 0: 12 waves moving, but within 2 lines; no packet was done in 1.0 s" },
		{ "q0:5/9 g100:8@0/5 g200:4@0/5", "q0:5/9 g100:8@0/5 g200:4@0/5 "
		  "missing=code object a: b", { 10, 11 }, RPC_PROGRESS_HUNG,
		  "dispatch 5 of queue 0: 12 waves at the same 2 lines for 1.0 s" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_rpc_arena struct rpc_arena arena;
		struct rpc_frame frames[4];
		struct snapshot_build b, a;
		struct rpc_comparison c;

		rpc_arena_init(&arena, 0);
		snapshot_build(&b, SECOND, rows[i].before);
		snapshot_build(&a, 2 * SECOND, rows[i].after);
		for (size_t k = 0; k < 2; k++) {
			set_line(&b.groups[k], &frames[k], (unsigned)(10 + k));
			set_line(&a.groups[k], &frames[2 + k], rows[i].lines[k]);
			b.groups[k].representative.has_wave_in_group = true;
			a.groups[k].representative.has_wave_in_group = true;
		}
		TEST_ROW_EQ(i, compare_snapshots(&arena, &b.s, &a.s, false, &c), 0);
		TEST_ROW_EQ(i, c.verdict, rows[i].want);
		TEST_ROW_STR(i, c.evidence, rows[i].evidence);
	}
}

/* Queues are paired by identity, groups by place; faults first, then what changed most. */
static void pairs_what_belongs_together(void)
{
	static const struct {
		uint32_t pc, before, after;
		enum rpc_change change;
	} want[] = {
		{ 0x500, 1, 1, RPC_CHANGE_SAME },	{ 0x300, 0, 50, RPC_CHANGE_ADDED },
		{ 0x200, 30, 0, RPC_CHANGE_REMOVED },	{ 0x100, 64, 60, RPC_CHANGE_CHANGED },
		{ 0x400, 8, 8, RPC_CHANGE_SAME },
	};
	auto_rpc_arena struct rpc_arena arena;
	struct snapshot_build before, after;
	struct rpc_comparison c;

	rpc_arena_init(&arena, 0);
	snapshot_build(&before, SECOND,
		       "q0:1/1 q1:2/2 g100:64@0/5 g200:30@0/5 g400:5@0/5 g400:3@1/7 g500:1@0/5!");
	snapshot_build(&after, 2 * SECOND,
		       "q2:0/0 q1:2/3 g500:1@0/5! g100:60@0/5 g300:50@0/5 g400:8@0/5");
	TEST_EQ_FATAL(compare_snapshots(&arena, &before.s, &after.s, false, &c), 0);
	TEST_EQ_FATAL(c.n_groups, TEST_COUNT(want));
	for (size_t i = 0; i < TEST_COUNT(want); i++) {
		TEST_ROW_EQ(i, c.groups[i].group.pc, want[i].pc);
		TEST_ROW_EQ(i, c.groups[i].waves_before, want[i].before);
		TEST_ROW_EQ(i, c.groups[i].waves_after, want[i].after);
		TEST_ROW_EQ(i, c.groups[i].change, want[i].change);
	}
	TEST_EQ_FATAL(c.n_queues, 3);
	TEST_EQ(c.queues[0].queue_id, 2);
	TEST_EQ(c.queues[0].change, RPC_CHANGE_ADDED);
	TEST_EQ(c.queues[0].has_read_before, false);
	TEST_EQ(c.queues[1].queue_id, 1);
	TEST_EQ(c.queues[1].change, RPC_CHANGE_CHANGED);
	TEST_EQ(c.queues[1].write_after, 3);
	TEST_EQ(c.queues[2].queue_id, 0);
	TEST_EQ(c.queues[2].change, RPC_CHANGE_REMOVED);
	TEST_EQ(c.faulting_waves, 1);
}

/* A warp that has faulted at two places is in two groups, and one wave. */
static void a_wave_at_two_places_has_faulted_once(void)
{
	auto_rpc_arena struct rpc_arena arena;
	struct snapshot_build before, after;
	struct rpc_comparison c;

	rpc_arena_init(&arena, 0);
	snapshot_build(&before, SECOND, "q0:1/2 g10:4@0/0");
	snapshot_build(&after, 2 * SECOND, "q0:1/2 g10:2@0/0 g20:1@0/0! g30:1@0/0!");
	after.queues[0].has_faulting_waves = true;
	after.queues[0].faulting_waves = 1;
	TEST_EQ_FATAL(compare_snapshots(&arena, &before.s, &after.s, false, &c), 0);
	TEST_EQ(c.faulting_waves, 1);
}

/* Lanes are compared where both documents tell of parts; another lane is no wave that moved. */
static void lanes_of_parts_are_compared(void)
{
	static const struct {
		struct rpc_group before, after; /* What differs. */
		bool changed;
	} rows[] = {
		{ { .lanes_max = 8 }, { .lanes_max = 9 }, true },
		{ { .has_parts = true, .parts = 1, .lanes_max = 8 },
		  { .has_parts = true, .parts = 1, .lanes_max = 9 }, true },
		{ { .lanes_max = 32 }, { .has_parts = true, .parts = 1, .lanes_max = 9 }, false },
		{ { .pc = 0x100 }, { .pc = 0x104 }, true },
		{ { .pc = 0x100, .has_lane = true, .lane = 3 },
		  { .pc = 0x104, .has_lane = true, .lane = 3 }, true },
		{ { .pc = 0x100, .has_lane = true, .lane = 3 },
		  { .pc = 0x104, .has_lane = true, .lane = 4 }, false },
		{ { .pc = 0x100 }, { .pc = 0x104, .has_lane = true, .lane = 0 }, false },
	};
	struct rpc_frame line = { .file = "a.cu", .has_line = true, .line = 7 };

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_rpc_arena struct rpc_arena arena;
		struct snapshot_build s[2];
		struct rpc_comparison c;

		rpc_arena_init(&arena, 0);
		for (size_t k = 0; k < 2; k++) {
			const struct rpc_group *from = k ? &rows[i].after : &rows[i].before;
			struct rpc_group *g = &s[k].groups[0];

			snapshot_build(&s[k], (1 + k) * SECOND, "g100:1@0/5");
			set_line(g, &line, 7);
			g->representative.workgroup = s[k].workgroup[0];
			g->representative.n_workgroup = 3;
			g->representative.has_wave_in_group = true;
			g->pc = from->pc;
			g->has_lane = from->has_lane;
			g->lane = from->lane;
			g->has_parts = from->has_parts;
			g->parts = from->parts;
			g->lanes_max = from->lanes_max;
		}
		TEST_EQ(compare_snapshots(&arena, &s[0].s, &s[1].s, false, &c), 0);
		TEST_ROW_EQ(i, c.n_groups, 1);
		TEST_ROW_EQ(i, c.groups[0].change, rows[i].changed ? RPC_CHANGE_CHANGED : RPC_CHANGE_SAME);
	}
}

/* The id of a queue that was destroyed is used again. */
static void a_new_ring_is_a_new_queue(void)
{
	auto_rpc_arena struct rpc_arena arena;
	struct snapshot_build before, after;
	struct rpc_comparison c;

	rpc_arena_init(&arena, 0);
	snapshot_build(&before, SECOND, "q0:1/1");
	snapshot_build(&after, 2 * SECOND, "q0:9/9");
	after.queues[0].ring_base = 0x999000;
	TEST_EQ_FATAL(compare_snapshots(&arena, &before.s, &after.s, false, &c), 0);
	TEST_EQ(c.n_queues, 2);
	TEST_EQ(c.verdict, RPC_PROGRESS_IDLE);
}

static void refuses_other_processes(void)
{
	auto_rpc_arena struct rpc_arena arena;
	struct snapshot_build a, b;

	rpc_arena_init(&arena, 0);
	snapshot_build(&a, SECOND, "");
	snapshot_build(&b, SECOND, "");
	TEST_STR(compare_mismatch(&arena, &a.s, &b.s), NULL);
	b.s.process.start_ticks = 6;
	TEST_STR(compare_mismatch(&arena, &a.s, &b.s),
		 "process 42 ended in between, and another has its number");
	b.s.process.has_start_ticks = false;
	TEST_STR(compare_mismatch(&arena, &a.s, &b.s), NULL);
	b.s.process.pid = 43;
	TEST_STR(compare_mismatch(&arena, &a.s, &b.s), "they show the processes 42 and 43");
	b.s.source.host = "other";
	TEST_STR(compare_mismatch(&arena, &a.s, &b.s), "they come from the hosts h and other");
	b.s.has_ranks = true;
	TEST_STR(compare_mismatch(&arena, &a.s, &b.s),
		 "one of them is merged from several processes");
}

/* Running out of memory at any point is an error, never a verdict. */
static void survives_small_arenas(void)
{
	struct snapshot_build before, after;
	struct rpc_comparison c;
	int r = -EFBIG;

	snapshot_build(&before, SECOND, "q0:5/9 g100:8@0/5 g104:3@0/5! missing=device 1: x");
	snapshot_build(&after, 2 * SECOND, "q0:5/9 g100:7@0/5 g104:4@0/5!");
	for (size_t limit = 16; r < 0 && limit < 65536; limit += 16) {
		auto_rpc_arena struct rpc_arena arena;

		rpc_arena_init(&arena, limit);
		r = compare_snapshots(&arena, &before.s, &after.s, false, &c);
		CU_ASSERT(r == 0 || r == -EFBIG);
	}
	TEST_EQ(r, 0);
}

/* Threads are found again whether their stacks are equal or not; only equal stacks are the same place. */
static void threads_are_found_again(void)
{
	static const struct {
		uint32_t tid;
		uint64_t switches;
		const char *waits_in;
		enum rpc_change want;
		bool ran;
	} rows[] = {
		{ 7, 5, "poll", RPC_CHANGE_SAME, false },
		{ 7, 6, "poll", RPC_CHANGE_SAME, true },
		{ 7, 6, "read", RPC_CHANGE_CHANGED, true },
		{ 7, 5, "read", RPC_CHANGE_CHANGED, false },
		{ 8, 6, "read", RPC_CHANGE_ADDED, false },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_rpc_arena struct rpc_arena arena;
		struct snapshot_build before, after;
		struct rpc_comparison c;
		uint32_t was = 7, is = rows[i].tid;
		struct rpc_thread_group b = { .threads = 1, .tids = &was, .n_tids = 1, .has_switches = true,
					      .switches = 5, .waits_in = "poll", .state = RPC_THREAD_STATE_BLOCKED };
		struct rpc_thread_group h = b;

		h.tids = &is;
		h.switches = rows[i].switches;
		h.waits_in = rows[i].waits_in;
		rpc_arena_init(&arena, 0);
		snapshot_build(&before, SECOND, "q3:5/12 g100:64@3/5");
		snapshot_build(&after, 3 * SECOND, "q3:9/12 g100:64@3/9");
		before.s.has_host = after.s.has_host = true;
		before.s.host = (struct rpc_host_stacks_result){ .groups = &b, .n_groups = 1 };
		after.s.host = (struct rpc_host_stacks_result){ .groups = &h, .n_groups = 1 };
		TEST_ROW_EQ(i, compare_snapshots(&arena, &before.s, &after.s, false, &c), 0);
		TEST_ROW_EQ(i, c.has_host_groups, true);
		/* Other threads: one group is new, and one gone. */
		TEST_ROW_EQ(i, c.n_host_groups, rows[i].want == RPC_CHANGE_ADDED ? 2 : 1);
		TEST_ROW_EQ(i, c.host_groups[0].change, rows[i].want);
		TEST_ROW_EQ(i, c.host_groups[0].has_ran, rows[i].want != RPC_CHANGE_ADDED);
		TEST_ROW_EQ(i, c.host_groups[0].ran, rows[i].ran);
	}
}

TEST_SUITE(ctl_compare, TEST(finds_the_verdict), TEST(sees_ended_dispatches),
	   TEST(needs_time_between), TEST(sees_new_workgroups),
	   TEST(digests_decide), TEST(each_queue_has_a_verdict), TEST(speaks_of_lines),
	   TEST(pairs_what_belongs_together), TEST(lanes_of_parts_are_compared),
	   TEST(a_wave_at_two_places_has_faulted_once), TEST(a_new_ring_is_a_new_queue),
	   TEST(refuses_other_processes), TEST(threads_are_found_again), TEST(survives_small_arenas));
