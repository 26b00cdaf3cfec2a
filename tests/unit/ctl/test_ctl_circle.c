/* SPDX-License-Identifier: MIT */
/* Ranks that wait for each other in collective operations, and those of which that is not known. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/document/merge.h"
#include "tests/unit/ctl/ctl_snapshot.h"
#include "testlib.h"

DEFINE_AUTO(struct merge *, merge_destroy);

#define SECOND UINT64_C(1000000)
#define N      4u

/* Ranks 0 to 2 receive from rank 3, which reduces and waits for rank 2. */
struct job {
	struct rpc_rank ranks[N];
	struct rpc_collective what[N][2];
	uint32_t for_whom[N][2];
	char names[N][8];
	struct rpc_gpu_snapshot_result s;
};

static void make_job(struct job *j)
{
	*j = (struct job){ .s = { .ranks = j->ranks, .n_ranks = N, .has_ranks = true } };
	for (uint32_t i = 0; i < N; i++) {
		snprintf(j->names[i], sizeof(j->names[i]), "r%u", i);
		j->for_whom[i][0] = i == 3 ? 2 : 3;
		j->what[i][0] = j->what[i][1] = (struct rpc_collective){
			.operation = i == 3 ? "AllReduce" : "SendRecv", .has_number = i == 3, .number = 7,
			.communicator = 0x1000, .rank = i, .ranks = N,
			.has_waits_for = true, .n_waits_for = 1, .waits_for = j->for_whom[i],
			.has_unchanged_since_us = true, .unchanged_since_us = 100 * SECOND,
			.has_seen_us = true, .seen_us = 101 * SECOND,
		};
		j->ranks[i] = (struct rpc_rank){
			.name = j->names[i], .host = "h", .pid = i + 1, .has_rank = true,
			.rank = { .rank = i, .has_world_size = true, .world_size = N },
			.has_collectives = true, .n_collectives = 1, .collectives = j->what[i],
		};
	}
}

static const char *circle_of(struct job *j, struct rpc_arena *a)
{
	struct merge_waits waits;

	TEST_EQ_FATAL(merge_circle(a, &j->s, &waits), 0);
	TEST_EQ(waits.circle && waits.awaited, 0);
	TEST_EQ(waits.has_graph, waits.circle || waits.awaited);
	return waits.circle ? waits.circle : "none";
}

static const char *awaited_of(struct job *j, struct rpc_arena *a)
{
	struct merge_waits waits;

	TEST_EQ_FATAL(merge_circle(a, &j->s, &waits), 0);
	TEST_EQ(waits.circle != NULL, 0);
	return waits.awaited ? waits.awaited : "none";
}

/* Each waits for the next one, in one operation; the last one is in none. */
static void make_chain(struct job *j)
{
	make_job(j);
	for (uint32_t i = 0; i < N; i++) {
		j->for_whom[i][0] = i + 1;
		j->what[i][0].operation = "AllReduce";
		j->ranks[i].time_us = 101 * SECOND;
	}
	j->ranks[N - 1].n_collectives = 0;
}

/* Everybody who waits is told, for whom, and in what. */
static void names_a_circle(void)
{
	auto_rpc_arena struct rpc_arena a;
	struct job j;

	rpc_arena_init(&a, 0);
	make_job(&j);
	TEST_STR(circle_of(&j, &a), "a circle: r0,r1,r2 wait in SendRecv for r3, which is not in it; "
				    "r3 waits in AllReduce (operation 0x7) for r2, which is not in it  [inferred]");
	/* One who waits for something else is not of it. */
	j.for_whom[0][0] = 1;
	/* Nor one who had come from elsewhere meanwhile. */
	j.what[1][0].unchanged_since_us = 101 * SECOND - 1;
	TEST_STR(circle_of(&j, &a), "a circle: r2 waits in SendRecv for r3, which is not in it; "
				    "r3 waits in AllReduce (operation 0x7) for r2, which is not in it  [inferred]");
}

