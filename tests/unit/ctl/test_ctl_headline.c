/* SPDX-License-Identifier: MIT */
#include "base/out.h"
#include "ctl/document/compare.h"
#include "ctl/document/headline.h"
#include "tests/unit/ctl/ctl_snapshot.h"
#include "testlib.h"

/* The lines of a headline, each with its tag. */
static void check(int row, struct rpc_arena *a, const struct headline_input *in, const char *want)
{
	static struct gpu_names gpus = { .n = 1, .gpus = { { .id = 7, .name = "MI300X" } } };
	struct headline h;
	auto_out struct out o;

	out_init(&o, 0);
	TEST_ROW_EQ(row, headline_make(a, in, &gpus, &h), 0);
	for (size_t i = 0; i < h.n; i++)
		out_fmt(&o, "%s %s\n", headline_tag(h.lines[i].kind), h.lines[i].text);
	if (h.more_causes)
		out_fmt(&o, "%s\n", headline_more_causes(a, &h));
	if (h.more)
		out_fmt(&o, "%zu more\n", h.more);
	TEST_ROW_STR(row, o.data, want);
}

/* One snapshot tells what is wrong and what waits, but never that anything is hung or well. */
static void one_snapshot_never_overclaims(void)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "q0:5/12 g100:64@0/5 g200:2@0/5!",
		  "FAULT memory violation: 2 waves at 0x200, GPU 0, queue 0\n" },
		{ "q0:5/12 q2:8/8 g100:60@0/5 g140:4@0/5",
		  " No fault: 64 waves of 2 queues\n"
		  "WAITS queue 0: 7 packets wait behind 0x100 and 1 more place (64 waves)\n" },
		{ "q0:5/6", " No waves on any GPU: 1 queue\nWAITS queue 0: 1 packet waits and no wave runs\n" },
		{ "q0:5/5 unseen", " No waves were read: 1 queue, no packet waits\n" },
		{ "q0:5/5 q1:9/9", " No waves on any GPU: 2 queues, no packet waits\n" },
		{ "q0:? missing=queue 0: lost", " No waves on any GPU, as far as could be seen: 1 queue\n" },
		{ "q0:5/12s q1:5/12s g100:1@0/5",
		  " No fault: 1 wave of 2 queues\n"
		  "HELD queues 0, 1: suspended under a lease, and cannot move\n" },
		/* Copy engines count bytes. */
		{ "q0:5/12c", " No waves on any GPU: 1 queue\n" },
		{ "q0:5/5 q1:?", " No waves on any GPU: 2 queues\n" },
		{ "q0:5/5 q1:? g100:4@0/5 missing=queue 1: lost", " No fault, as far as could be seen: 4 waves of 2 queues\n" },
		/* The worst ones have room. */
		{ "g1:1@0/5! g2:1@0/5! g3:1@0/5! g4:1@0/5! g5:1@0/5! g6:1@0/5!",
		  "FAULT memory violation: 1 wave at 0x1, GPU 0, queue 0\n"
		  "FAULT memory violation: 1 wave at 0x2, GPU 0, queue 0\n"
		  "FAULT memory violation: 1 wave at 0x3, GPU 0, queue 0\n"
		  "FAULT memory violation: 1 wave at 0x4, GPU 0, queue 0\n"
		  "2 more\n" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_rpc_arena struct rpc_arena arena;
		struct snapshot_build b;

		rpc_arena_init(&arena, 0);
		snapshot_build(&b, 1, rows[i].text);
		check((int)i, &arena, &(struct headline_input){ .snapshot = &b.s }, rows[i].want);
	}
}

