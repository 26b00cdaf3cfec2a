/* SPDX-License-Identifier: MIT */
#include "base/out.h"
#include "ctl/document/merge.h"
#include "protocol/rpc_copy.h"
#include "tests/unit/ctl/ctl_snapshot.h"
#include "testlib.h"

#define RANKS 8

DEFINE_AUTO(struct merge *, merge_destroy);

static void prints_and_reads_sets(void)
{
	static const struct {
		const char *text;
		size_t n, count;
		bool good;
	} rows[] = {
		{ "0", 1, 1, true },	   { "0-6,9", 10, 8, true }, { "63-64,99", 100, 3, true },
		{ "0,2,4", 5, 3, true },   { "", 5, 0, false },	     { "5", 5, 0, false },
		{ "0-5", 5, 0, false },	   { "3-3", 5, 0, false },   { "3-1", 5, 0, false },
		{ "2,1", 5, 0, false },	   { "1,1", 5, 0, false },   { "1,", 5, 0, false },
		{ ",1", 5, 0, false },	   { "1 ", 5, 0, false },    { "-1", 5, 0, false },
		{ "1-", 5, 0, false },	   { "1--2", 5, 0, false },  { "18446744073709551617", 5, 0, false },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_rpc_arena struct rpc_arena arena;
		struct merge_set s;

		rpc_arena_init(&arena, 0);
		TEST_ROW_EQ(i, merge_set_init(&arena, rows[i].n, &s), 0);
		TEST_ROW_EQ(i, merge_set_parse(rows[i].text, &s), rows[i].good ? 0 : -EINVAL);
		if (!rows[i].good)
			continue;
		TEST_ROW_EQ(i, merge_set_count(&s), rows[i].count);
		TEST_ROW_STR(i, merge_set_print(&arena, &s), rows[i].text);
	}
}

static struct document rank_document(struct snapshot_build *b, char name[32], unsigned rank,
				     const char *text)
{
	snapshot_build(b, 1000 + rank, text);
	snprintf(name, 32, "dir/rank%u.json", rank);
	b->s.process.pid = 100 + rank;
	return (struct document){ .name = name, .snapshot = b->s };
}

/* A copy has what the document has, and needs nothing of it. */
static void copies_documents(void)
{
	auto_out struct out before, after;
	auto_rpc_arena struct rpc_arena arena, small;
	struct rpc_gpu_snapshot_result copy, again;
	struct snapshot_build b;

	out_init(&before, 0);
	out_init(&after, 0);
	rpc_arena_init(&arena, 0);
	rpc_arena_init(&small, 100);
	snapshot_build(&b, 1, "q0:5/9 q1:? g100:64@0/5 g200:2@0/5! missing=device 7: x");
	/* Of what is not there, nothing is kept. */
	b.s.n_waves = 7;
	rpc_gpu_snapshot_result_encode(&before, &b.s);
	TEST_EQ_FATAL(rpc_copy_struct(&arena, &rpc_gpu_snapshot_result_struct, &b.s, &copy), 0);
	memset(&b, 0xff, sizeof(b));
	TEST_EQ(copy.n_waves, 0);
	rpc_gpu_snapshot_result_encode(&after, &copy);
	TEST_STR(after.data, before.data);
	TEST_EQ(rpc_copy_struct(&small, &rpc_gpu_snapshot_result_struct, &copy, &again), -EFBIG);
}

/* Merge texts, one for each rank. */
static struct merge *merge_texts(const char *const *texts, size_t n,
				 struct rpc_gpu_snapshot_result *ret)
{
	struct merge *m = merge_create();

	CU_ASSERT_PTR_NOT_NULL_FATAL(m);
	for (unsigned i = 0; i < n; i++) {
		struct snapshot_build b;
		char name[32];
		struct document d = rank_document(&b, name, i, texts[i]);
		struct agent_err err = { 0 };

		TEST_EQ_FATAL(merge_add(m, &d, &err), 0);
	}
	TEST_EQ_FATAL(merge_finish(m, ret), 0);
	return m;
}