/* Two in one numbered operation, of which one has received. */
static void names_who_is_in_the_same_operation(void)
{
	auto_rpc_arena struct rpc_arena a;
	struct job j;

	rpc_arena_init(&a, 0);
	make_job(&j);
	j.what[0][0].operation = "AllReduce";
	j.what[0][0].has_number = true;
	TEST_STR(circle_of(&j, &a), "a circle: r1,r2 wait in SendRecv for r3, which is not in it; "
				    "r0,r3 wait in AllReduce (operation 0x7) for r2, which is not in it  [inferred]");
	/* Under another number it is another operation, and rank 0 may be done with that of rank 3. */
	j.what[0][0].number = 6;
	TEST_STR(circle_of(&j, &a), "a circle: r1,r2 wait in SendRecv for r3, which is not in it; "
				    "r3 waits in AllReduce (operation 0x7) for r2, which is not in it  [inferred]");
}

/* In each of these, one link of the circle is not known. */
static void nobody_is_named_where_it_is_not_known(void)
{
	enum { MOVES, HAS_RECEIVED, NOT_THERE, TWO_OPERATIONS, OTHER_SIZE, OTHER_RANK, NO_RANK, NO_WORLD, OTHER_JOB,
	       RANK_TWICE, NO_OPERATION, SAME_OPERATION, NO_NUMBER, AT_ANOTHER_TIME, BACKWARDS, TOO_SHORT, NO_SUCH_RANK,
	       HUGE_WORLD, N_ROWS };

	for (unsigned row = 0; row < N_ROWS; row++) {
		auto_rpc_arena struct rpc_arena a;
		struct rpc_collective *c;
		struct job j;

		rpc_arena_init(&a, 0);
		make_job(&j);
		c = &j.what[2][0];
		c->has_unchanged_since_us = row != MOVES;
		c->n_waits_for = row != HAS_RECEIVED;
		c->ranks += row == OTHER_SIZE;
		c->rank -= row == OTHER_RANK;
		j.ranks[2].n_collectives += row == TWO_OPERATIONS;
		j.ranks[1].has_rank = row != NO_RANK;
		j.ranks[1].rank.has_world_size = row != NO_WORLD;
		j.ranks[1].rank.job = row == OTHER_JOB ? "other" : NULL;
		j.ranks[1].rank.rank -= row == RANK_TWICE;
		if (row == NOT_THERE) {
			j.ranks[2] = j.ranks[3];
			j.s.n_ranks--;
		}
		if (row == NO_OPERATION)
			c->operation = NULL;
		for (unsigned i = 0; i < N && row == SAME_OPERATION; i++)
			j.what[i][0].operation = "SendRecv";
		for (unsigned i = 0; i < N && row == NO_NUMBER; i++)
			j.what[i][0].operation = "AllReduce";
		if (row == AT_ANOTHER_TIME) {
			c->unchanged_since_us += SECOND;
			c->seen_us += SECOND;
		}
		if (row == BACKWARDS)
			c->seen_us = c->unchanged_since_us - 1;
		if (row == TOO_SHORT)
			c->seen_us = c->unchanged_since_us + SECOND / 2 - 1;
		if (row == NO_SUCH_RANK)
			j.for_whom[2][0] = UINT32_MAX;
		for (unsigned i = 0; i < N && row == HUGE_WORLD; i++)
			j.what[i][0].ranks = j.ranks[i].rank.world_size = UINT32_MAX;
		TEST_ROW_STR(row, circle_of(&j, &a), "none");
	}
}

/* All lead to one rank through each other, or to several. */
static void tells_for_whom_all_wait(void)
{
	auto_rpc_arena struct rpc_arena a;
	struct job j;

	rpc_arena_init(&a, 0);
	make_chain(&j);
	TEST_STR(awaited_of(&j, &a), "r0,r1,r2 wait in collective operations, for each other and in the end for r3, "
				     "which was in none when seen  [inferred]");
	/* Its look may be a little later than those of the others. */
	j.ranks[3].time_us += SECOND / 2;
	j.ranks[1].n_collectives = 0;
	TEST_STR(awaited_of(&j, &a), "r0,r2 wait in collective operations, for each other and in the end for r1,r3, "
				     "which were in none when seen  [inferred]");
}