static void two_snapshots_tell_what_is_hung(void)
{
	static const struct {
		const char *before, *after, *want;
	} rows[] = {
		{ "q0:5/12 g100:64@0/5", "q0:5/12 g100:64@0/5",
		  "HUNG queue 0: no packet for 2.0 s; 7 wait behind 0x100 (64 waves)\n" },
		{ "q0:5/5 g100:64@0/4", "q0:5/5 g100:64@0/4",
		  "HUNG queue 0: 64 waves at the same place for 2.0 s: 0x100\n" },
		{ "q0:5/12 g100:64@0/5", "q0:7/12 g100:64@0/7", " Nothing is wrong: 64 waves, all queues moving\n" },
		{ "q0:5/12 q1:9/9 g100:1@0/5", "q0:7/12 q1:9/9 g100:1@0/7",
		  " Nothing is wrong: 1 wave, 1 queue moving, 1 idle\n" },
		{ "q0:9/9", "q0:9/9", " Nothing is wrong: no waves on any GPU, and no packet waits\n" },
		{ "q0:9/9c", "q0:9/9c", " Nothing is wrong: no waves on any GPU\n" },
		{ "q0:5/12 g100:64@0/5", "q0:7/12 g100:64@0/7 missing=queue 0: lost",
		  " Nothing is wrong, as far as could be seen: 64 waves, all queues moving\n" },
		/* Why a queue with a fault stands still is told once, and other queues are judged. */
		{ "q0:5/12 q1:5/12 g200:2@0/5! g100:64@1/5", "q0:5/12 q1:5/12 g200:2@0/5! g100:64@1/5",
		  "FAULT memory violation: 2 waves at 0x200, GPU 0, queue 0\n"
		  "HUNG queue 1: no packet for 2.0 s; 7 wait behind 0x100 (64 waves)\n" },
		/* Why nothing is known of a queue that is held is told once. */
		{ "q0:5/12s g100:64@0/5", "q0:5/12s g100:64@0/5",
		  "HELD queue 0: suspended under a lease, and cannot move\n" },
		{ "q0:5/12 g100:64@0/5", "q0:5/12 unseen",
		  "UNSURE the later snapshot did not look at the waves of queue 0, and it took no packet\n" },
		{ "q0:5/12 g100:64@0/5", "q0:5/12 g100:64@0/5 missing=waves: lost",
		  "UNSURE the later snapshot is not complete: waves: lost\n" },
		/* A device has the number that people know, where it has one. */
		{ "q0:5/12 g100:64@0/5", "q0:5/12 g100:64@0/5 missing=device 7: lost",
		  "UNSURE the later snapshot is not complete: GPU 0: lost\n" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_rpc_arena struct rpc_arena arena;
		struct snapshot_build b, e;
		struct rpc_comparison c;

		rpc_arena_init(&arena, 0);
		snapshot_build(&b, 1, rows[i].before);
		snapshot_build(&e, 2000001, rows[i].after);
		TEST_ROW_EQ(i, compare_snapshots(&arena, &b.s, &e.s, false, &c), 0);
		check((int)i, &arena, &(struct headline_input){ .snapshot = &e.s, .comparison = &c }, rows[i].want);
	}
}

/* Those who may only look, and have used up their budget: nothing is known of the waves, and no wave is shown. */
static void what_was_not_stopped_is_not_judged(void)
{
	static const struct {
		enum rpc_vendor vendor;
		const char *want;
	} rows[] = {
		{ RPC_VENDOR_AMD, " Nothing was stopped for you, so what the waves do is not known: 2 queues\n"
				  "WAITS queue 0: 7 packets wait and no wave runs\n" },
		{ RPC_VENDOR_NVIDIA, " Nothing was stopped for you, so what the warps do is not known: 2 contexts\n" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_rpc_arena struct rpc_arena arena;
		struct snapshot_build b;

		rpc_arena_init(&arena, 0);
		snapshot_build(&b, 1, i ? "q0:?x q1:?x" : "q0:5/12 q1:9/9");
		b.s.process.vendor = rows[i].vendor;
		b.s.no_stop = true;
		check((int)i, &arena, &(struct headline_input){ .snapshot = &b.s }, rows[i].want);
	}
}

/* Snapshots that are too close say so once, whatever else is wrong. */
static void too_short_is_told_once(void)
{
	auto_rpc_arena struct rpc_arena arena;
	struct snapshot_build b, e;
	struct rpc_comparison c;

	rpc_arena_init(&arena, 0);
	snapshot_build(&b, 1, "q0:5/12 q1:5/12 q2:5/9 g200:2@0/5! g100:64@1/5 g300:1@2/5");
	snapshot_build(&e, 100001, "q0:5/12 q1:5/12 q2:5/9 g200:2@0/5! g100:64@1/5 g300:1@2/5");
	TEST_EQ(compare_snapshots(&arena, &b.s, &e.s, false, &c), 0);
	check(0, &arena, &(struct headline_input){ .snapshot = &e.s, .comparison = &c },
	      "FAULT memory violation: 2 waves at 0x200, GPU 0, queue 0\n"
	      "UNSURE too short to tell: the snapshots are 100 ms apart, and must be 500\n");
}

/* What has stood still for longer than the two snapshots are apart is said so. */
static void a_longer_standstill_is_told(void)
{
	const uint64_t still_us[] = { 34200000 };
	auto_rpc_arena struct rpc_arena arena;
	struct snapshot_build b, e;
	struct rpc_comparison c;

	rpc_arena_init(&arena, 0);
	snapshot_build(&b, 1, "q0:5/12 g100:64@0/5");
	snapshot_build(&e, 2000001, "q0:5/12 g100:64@0/5");
	TEST_EQ(compare_snapshots(&arena, &b.s, &e.s, false, &c), 0);
	check(0, &arena, &(struct headline_input){ .snapshot = &e.s, .comparison = &c, .still_us = still_us },
	      "HUNG queue 0: no packet for 34.2 s; 7 wait behind 0x100 (64 waves)\n");
}

/* NVIDIA's users read their words, the number of the exception, and whose fault it is. */
static void nvidia_has_its_words(void)
{
	uint32_t thread[] = { 37, 1, 0 };
	struct rpc_work_item items[] = { { .lane = 4 },
					 { .lane = 5, .in_group = thread, .n_in_group = 3, .exception = "x" } };
	struct rpc_wave_registers faulted = { .wave = { .gpu_id = 7 }, .work_items = items, .n_work_items = 2 };
	struct rpc_exited_exception exited = { .gpu_id = 7, .unit = 3, .units = 2, .has_pc = true, .pc = 0x40,
					       .exception = "CUDA_EXCEPTION_6: warp misaligned address" };
	auto_rpc_arena struct rpc_arena arena;
	struct snapshot_build b;

	rpc_arena_init(&arena, 0);
	snapshot_build(&b, 1, "q0:?x g200:1@0/5!");
	b.s.process.vendor = RPC_VENDOR_NVIDIA;
	b.groups[0].exception = "CUDA_EXCEPTION_14: warp illegal address";
	b.s.exited = &exited;
	b.s.n_exited = 1;
	check(0, &arena, &(struct headline_input){ .snapshot = &b.s, .faulted = &faulted },
	      "FAULT warp illegal address (CUDA_EXCEPTION_14): 1 warp at 0x200, lane 5, thread (37,1,0), GPU 0, context 0\n"
	      "FAULT warp misaligned address (CUDA_EXCEPTION_6): warps that have exited at 0x40, SM 3 and 1 more of GPU 0\n");
	/* The lanes of another warp say nothing. */
	faulted.wave.ref.index = 1;
	b.s.n_exited = 0;
	check(1, &arena, &(struct headline_input){ .snapshot = &b.s, .faulted = &faulted },
	      "FAULT warp illegal address (CUDA_EXCEPTION_14): 1 warp at 0x200, GPU 0, context 0\n");
}

/* The faulting lane is that of the group's part; how many waves have diverged is told where all is well, or hangs. */
static void waves_that_have_diverged_are_told(void)
{
	struct rpc_work_item items[] = { { .lane = 4, .exception = "x" }, { .lane = 9, .exception = "y" } };
	struct rpc_wave_registers faulted = { .wave = { .gpu_id = 7 }, .work_items = items, .n_work_items = 2 };
	auto_rpc_arena struct rpc_arena arena;
	struct snapshot_build b, e;
	struct rpc_comparison c;

	rpc_arena_init(&arena, 0);
	snapshot_build(&b, 1, "q0:?x g100:64@0/5 g200:3@0/5");
	b.s.process.vendor = RPC_VENDOR_NVIDIA;
	b.s.wave_count = 64;
	b.s.has_diverged_waves = true;
	b.s.diverged_waves = 3;
	check(0, &arena, &(struct headline_input){ .snapshot = &b.s },
	      " No fault: 64 warps of 1 context, 3 of 64 warps have diverged\n");
	b.s.diverged_waves = 1;
	check(1, &arena, &(struct headline_input){ .snapshot = &b.s },
	      " No fault: 64 warps of 1 context, 1 of 64 warps has diverged\n");
	snapshot_build(&e, 1 + 2000000, "q0:?x g100:64@0/5 g200:3@0/5");
	e.s.process.vendor = RPC_VENDOR_NVIDIA;
	e.s.wave_count = 64;
	e.s.has_diverged_waves = true;
	e.s.diverged_waves = 3;
	TEST_EQ(compare_snapshots(&arena, &b.s, &e.s, false, &c), 0);
	check(2, &arena, &(struct headline_input){ .snapshot = &e.s, .comparison = &c },
	      "HUNG context 0: 67 warps at the same place for 2.0 s: 0x100 and 1 more place, 3 of 64 warps have diverged\n");
	snapshot_build(&b, 1, "q0:?x g200:1@0/5! g300:1@0/5!");
	b.s.process.vendor = RPC_VENDOR_NVIDIA;
	b.groups[0].has_lane = b.groups[1].has_lane = true;
	b.groups[0].lane = 9;
	b.groups[1].lane = 4;
	check(3, &arena, &(struct headline_input){ .snapshot = &b.s, .faulted = &faulted },
	      "FAULT memory violation: 1 warp at 0x200, lane 9, GPU 0, context 0\n"
	      "FAULT memory violation: 1 warp at 0x300, lane 4, GPU 0, context 0\n");
}

/* What a watch rule kept the record for, and what is latched where waves tell nothing. */
static void latched_exceptions_and_records(void)
{
	enum rpc_exception queue[] = { RPC_EXCEPTION_WAVE_MEMORY_VIOLATION, RPC_EXCEPTION_QUEUE_NEW,
				       RPC_EXCEPTION_QUEUE_PREEMPTION_ERROR };
	enum rpc_exception raised[] = { RPC_EXCEPTION_DEVICE_MEMORY_VIOLATION };
	auto_rpc_arena struct rpc_arena arena;
	struct snapshot_build b;

	rpc_arena_init(&arena, 0);
	snapshot_build(&b, 1, "q3:5/5 g200:1@3/5!");
	b.queues[0].exceptions = queue;
	b.queues[0].n_exceptions = 3;
	b.s.has_fault = true;
	b.s.fault = (struct rpc_fault){ .rule = "all", .exceptions = raised, .n_exceptions = 1, .has_gpu_id = true,
					.gpu_id = 7, .has_address = true, .address = 0xdead000, .count = 2 };
	check(0, &arena, &(struct headline_input){ .snapshot = &b.s },
	      "FAULT device memory violation at 0xdead000, GPU 0, one of 2 (rule all)\n"
	      "FAULT memory violation: 1 wave at 0x200, GPU 0, queue 3\n"
	      "FAULT queue preemption error: latched on queue 3 of GPU 0\n");
}

/* Who keeps others from going on stands behind faults alone, and nobody is said to be well then. */
static void who_does_not_come_is_told_first(void)
{
	struct rpc_wait_cause causes[] = { { .text = "a circle", .culprit = true },
					   { .text = "the host", .culprit = true, .confidence = RPC_CONFIDENCE_INFERRED },
					   { .text = "who runs" } };
	static const struct {
		const char *before, *after;
		size_t first;
		const char *want;
	} rows[] = {
		{ NULL, "q0:5/12 g100:64@0/5", 0,
		  "CAUSE a circle  [proven]\nALSO the host  [inferred]\n"
		  "WAITS queue 0: 7 packets wait behind 0x100 (64 waves)\n" },
		{ NULL, "q0:5/5 g200:2@0/5!", 1,
		  "FAULT memory violation: 2 waves at 0x200, GPU 0, queue 0\nCAUSE the host  [inferred]\n" },
		{ NULL, "q0:5/5 g100:2@0/5", 2, " No fault: 2 waves of 1 queue, no packet waits\n" },
		{ "q0:5/12 g100:64@0/5", "q0:5/12 g100:64@0/5", 1,
		  "CAUSE the host  [inferred]\nHUNG queue 0: no packet for 2.0 s; 7 wait behind 0x100 (64 waves)\n" },
		{ "q0:5/12 g100:64@0/5", "q0:7/12 g100:64@0/7", 1, "CAUSE the host  [inferred]\n" },
		/* What is not known of all queues is told once beside a cause. */
		{ "q0:5/12 q1:5/12 g100:64@0/5 g300:1@1/5", "q0:5/12 q1:5/12 unseen", 1,
		  "CAUSE the host  [inferred]\n"
		  "UNSURE the later snapshot did not look at the waves of queue 0, and it took no packet; "
		  "the later snapshot did not look at the waves of queue 1, and it took no packet\n" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_rpc_arena struct rpc_arena arena;
		struct snapshot_build b, e;
		struct rpc_comparison c;

		rpc_arena_init(&arena, 0);
		snapshot_build(&b, 1, rows[i].before ? rows[i].before : "");
		snapshot_build(&e, 2000001, rows[i].after);
		e.s.has_why = true;
		e.s.why.causes = causes + rows[i].first;
		e.s.why.n_causes = TEST_COUNT(causes) - rows[i].first;
		TEST_ROW_EQ(i, compare_snapshots(&arena, &b.s, &e.s, false, &c), 0);
		check((int)i, &arena,
		      &(struct headline_input){ .snapshot = &e.s, .comparison = rows[i].before ? &c : NULL },
		      rows[i].want);
	}
}

/* Tables have what else waits, but not who keeps it. */
static void causes_without_room_are_in_no_table(void)
{
	char text[8][4] = { 0 };
	struct rpc_wait_cause causes[8];
	auto_rpc_arena struct rpc_arena arena;
	struct snapshot_build b;

	rpc_arena_init(&arena, 0);
	snapshot_build(&b, 1, "q0:5/12s q1:5/12 q2:5/12 q3:5/12 q4:5/12 q5:5/12 q6:5/12 q7:5/12");
	for (size_t i = 0; i < TEST_COUNT(causes); i++) {
		snprintf(text[i], sizeof(text[i]), "c%zu", i);
		causes[i] = (struct rpc_wait_cause){ .text = text[i], .culprit = true };
	}
	b.s.has_why = true;
	b.s.why.causes = causes;
	b.s.why.n_causes = TEST_COUNT(causes);
	check(0, &arena, &(struct headline_input){ .snapshot = &b.s },
	      "CAUSE c0  [proven]\nALSO c1  [proven]\nALSO c2  [proven]\nALSO c3  [proven]\nALSO c4  [proven]\n"
	      "HELD queue 0: suspended under a lease, and cannot move\n"
	      "WAITS queue 1: 7 packets wait and no wave runs\nWAITS queue 2: 7 packets wait and no wave runs\n"
	      "3 more causes; see gpu-agentctl why, or why.causes in the document (-j)\n5 more\n");
}

TEST_SUITE(ctl_headline, TEST(one_snapshot_never_overclaims), TEST(two_snapshots_tell_what_is_hung),
	   TEST(what_was_not_stopped_is_not_judged), TEST(who_does_not_come_is_told_first),
	   TEST(causes_without_room_are_in_no_table),
	   TEST(too_short_is_told_once),
	   TEST(a_longer_standstill_is_told), TEST(nvidia_has_its_words),
	   TEST(waves_that_have_diverged_are_told), TEST(latched_exceptions_and_records));