static void adds_up_ranks(void)
{
	static const char *const texts[] = { "q0:5/9 g100:64@0/5 g200:2@0/5!",
					     "q0:5/9 g100:60@0/5",
					     "q0:4/9 g300:64@0/5 g100:1@0/5 missing=device 7: x" };
	struct rpc_gpu_snapshot_result s;
	auto_call(merge_destroyp) struct merge *m = merge_texts(texts, 3, &s);

	TEST_EQ(merge_ranks(m), 3);
	TEST_STR(s.source.kind, "merged");
	TEST_STR(s.schema, "gpu-agent.snapshot/1");
	TEST_EQ(s.complete, false);
	TEST_STR(s.missing[0], "rank2: device 7: x");
	TEST_EQ(s.wave_count, 191);
	TEST_EQ_FATAL(s.n_ranks, 3);
	TEST_STR(s.ranks[2].name, "rank2");
	TEST_EQ(s.ranks[2].packets, 4);
	TEST_EQ(s.ranks[2].complete, false);
	TEST_EQ_FATAL(s.n_groups, 3);
	TEST_EQ(s.groups[0].pc, 0x200);
	TEST_STR(s.groups[0].ranks, "0");
	TEST_EQ(s.groups[1].pc, 0x100);
	TEST_EQ(s.groups[1].waves, 125);
	TEST_STR(s.groups[1].ranks, "0-2");
	TEST_EQ(s.groups[2].pc, 0x300);
	TEST_STR(s.groups[2].ranks, "2");
}

/* Parts are summed up as waves are; a rank of an older agent has none. */
static void adds_up_parts(void)
{
	auto_call(merge_destroyp) struct merge *m = merge_create();
	struct rpc_gpu_snapshot_result s;

	for (unsigned i = 0; i < 3; i++) {
		struct document d = { .name = i == 0 ? "a" : i == 1 ? "b" : "c" };
		struct snapshot_build b;
		struct agent_err err = { 0 };

		snapshot_build(&b, 1, "g100:64@0/5 g200:3@0/5");
		b.s.process.pid = 100 + i;
		for (size_t g = 0; g < 2 && i < 2; g++) {
			b.groups[g].has_parts = b.s.has_diverged_waves = true;
			b.groups[g].parts = b.s.diverged_waves = 3 - i;
			b.groups[g].lanes_min = 8 + i;
		}
		d.snapshot = b.s;
		TEST_EQ_FATAL(merge_add(m, &d, &err), 0);
	}
	TEST_EQ_FATAL(merge_finish(m, &s), 0);
	TEST_EQ(s.has_diverged_waves, true);
	TEST_EQ(s.diverged_waves, 5);
	TEST_EQ_FATAL(s.n_groups, 2);
	TEST_EQ(s.groups[0].waves, 192);
	TEST_EQ(s.groups[0].parts, 5);
	TEST_EQ(s.groups[1].waves, 9);
	TEST_EQ(s.groups[1].parts, 5);
}