/* In each of these, the last one may be in the operation, or somebody else is waited for. */
static void who_may_have_come_is_not_waited_for(void)
{
	enum { NOT_LOOKED_AT, IN_ONE, IN_TWO, LATER, EARLIER, NOT_THERE, NO_SUCH_RANK, MOVES, ROUND, N_ROWS };

	for (unsigned row = 0; row < N_ROWS; row++) {
		auto_rpc_arena struct rpc_arena a;
		struct job j;

		rpc_arena_init(&a, 0);
		make_chain(&j);
		j.ranks[3].has_collectives = row != NOT_LOOKED_AT;
		j.ranks[3].n_collectives = row == IN_TWO ? 2 : row == IN_ONE || row == ROUND;
		j.what[3][0].n_waits_for = row == ROUND;
		j.for_whom[3][0] = 0;
		j.ranks[3].time_us += row == LATER ? SECOND / 2 + 1 : 0;
		j.ranks[3].time_us -= row == EARLIER ? SECOND + 1 : 0;
		j.s.n_ranks -= row == NOT_THERE;
		if (row == NO_SUCH_RANK)
			j.for_whom[0][0] = UINT32_MAX;
		j.what[2][0].has_unchanged_since_us = row != MOVES;
		TEST_ROW_STR(row, awaited_of(&j, &a), "none");
	}
}

/* "r0>r3 r3>r2 ; circle r2 4", by the names of ranks. */
static const char *graph_of(struct job *j, struct rpc_arena *a)
{
	struct merge_waits waits;
	auto_out struct out o = { 0 };

	TEST_EQ_FATAL(merge_circle(a, &j->s, &waits), 0);
	for (size_t i = 0; i < waits.graph.n_nodes; i++)
		TEST_EQ(waits.graph.nodes[i].kind, RPC_WAIT_NODE_KIND_RANK);
	for (size_t i = 0; i < waits.graph.n_edges; i++) {
		const struct rpc_wait_edge *e = &waits.graph.edges[i];

		TEST_EQ(e->confidence, RPC_CONFIDENCE_INFERRED);
		TEST_EQ(waits.graph.nodes[e->from].has_end, false);
		out_fmt(&o, "%s>%s ", waits.graph.nodes[e->from].text, waits.graph.nodes[e->to].text);
	}
	for (size_t i = 0; i < waits.graph.n_causes; i++) {
		const struct rpc_wait_cause *c = &waits.graph.causes[i];

		TEST_EQ(c->culprit || c->confidence != RPC_CONFIDENCE_INFERRED, false);
		out_fmt(&o, "; %s %s %u", rpc_enum_name(&rpc_wait_end_enum, c->end), waits.graph.nodes[c->node].text,
			c->waits);
	}
	return o.data ? rpc_arena_strdup(a, o.data) : "none";
}

/* The edges are those that the line rests on: of a circle, between different operations alone. */
static void the_graph_has_what_is_said(void)
{
	auto_rpc_arena struct rpc_arena a;
	struct job j;

	rpc_arena_init(&a, 0);
	make_job(&j);
	TEST_STR(graph_of(&j, &a), "r0>r3 r1>r3 r2>r3 r3>r2 ; circle r2 4");
	/* One that is told for its operation waits as the others of it do, and for nobody else than is told. */
	j.what[0][0] = j.what[3][0];
	j.what[0][0].rank = 0;
	j.what[0][0].waits_for = j.for_whom[0];
	TEST_STR(graph_of(&j, &a), "r0>r3 r1>r3 r2>r3 r3>r2 ; circle r2 4");
	make_job(&j);
	/* Rank 0 waits for one in the same operation, which is no wait, and is told by none. */
	j.for_whom[0][0] = 1;
	TEST_STR(graph_of(&j, &a), "r1>r3 r2>r3 r3>r2 ; circle r2 3");
	/* One in a third operation waits for the circle, and is not told of either. */
	j.for_whom[0][0] = 3;
	j.what[0][0].operation = "Broadcast";
	TEST_STR(graph_of(&j, &a), "r1>r3 r2>r3 r3>r2 ; circle r2 3");
	make_chain(&j);
	TEST_STR(graph_of(&j, &a), "r0>r1 r1>r2 r2>r3 ; unknown r3 3");
	j.ranks[1].n_collectives = 0;
	TEST_STR(graph_of(&j, &a), "r0>r1 r2>r3 ; unknown r1 1; unknown r3 1");
	/* One of whom nothing is known may be whom they wait for. */
	j.for_whom[2][0] = UINT32_MAX;
	TEST_STR(graph_of(&j, &a), "none");
}