static void names_the_odd_one(void)
{
	static const struct {
		const char *texts[5];
		const char *odd[5];
	} rows[] = {
		/* All alike, and nobody is a majority. */
		{ { "g100:8@0/5", "g100:8@0/5", "g100:9@0/5" }, { NULL } },
		{ { "g100:8@0/5", "g200:8@0/5" }, { NULL } },
		{ { "g100:8@0/5", "g100:8@0/5", "g100:6@0/5 g200:2@0/5!", "g100:8@0/5" },
		  { NULL, NULL, "is at 0x200 (memory_violation), where 1 of 4 are" } },
		{ { "g100:8@0/5 g200:1@0/5", "g100:8@0/5 g200:1@0/5", "g200:1@0/5" },
		  { NULL, NULL, "is not at 0x100, where 2 of 3 are" } },
		{ { "g100:8@0/5", "", "g100:8@0/5" }, { NULL, "no waves, unlike most" } },
		/* Running waves are somewhere else in each rank, faults are not. */
		{ { "g100:8@0/5", "g200:8@0/5", "g300:8@0/5", "g400:8@0/5", "g500:8@0/5!" },
		  { NULL, NULL, NULL, NULL, "is at 0x500 (memory_violation), where 1 of 5 are" } },
		{ { "q0:7/9 g100:8@0/7", "q0:6/9 g100:8@0/6", "q0:7/9 g100:8@0/7" },
		  { NULL, "is at packet 6, the others are at 7 or beyond" } },
		/* Moving on: no gap is wider than the rest is apart. */
		{ { "q0:7/9", "q0:6/9", "q0:8/9" }, { NULL } },
		{ { "q0:70/99", "q0:6/9", "q0:72/99", "q0:8/9", "q0:75/99" },
		  { NULL, "is at packet 6, the others are at 70 or beyond", NULL,
		    "is at packet 8, the others are at 70 or beyond" } },
		/* One ahead is not most behind. */
		{ { "q0:7/9", "q0:90/99", "q0:7/9" }, { NULL } },
		{ { "q0:7/9", "q0:?", "q0:7/9" }, { NULL } },
		/* How much was copied is nothing to compare. */
		{ { "q0:7/9 q1:9000/9000c", "q0:7/9 q1:64/64c", "q0:7/9 q1:9000/9000c" }, { NULL } },
		{ { "q1:9000/9000c", "q1:64/64c", "q1:9000/9000c" }, { NULL } },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct rpc_gpu_snapshot_result s;
		size_t n = 0;

		while (n < 5 && rows[i].texts[n])
			n++;
		auto_call(merge_destroyp) struct merge *m = merge_texts(rows[i].texts, n, &s);

		TEST_ROW_EQ(i, merge_ranks(m), n);
		for (size_t k = 0; k < n; k++)
			TEST_ROW_STR(10 * i + k, s.ranks[k].odd, rows[i].odd[k]);
	}
}

/* ------------------------------------------------------------------ in steps ----------------- */

static const char *random_text(char *text, size_t size)
{
	size_t at = (size_t)snprintf(text, size, "q0:%u/99 ", (unsigned)(test_random() % 4));

	for (size_t i = 0, n = test_random() % 4; i < n; i++)
		at += (size_t)snprintf(text + at, size - at, "g%x:%u@0/5%s ",
				       (unsigned)(0x100 + test_random() % 5),
				       (unsigned)(1 + test_random() % 64),
				       test_random() % 8 ? "" : "!");
	if (test_random() % 5 == 0)
		snprintf(text + at, size - at, "missing=waves: %u", (unsigned)(test_random() % 9));
	return text;
}

static void add_text(struct merge *m, unsigned rank, const char *text)
{
	struct agent_err err = { 0 };
	struct snapshot_build b;
	char name[32];
	struct document d = rank_document(&b, name, rank, text);

	/* One more is absent from all, and others are from each part. */
	d.snapshot.has_host = true;
	d.snapshot.host = (struct rpc_host_stacks_result){
		.pid = 100 + rank,
		.comm = "app",
		.has_rank = true,
		.rank = { .rank = rank, .from = "RANK", .has_world_size = true, .world_size = RANKS + 1 },
		.complete = true,
	};
	TEST_EQ_FATAL(merge_add(m, &d, &err), 0);
}

/* As it would be saved. */
static char *finish_text(struct merge *m)
{
	struct rpc_gpu_snapshot_result s;
	struct out o;
	size_t size;
	char *text;

	out_init(&o, 0);
	TEST_EQ_FATAL(merge_finish(m, &s), 0);
	rpc_gpu_snapshot_result_encode(&o, &s);
	TEST_EQ_FATAL(out_steal(&o, &text, &size), 0);
	merge_destroy(m);
	return text;
}

static void add_saved(struct merge *m, const char *text)
{
	auto_rpc_arena struct rpc_arena arena;
	struct agent_err err = { 0 };
	struct document d;

	rpc_arena_init(&arena, 0);
	TEST_EQ_FATAL(document_parse("part.json", text, strlen(text), &arena, &d, &err), 0);
	TEST_EQ(d.merged, true);
	TEST_EQ_FATAL(merge_add(m, &d, &err), 0);
}