#define MANY 5000u
#define EACH 40u

/* Many ranks, each of which waits for those in front of and behind it, and each of those is repeated. */
struct crowd {
	struct rpc_rank ranks[MANY];
	struct rpc_collective what[MANY];
	uint32_t for_whom[MANY][3 * EACH];
	char names[MANY][12];
	struct rpc_gpu_snapshot_result s;
};

static void make_crowd(struct crowd *c, uint32_t n)
{
	*c = (struct crowd){ .s = { .ranks = c->ranks, .n_ranks = n, .has_ranks = true } };
	for (uint32_t i = 0; i < n; i++) {
		snprintf(c->names[i], sizeof(c->names[i]), "r%u", i);
		for (uint32_t k = 0; k < TEST_COUNT(c->for_whom[i]); k++)
			c->for_whom[i][k] = (i + 1 + k % EACH) % n;
		c->what[i] = (struct rpc_collective){
			.operation = i % 2 ? "AllReduce" : "SendRecv", .communicator = 0x1000, .rank = i, .ranks = n,
			.has_waits_for = true, .n_waits_for = TEST_COUNT(c->for_whom[i]), .waits_for = c->for_whom[i],
			.has_unchanged_since_us = true, .unchanged_since_us = 100 * SECOND,
			.has_seen_us = true, .seen_us = 101 * SECOND,
		};
		c->ranks[i] = (struct rpc_rank){
			.name = c->names[i], .host = "h", .pid = i + 1, .has_rank = true,
			.rank = { .rank = i, .has_world_size = true, .world_size = n }, .time_us = 101 * SECOND,
			.has_collectives = true, .n_collectives = 1, .collectives = &c->what[i],
		};
	}
}

/*
 * No edge is there twice, all are of nodes, and where they begin is not where chains end.
 * @param whole  All ranks are in it.
 */
static void check_graph(const struct rpc_rank_graph *g, bool whole)
{
	auto_free uint8_t *is_there = calloc(g->n_nodes * g->n_nodes + 1, 1);
	auto_free uint32_t *n = calloc(g->n_nodes + 1, sizeof(*n));

	CU_ASSERT_PTR_NOT_NULL_FATAL(is_there);
	CU_ASSERT_PTR_NOT_NULL_FATAL(n);
	for (size_t i = 0; i < g->n_edges; i++) {
		const struct rpc_wait_edge *e = &g->edges[i];

		CU_ASSERT_FATAL(e->from < g->n_nodes && e->to < g->n_nodes);
		TEST_ROW_EQ(i, is_there[e->from * g->n_nodes + e->to]++, 0);
		n[e->from]++;
	}
	for (size_t i = 0; i < g->n_nodes; i++)
		if (whole || n[i])
			TEST_ROW_EQ(i, g->nodes[i].has_end, !n[i]);
	for (size_t i = 0; i < g->n_causes; i++)
		CU_ASSERT_FATAL(g->causes[i].node < g->n_nodes);
}

static bool has_edge(const struct rpc_rank_graph *g, uint32_t from, uint32_t to)
{
	for (size_t i = 0; i < g->n_edges; i++)
		if (g->nodes[g->edges[i].from].process == from && g->nodes[g->edges[i].to].process == to)
			return true;
	return false;
}

/* Two ranks wait for each other, and each of them for many others before that. */
static void waits_of_the_circle_have_room_first(void)
{
	auto_free struct crowd *c = malloc(sizeof(*c));
	auto_rpc_arena struct rpc_arena a;
	struct merge_waits waits;

	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	rpc_arena_init(&a, 0);
	make_crowd(c, 300);
	for (uint32_t i = 0; i < 300; i++) {
		c->what[i].operation = i == 299 ? "AllReduce" : "SendRecv";
		c->what[i].has_number = true;
		c->what[i].number = i == 299 ? 6 : 5;
	}
	for (uint32_t k = EACH - 1; k < TEST_COUNT(c->for_whom[0]); k += EACH)
		c->for_whom[39][k] = 299;
	TEST_EQ_FATAL(merge_circle(&a, &c->s, &waits), 0);
	TEST_EQ(waits.graph.n_causes == 1 && waits.graph.causes[0].end == RPC_WAIT_END_CIRCLE, true);
	TEST_EQ(waits.graph.n_nodes, 300);
	TEST_EQ(waits.graph.n_edges <= 8192, true);
	TEST_EQ(has_edge(&waits.graph, 299, 39), true);
	TEST_EQ(has_edge(&waits.graph, 39, 299), true);
	check_graph(&waits.graph, true);
}

/* Of a hostile document, or of a very large job: the result has to be small enough to be read again. */
static void the_graph_has_limits(void)
{
	static const struct {
		uint32_t ranks, in_none; /* Those behind `in_none` are in no operation. */
		size_t nodes, edges, causes;
	} rows[] = {
		{ 100, 0, 100, 4000, 1 },
		{ 300, 0, 300, 300 * 27, 1 },
		/* Those behind the last ones are left out. */
		{ MANY, 0, 4096, 8192 - 3, 1 },
		{ 300, 200, 300, 8000, 64 },
		{ MANY, MANY - 10, 4096, 2 * (4096 - 10), 10 },
	};
	auto_free struct crowd *c = malloc(sizeof(*c));

	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	for (size_t row = 0; row < TEST_COUNT(rows); row++) {
		auto_rpc_arena struct rpc_arena a;
		struct merge_waits waits;

		rpc_arena_init(&a, 0);
		make_crowd(c, rows[row].ranks);
		for (uint32_t i = rows[row].in_none ? rows[row].in_none : rows[row].ranks; i < rows[row].ranks; i++)
			c->ranks[i].n_collectives = 0;
		/* All of them lead to those alone. */
		for (uint32_t i = 0; i < rows[row].in_none; i++)
			for (uint32_t k = 0; k < TEST_COUNT(c->for_whom[i]); k++)
				c->for_whom[i][k] = rows[row].in_none +
						    (i + k % EACH) % (rows[row].ranks - rows[row].in_none);
		TEST_EQ_FATAL(merge_circle(&a, &c->s, &waits), 0);
		TEST_ROW_EQ(row, waits.has_graph, true);
		TEST_ROW_EQ(row, waits.graph.n_nodes, rows[row].nodes);
		TEST_ROW_EQ(row, waits.graph.n_edges, rows[row].edges);
		TEST_ROW_EQ(row, waits.graph.n_causes, rows[row].causes);
		check_graph(&waits.graph, rows[row].nodes == rows[row].ranks);
	}
}

static const char *late_of(struct job *j, struct rpc_arena *a)
{
	struct merge_waits waits;

	TEST_EQ_FATAL(merge_circle(a, &j->s, &waits), 0);
	return waits.late ? waits.late : "none";
}

static void look_later(struct job *j, unsigned i, uint64_t us)
{
	j->what[i][0].unchanged_since_us += us;
	j->what[i][0].seen_us += us;
	j->ranks[i].time_us += us;
}