/* In any order, and in two steps of any division, the same documents give the same text. */
static void steps_do_not_matter(void)
{
	for (int round = 0; round < 300; round++) {
		struct merge *flat = merge_create(), *parts[3], *top = merge_create();
		char texts[RANKS][200];
		unsigned order[RANKS];

		for (unsigned i = 0; i < 3; i++)
			parts[i] = merge_create();
		for (unsigned i = 0; i < RANKS; i++) {
			unsigned k = (unsigned)(test_random() % (i + 1));

			order[i] = order[k];
			order[k] = i;
			random_text(texts[i], sizeof(texts[i]));
			add_text(flat, i, texts[i]);
		}
		for (unsigned i = 0; i < RANKS; i++)
			add_text(test_random() % 4 ? parts[test_random() % 3] : top, order[i],
				 texts[order[i]]);
		for (unsigned i = 0; i < 3; i++) {
			auto_free char *text = NULL;

			if (!merge_ranks(parts[i])) {
				merge_destroy(parts[i]);
				continue;
			}
			text = finish_text(parts[i]);
			add_saved(top, text);
		}
		auto_free char *want = finish_text(flat), *got = finish_text(top);

		CU_ASSERT_PTR_NOT_NULL(strstr(want, "8 of 9 ranks were seen; rank 8 was not"));
		TEST_ROW_STR(round, got, want);
	}
}