/* Nothing is said of ranks that were looked at at different times, and that is told. */
static void who_was_not_looked_for_is_told(void)
{
	enum { TOGETHER, NEARLY, ONE, ALL, CIRCLE, NOT_IN_IT, IN_NONE, NONE_AWAITED, NOBODY_WAITS, N_ROWS };
#define MEANWHILE " s apart, and what one waits for may have come meanwhile"
#define NOT_FOR	  "circles and causes across ranks were not looked for"
	static const char *const expect[N_ROWS] = {
		[TOGETHER] = "none",
		[NEARLY] = "none",
		[ONE] = NOT_FOR " with r3: ranks were looked at 1.2" MEANWHILE,
		[ALL] = NOT_FOR ": ranks were looked at 36.0" MEANWHILE,
		[CIRCLE] = NOT_FOR " with r0: ranks were looked at 0.5" MEANWHILE,
		[NOT_IN_IT] = "none",
		[IN_NONE] = NOT_FOR " with r3: ranks were looked at 9.0" MEANWHILE,
		[NONE_AWAITED] = "none",
		[NOBODY_WAITS] = "none",
	};

	for (unsigned row = 0; row < N_ROWS; row++) {
		auto_rpc_arena struct rpc_arena a;
		struct job j;

		rpc_arena_init(&a, 0);
		if (row == IN_NONE || row == NONE_AWAITED)
			make_chain(&j);
		else
			make_job(&j);
		if (row == NEARLY)
			look_later(&j, 3, SECOND / 2);
		if (row == ONE || row == NOT_IN_IT)
			look_later(&j, 3, SECOND * 5 / 4);
		for (unsigned i = 0; i < N && row == ALL; i++)
			look_later(&j, i, (uint64_t)i * 12 * SECOND);
		if (row == CIRCLE)
			look_later(&j, 0, SECOND / 2 + 1);
		/* It moves, so that it waits for nobody, whenever it is looked at. */
		j.what[3][0].has_unchanged_since_us = row != NOT_IN_IT;
		if (row == IN_NONE || row == NONE_AWAITED)
			look_later(&j, 3, 9 * SECOND);
		/* That rank 2 waits for nobody that is seen says more. */
		if (row == NONE_AWAITED)
			j.for_whom[2][0] = UINT32_MAX;
		for (unsigned i = 0; i < N && row == NOBODY_WAITS; i++) {
			j.ranks[i].n_collectives = 0;
			j.ranks[i].time_us = i * 9 * SECOND;
		}
		TEST_ROW_STR(row, late_of(&j, &a), expect[row]);
		TEST_ROW_EQ(row, strcmp(circle_of(&j, &a), "none") != 0, row <= NEARLY || row == CIRCLE);
	}
#undef MEANWHILE
#undef NOT_FOR
}

/* Who is not there is not mistaken for who is at that place of the list. */
static void ranks_are_those_of_the_job(void)
{
	auto_rpc_arena struct rpc_arena a;
	struct job j;

	rpc_arena_init(&a, 0);
	make_job(&j);
	j.for_whom[2][0] = 1;
	j.for_whom[3][0] = 0;
	j.s.ranks += 2;
	j.s.n_ranks -= 2;
	TEST_STR(circle_of(&j, &a), "none");
}

/* What could not be read of a process may be just the operation that others wait for. */
static void who_was_not_read_whole_waits_for_nobody(void)
{
	for (unsigned complete = 0; complete < 2; complete++) {
		auto_call(merge_destroyp) struct merge *m = merge_create();
		struct rpc_gpu_snapshot_result s;
		auto_rpc_arena struct rpc_arena a;
		struct job j;

		rpc_arena_init(&a, 0);
		make_job(&j);
		for (unsigned i = 0; i < N; i++) {
			struct agent_err err = { 0 };
			struct snapshot_build b;
			struct document d;

			snapshot_build(&b, 1000 + i, "g100:64@0/5");
			b.s.process.pid = 100 + i;
			b.s.has_why = b.s.why.has_collectives = true;
			b.s.why.complete = i != 2 || complete;
			b.s.why.collectives = j.what[i];
			b.s.why.n_collectives = 1;
			b.s.has_host = b.s.host.has_rank = true;
			b.s.host.rank = j.ranks[i].rank;
			b.s.host.rank.from = "RANK";
			d = (struct document){ .name = j.names[i], .snapshot = b.s };
			TEST_EQ_FATAL(merge_add(m, &d, &err), 0);
		}
		TEST_EQ_FATAL(merge_finish(m, &s), 0);
		TEST_ROW_EQ(complete, s.ranks[2].collectives[0].has_waits_for, complete);
		TEST_ROW_EQ(complete, s.ranks[3].collectives[0].has_waits_for, true);
	}
}

TEST_SUITE(ctl_circle, TEST(names_a_circle), TEST(waits_of_the_circle_have_room_first),
	   TEST(names_who_is_in_the_same_operation),
	   TEST(nobody_is_named_where_it_is_not_known), TEST(tells_for_whom_all_wait), TEST(the_graph_has_what_is_said),
	   TEST(the_graph_has_limits),
	   TEST(who_may_have_come_is_not_waited_for), TEST(who_was_not_looked_for_is_told),
	   TEST(ranks_are_those_of_the_job), TEST(who_was_not_read_whole_waits_for_nobody));