/* Only where all agree on one job. */
static void names_ranks_that_are_absent(void)
{
	static const struct {
		struct rpc_process_rank ranks[3];
		const char *said;
	} rows[] = {
		{ { { .rank = 0 }, { .rank = 1 }, { .rank = 2 } }, "" },
		{ { { .rank = 0, .world_size = 3 }, { .rank = 1, .world_size = 3 }, { .rank = 2, .world_size = 3 } }, "" },
		{ { { .rank = 0, .world_size = 4 }, { .rank = 1, .world_size = 4 }, { .rank = 3, .world_size = 4 } },
		  "3 of 4 ranks were seen; rank 2 was not" },
		{ { { .rank = 9, .world_size = 9 }, { .rank = 1, .world_size = 9 }, { .rank = 3, .world_size = 9 } }, "" },
		{ { { .rank = 1, .world_size = 9 }, { .rank = 1, .world_size = 9 }, { .rank = 3, .world_size = 9 } }, "" },
		{ { { .rank = 1, .world_size = 8 }, { .rank = 2, .world_size = 9 }, { .rank = 3, .world_size = 9 } }, "" },
		{ { { .rank = 1, .world_size = 9 }, { .rank = 2, .world_size = 9, .job = "x" }, { .rank = 3, .world_size = 9 } },
		  "" },
		{ { { .rank = 1, .world_size = UINT32_MAX }, { .rank = 2, .world_size = UINT32_MAX },
		    { .rank = 3, .world_size = UINT32_MAX } },
		  "" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct rpc_rank list[3] = { 0 };
		auto_rpc_arena struct rpc_arena arena;

		rpc_arena_init(&arena, 0);
		for (size_t k = 0; k < 3; k++) {
			list[k].has_rank = true;
			list[k].rank = rows[i].ranks[k];
			list[k].rank.has_world_size = list[k].rank.world_size != 0;
		}
		TEST_ROW_STR(i, merge_absent(&arena, &(struct rpc_gpu_snapshot_result){ .ranks = list, .n_ranks = 3 }),
			     rows[i].said);
	}
}

/* ------------------------------------------------------------------ refusals ----------------- */

static void refuses_a_rank_twice(void)
{
	auto_call(merge_destroyp) struct merge *m = merge_create();
	struct agent_err err = { 0 };
	struct snapshot_build b;
	char name[32];
	struct document d = rank_document(&b, name, 3, "g100:8@0/5");
	struct rpc_gpu_snapshot_result s;

	TEST_EQ(merge_finish(m, &s), -EINVAL);
	TEST_EQ(merge_add(m, &d, &err), 0);
	d.name = "again.json";
	TEST_EQ(merge_add(m, &d, &err), -EINVAL);
	TEST_STR(err.message, "again.json: process 103 of h is in it, and in rank3 already");
	TEST_EQ(merge_ranks(m), 1);
	TEST_EQ(merge_finish(m, &s), 0);
	TEST_EQ(s.wave_count, 8);
}

static void refuses_sets_that_lie(void)
{
	static const char *const sets[] = { NULL, "", "1", "0-1", "x" };

	for (size_t i = 0; i < TEST_COUNT(sets); i++) {
		auto_call(merge_destroyp) struct merge *m = merge_create();
		struct agent_err err = { 0 };
		struct rpc_rank rank = { .name = "r", .host = "h", .comm = "c" };
		struct snapshot_build b;
		char name[32];
		struct document d = rank_document(&b, name, 0, "g100:8@0/5");

		d.merged = d.snapshot.has_ranks = true;
		d.snapshot.ranks = &rank;
		d.snapshot.n_ranks = 1;
		b.groups[0].ranks = sets[i];
		TEST_ROW_EQ(i, merge_add(m, &d, &err), -EINVAL);
		TEST_ROW_EQ(i, merge_ranks(m), 0);
	}
}

static void prints_a_tree(void)
{
	static const char *const texts[] = { "q0:5/9 g100:64@0/5", "q0:5/9 g100:60@0/5",
					     "q0:5/9 g100:64@0/5", "q0:4/9 g200:2@0/5!",
					     "q0:5/9 g100:64@0/5" };
	struct rpc_gpu_snapshot_result s;
	auto_call(merge_destroyp) struct merge *m = merge_texts(texts, 5, &s);
	auto_rpc_arena struct rpc_arena arena;
	auto_out struct out o;

	TEST_EQ(merge_ranks(m), 5);
	rpc_arena_init(&arena, 0);
	out_init(&o, 0);
	s.ranks[3].comm = "evil\x1b[2J";
	TEST_EQ(merge_print(&arena, &o, &s, &(struct table_form){ .legend = true }), 0);
	TEST_STR(o.data,
		 "FAULT  memory violation: 2 waves at 0x200, in rank3\n"
		 "ODD    rank3  is at 0x200 (memory_violation), where 1 of 5 are; is at packet 4, "
		 "the others are at 5 or beyond  (evil\\x1b[2J, process 103 of h)\n"
		 "5 ranks on 1 host, 254 waves, complete\n"
		 "\n"
		 "RANKS  WAVES  WHERE  STATE             WHICH\n"
		 "    1      2  0x200  memory violation  rank3\n"
		 "    4    252  0x100  running           0-2,4\n");
}

/* Nothing odd; where all are is not listed one by one. */
static void prints_ranks_that_agree(void)
{
	static const char *const texts[] = { "g100:64@0/5 missing=waves: few", "g100:60@0/5" };
	struct rpc_gpu_snapshot_result s;
	auto_call(merge_destroyp) struct merge *m = merge_texts(texts, 2, &s);
	auto_rpc_arena struct rpc_arena arena;
	auto_out struct out o;

	TEST_EQ(merge_ranks(m), 2);
	rpc_arena_init(&arena, 0);
	out_init(&o, 0);
	TEST_EQ(merge_print(&arena, &o, &s, &(struct table_form){ 0 }), 0);
	TEST_STR(o.data, "No rank is odd, as far as could be seen\n"
			 "2 ranks on 1 host, 124 waves, NOT COMPLETE\n"
			 "missing  rank0: waves: few\n"
			 "\n"
			 "2  124  0x100  running  all\n");
}

/* Nobody can be odd alone. */
static void prints_a_rank_alone(void)
{
	static const char *const texts[] = { "g100:64@0/5" };
	struct rpc_gpu_snapshot_result s;
	auto_call(merge_destroyp) struct merge *m = merge_texts(texts, 1, &s);
	auto_rpc_arena struct rpc_arena arena;
	auto_out struct out o;

	rpc_arena_init(&arena, 0);
	out_init(&o, 0);
	TEST_EQ(merge_print(&arena, &o, &s, &(struct table_form){ 0 }), 0);
	TEST_STR(o.data, "One rank: there is no other to compare it with\n"
			 "1 rank on 1 host, 64 waves, complete\n"
			 "\n"
			 "1  64  0x100  running  rank0\n");
}

/* Who was not seen may be otherwise, and what was not seen of the odd one. */
static void limits_what_it_says(void)
{
	static const struct {
		const char *texts[3], *said;
	} rows[] = {
		{ { "g100:64@0/5 missing=x" }, "One rank: there is no other to compare it with, as far as could be seen\n" },
		{ { "g100:64@0/5", "", "g100:64@0/5 missing=x" },
		  "ODD    rank1  no waves, unlike most, as far as could be seen  (app, process 101 of h)\n" },
		{ { "g100:64@0/5", " missing=x" },
		  "The two ranks differ: rank0 is at 0x100, rank1 has no waves, as far as could be seen\n" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		size_t n = rows[i].texts[2] ? 3 : rows[i].texts[1] ? 2 : 1;
		struct rpc_gpu_snapshot_result s;
		auto_call(merge_destroyp) struct merge *m = merge_texts(rows[i].texts, n, &s);
		auto_rpc_arena struct rpc_arena arena;
		auto_out struct out o = { 0 };

		TEST_ROW_EQ(i, merge_ranks(m), n);
		rpc_arena_init(&arena, 0);
		TEST_ROW_EQ(i, merge_print(&arena, &o, &s, &(struct table_form){ .legend = true }), 0);
		if (strncmp(o.data, rows[i].said, strlen(rows[i].said)) != 0)
			TEST_ROW_STR(i, o.data, rows[i].said);
	}
}

/*
 * Two ranks with the same code object at other addresses, and inlined calls: one tree, in which
 * code that has no line is known by its distance from the kernel.
 */
static void joins_code_by_name(void)
{
	auto_call(merge_destroyp) struct merge *m = merge_create();
	struct rpc_gpu_snapshot_result s;
	auto_rpc_arena struct rpc_arena arena;
	auto_out struct out o;

	rpc_arena_init(&arena, 0);
	out_init(&o, 0);
	for (unsigned rank = 0; rank < 2; rank++) {
		struct rpc_frame frames[] = {
			{ .function = "load(int)", .file = "/src/a.cl", .has_line = true, .line = 3,
			  .inlined = true },
			{ .function = "reduce(float*)", .file = "/src/b.cl", .has_line = true, .line = 9 },
		};
		struct rpc_kernel kernel = { .address = 0x1000 + 0x100000 * rank,
					     .name = "reduce(float*)", .raw = "_Z6reducePf" };
		struct agent_err err = { 0 };
		struct snapshot_build b;
		char name[32];
		struct document d = rank_document(&b, name, rank,
						  "g1040:8@0/5 g1080:4@0/5 g2000:1@0/5");

		for (size_t i = 0; i < 3; i++) {
			b.groups[i].pc += 0x100000 * rank;
			b.groups[i].has_kernel = i < 2;
			b.groups[i].kernel = kernel;
		}
		b.groups[0].frames = frames;
		b.groups[0].n_frames = 2;
		TEST_EQ_FATAL(merge_add(m, &d, &err), 0);
	}
	TEST_EQ_FATAL(merge_finish(m, &s), 0);
	TEST_EQ(merge_print(&arena, &o, &s, &(struct table_form){ .legend = true }), 0);
	TEST_STR(o.data, "No rank is odd\n"
			 "2 ranks on 1 host, 26 waves, complete\n"
			 "\n"
			 "RANKS  WAVES  WHERE            STATE    WHICH\n"
			 "    2     24  reduce                    all\n"
			 "    2     16    b.cl:9                  all\n"
			 "    2     16      load a.cl:3  running  all\n"
			 "    2      8    0x1080         running  all\n"
			 "    1      1  0x102000         running  rank1\n"
			 "    1      1  0x2000           running  rank0\n");
}

/* Neither of two is the odd one; what is said is how they differ.  Each place is a kernel of its own. */
static void says_how_two_ranks_differ(void)
{
	static const struct {
		const char *texts[2], *said;
	} rows[] = {
		{ { "g100:64@0/5", "g200:2@0/5!" },
		  "The two ranks differ: rank0 is at 0x100 in k100, rank1 is at 0x200 in k200 (memory_violation)\n" },
		{ { "g100:64@0/5", "" }, "The two ranks differ: rank0 is at 0x100 in k100, rank1 has no waves\n" },
		{ { "", "g100:64@0/5" }, "The two ranks differ: rank0 has no waves, rank1 is at 0x100 in k100\n" },
		{ { "g100:64@0/5", "g100:64@0/5 g300:8@0/5" },
		  "The two ranks differ: rank1 is at 0x300 in k300, rank0 is not\n" },
		{ { "g100:64@0/5", "g100:2@0/5" }, "No rank is odd\n" },
		{ { "", "" }, "No rank is odd\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_call(merge_destroyp) struct merge *m = merge_create();
		struct rpc_gpu_snapshot_result s;
		auto_rpc_arena struct rpc_arena arena;
		auto_out struct out o;

		rpc_arena_init(&arena, 0);
		out_init(&o, 0);
		for (unsigned rank = 0; rank < 2; rank++) {
			struct agent_err err = { 0 };
			struct snapshot_build b;
			char name[32], kernels[2][16];
			struct document d = rank_document(&b, name, rank, rows[i].texts[rank]);

			for (size_t k = 0; k < d.snapshot.n_groups; k++) {
				uint64_t pc = b.groups[k].pc;

				snprintf(kernels[k], sizeof(kernels[k]), "k%x", (unsigned)pc);
				b.groups[k].has_kernel = true;
				b.groups[k].kernel =
					(struct rpc_kernel){ .address = pc, .name = kernels[k], .raw = kernels[k] };
			}
			TEST_EQ_FATAL(merge_add(m, &d, &err), 0);
		}
		TEST_EQ_FATAL(merge_finish(m, &s), 0);
		TEST_ROW_EQ(i, merge_print(&arena, &o, &s, &(struct table_form){ .legend = true }), 0);
		if (!strstr(o.data, rows[i].said))
			TEST_ROW_STR(i, o.data, rows[i].said);
	}
}

/* Kernels of NCCL are named after one operation of many: what their device functions are called is what they do. */
static void says_who_is_in_which_collective(void)
{
	static const char ring[] = "ncclFunction_AllReduce_RING_SIMPLE_Sum_f32()";
	static const char other[] = "ncclFunction_AllGather_RING_SIMPLE_Sum_int8_t()";
	static const char kernel[] = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)";
	static const struct {
		const char *functions[4];
		const char *said;
	} rows[] = {
		{ { ring, ring, other, ring },
		  "Ranks are in different collective operations: AllReduce: rank0,rank1,rank3; AllGather: rank2\n" },
		{ { ring, ring, NULL, ring },
		  "In a collective operation (AllReduce): rank0,rank1,rank3; in none that is known: rank2\n" },
		/* What it is called is known of some alone. */
		{ { ring, "copy", NULL, ring },
		  "In a collective operation: rank0,rank1,rank3; in none that is known: rank2\n" },
		{ { "copy", "copy", NULL, "copy" },
		  "In a collective operation: rank0,rank1,rank3; in none that is known: rank2\n" },
		{ { ring, ring, ring, ring }, NULL },
		{ { NULL, NULL, NULL, NULL }, NULL },
		/* What it is called alone is not known of the third one. */
		{ { ring, ring, "copy", ring }, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_call(merge_destroyp) struct merge *m = merge_create();
		struct rpc_gpu_snapshot_result s;
		auto_rpc_arena struct rpc_arena arena;
		auto_out struct out o;

		rpc_arena_init(&arena, 0);
		out_init(&o, 0);
		for (unsigned rank = 0; rank < 4; rank++) {
			const char *function = rows[i].functions[rank];
			struct rpc_frame frame = { .function = function ? function : "gemm", .file = "/src/a.h",
						   .has_line = true, .line = 9 };
			struct agent_err err = { 0 };
			struct snapshot_build b;
			char name[32];
			struct document d = rank_document(&b, name, rank, "g100:64@0/5");

			b.groups[0].has_kernel = true;
			b.groups[0].kernel = (struct rpc_kernel){ .address = 0x1000,
								  .name = function ? kernel : "gemm" };
			b.groups[0].frames = &frame;
			b.groups[0].n_frames = 1;
			TEST_EQ_FATAL(merge_add(m, &d, &err), 0);
		}
		TEST_EQ_FATAL(merge_finish(m, &s), 0);
		TEST_ROW_EQ(i, merge_print(&arena, &o, &s, &(struct table_form){ .legend = true }), 0);
		if (rows[i].said && !strstr(o.data, rows[i].said))
			TEST_ROW_STR(i, o.data, rows[i].said);
		TEST_ROW_EQ(i, rows[i].said || !strstr(o.data, "collective"), true);
	}
}

/* What a rank says of a communicator of four. */
static struct rpc_collective member(uint32_t rank, const char *operation, uint64_t number)
{
	return (struct rpc_collective){ .operation = operation, .has_number = true, .number = number,
					.communicator = 0x7f0000001000, .rank = rank, .ranks = 4,
					.previous = (rank + 3) % 4, .next = (rank + 1) % 4 };
}

/* Of which communicator a dispatch is, only all ranks of it can say; else nothing is said. */
static void says_who_is_in_another_operation_of_a_communicator(void)
{
	static const char said[] =
		"MAYBE  communicator of 4 ranks, operation 0x28c: rank2 is in AllGather, rank0,rank1,rank3 are in AllReduce  [inferred]\n";
	enum {
		SPLIT, ALIKE, BEHIND, NO_NUMBER, NO_NAME, TWICE, NEIGHBOURS, OTHER_SIZE, TWO_COMMUNICATORS,
		TWO_LAUNCHES, N_ROWS
	};

	for (unsigned row = 0; row < N_ROWS; row++) {
		auto_call(merge_destroyp) struct merge *m = merge_create();
		struct rpc_gpu_snapshot_result s;
		auto_rpc_arena struct rpc_arena arena;
		auto_out struct out o;

		rpc_arena_init(&arena, 0);
		out_init(&o, 0);
		for (unsigned rank = 0; rank < 4; rank++) {
			struct rpc_collective list[2] = { member(rank, rank == 2 ? "AllGather" : "AllReduce", 0x28c) };
			struct agent_err err = { 0 };
			struct snapshot_build b;
			char name[32];
			struct document d = rank_document(&b, name, rank, "g100:64@0/5");
			size_t n = 1;

			if (row == ALIKE)
				list[0].operation = "AllReduce";
			if (rank == 2 && row == BEHIND)
				list[0].number--;
			if (rank == 2 && row == NO_NUMBER)
				list[0].has_number = false;
			if (rank == 2 && row == NO_NAME)
				list[0].operation = NULL;
			if (rank == 2 && row == TWICE)
				list[0].rank = 1;
			if (rank == 2 && row == NEIGHBOURS)
				list[0].next = 1;
			if (rank == 2 && row == OTHER_SIZE)
				list[0].ranks = 5;
			if (row == TWO_COMMUNICATORS || row == TWO_LAUNCHES) {
				list[n++] = member(rank, "AllReduce", 7);
				list[1].communicator += row == TWO_COMMUNICATORS ? 0x1000 : 0;
			}
			d.snapshot.has_why = d.snapshot.why.has_collectives = true;
			d.snapshot.why.collectives = list;
			d.snapshot.why.n_collectives = n;
			TEST_EQ_FATAL(merge_add(m, &d, &err), 0);
		}
		TEST_EQ_FATAL(merge_finish(m, &s), 0);
		TEST_ROW_EQ(row, merge_print(&arena, &o, &s, &(struct table_form){ .legend = true }), 0);
		TEST_ROW_EQ(row, !strncmp(o.data, said, strlen(said)), row == SPLIT || row == TWO_LAUNCHES);
		TEST_ROW_EQ(row, strstr(o.data, "MAYBE") != NULL, row == SPLIT || row == TWO_LAUNCHES);
	}
}

TEST_SUITE(ctl_merge, TEST(says_who_is_in_another_operation_of_a_communicator),
	   TEST(says_who_is_in_which_collective), TEST(says_how_two_ranks_differ),
	   TEST(copies_documents), TEST(prints_and_reads_sets), TEST(adds_up_ranks), TEST(adds_up_parts),
	   TEST(names_the_odd_one),
	   TEST(steps_do_not_matter), TEST(refuses_a_rank_twice), TEST(refuses_sets_that_lie),
	   TEST(prints_a_tree), TEST(prints_ranks_that_agree), TEST(prints_a_rank_alone),
	   TEST(names_ranks_that_are_absent), TEST(limits_what_it_says),
	   TEST(joins_code_by_name));
