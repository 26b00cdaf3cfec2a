/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "testlib.h"
#include "waits/graph.h"

static uint64_t state = 88172645463325252u;

static uint32_t number(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 20) % below;
}

/* ------------------------------------------------------------------ a naive reference -------- */

#define SMALL 24

/* Closures by Warshall's algorithm, for small graphs. */
struct naive {
	bool reach[WAITS_UNKNOWN + 1][SMALL][SMALL]; /* By edges no weaker than that. */
	bool edge[SMALL][SMALL], any[SMALL], out[SMALL];
};

static void close_over(bool r[SMALL][SMALL])
{
	for (int k = 0; k < SMALL; k++)
		for (int i = 0; i < SMALL; i++)
			for (int j = 0; j < SMALL; j++)
				r[i][j] |= r[i][k] && r[k][j];
}

/* Two nodes are in one circle. */
static bool together(const struct naive *n, int a, int b)
{
	return a == b || (n->reach[WAITS_UNKNOWN][a][b] && n->reach[WAITS_UNKNOWN][b][a]);
}

static void naive_init(struct naive *n, const struct waits_edge *edges, size_t n_edges)
{
	enum waits_confidence weakest[SMALL] = { 0 };

	*n = (struct naive){ 0 };
	for (size_t i = 0; i < n_edges; i++) {
		n->any[edges[i].from] |= edges[i].any;
		if (edges[i].any)
			continue;
		n->out[edges[i].from] = true;
		n->reach[WAITS_UNKNOWN][edges[i].from][edges[i].to] = true;
	}
	close_over(n->reach[WAITS_UNKNOWN]);
	/* An edge within a circle makes all of the circle as weak. */
	for (size_t i = 0; i < n_edges; i++)
		for (int v = 0; v < SMALL && !edges[i].any; v++)
			if (together(n, (int)edges[i].from, (int)edges[i].to) && together(n, v, (int)edges[i].from) &&
			    weakest[v] < edges[i].confidence)
				weakest[v] = edges[i].confidence;
	for (int c = WAITS_PROVEN; c < WAITS_UNKNOWN; c++) {
		for (int v = 0; v < SMALL; v++)
			for (int u = 0; u < SMALL; u++)
				n->reach[c][v][u] = (int)weakest[v] <= c && together(n, v, u);
		for (size_t i = 0; i < n_edges; i++)
			if (!edges[i].any && (int)edges[i].confidence <= c && (int)weakest[edges[i].from] <= c &&
			    (int)weakest[edges[i].to] <= c)
				n->reach[c][edges[i].from][edges[i].to] = true;
		close_over(n->reach[c]);
	}
}

static void check_cause(const struct naive *n, const struct waits_node *nodes, const struct waits_solution *s,
			const struct waits_cause *c)
{
	int v = (int)s->nodes[c->first];
	uint32_t waits = 0, members = 0;
	int best = WAITS_UNKNOWN;

	for (int u = 0; u < SMALL; u++) {
		members += together(n, u, v);
		for (int k = WAITS_UNKNOWN; k >= 0 && nodes[u].is_wait; k--)
			if (n->reach[k][u][v] || (k == WAITS_UNKNOWN && together(n, u, v)))
				best = k < best ? k : best;
		waits += nodes[u].is_wait && (n->reach[WAITS_UNKNOWN][u][v] || together(n, u, v));
	}
	TEST_EQ(c->n, members);
	TEST_EQ(c->waits, waits);
	TEST_EQ((int)c->confidence, best);
	if (members > 1 || n->reach[WAITS_UNKNOWN][v][v])
		TEST_EQ(c->end, WAITS_END_CIRCLE);
	else
		TEST_EQ(c->end, n->any[v] ? WAITS_END_UNKNOWN : nodes[v].end);
}

/* How many ends there are that a wait leads to. */
static size_t count_ends(const struct naive *n, const struct waits_node *nodes)
{
	size_t ends = 0;

	for (int v = 0; v < SMALL; v++) {
		bool first = true, waited = false;
		bool is_circle = n->reach[WAITS_UNKNOWN][v][v];

		for (int u = 0; u < SMALL; u++) {
			first &= u >= v || !together(n, u, v);
			waited |= nodes[u].is_wait && (n->reach[WAITS_UNKNOWN][u][v] || together(n, u, v));
		}
		ends += first && waited && (is_circle || !n->out[v]);
	}
	return ends;
}

static void agrees_with_a_naive_search(void)
{
	for (int round = 0; round < 4000; round++) {
		struct waits_node nodes[SMALL];
		struct waits_edge edges[3 * SMALL];
		size_t n_edges = number(3 * SMALL);
		struct waits_solution s;
		struct naive n;

		for (int i = 0; i < SMALL; i++)
			nodes[i] = (struct waits_node){ .is_wait = number(2),
							.end = (enum waits_end)number(WAITS_END_CIRCLE) };
		for (size_t i = 0; i < n_edges; i++)
			edges[i] = (struct waits_edge){ .from = number(SMALL), .to = number(SMALL),
							.confidence = (enum waits_confidence)number(3),
							.any = !number(8) };
		naive_init(&n, edges, n_edges);
		TEST_EQ_FATAL(waits_graph_solve(nodes, SMALL, edges, n_edges, &s), 0);
		TEST_ROW_EQ(round, s.n_causes, count_ends(&n, nodes));
		for (size_t i = 0; i < s.n_causes; i++) {
			check_cause(&n, nodes, &s, &s.causes[i]);
			TEST_EQ(i && s.causes[i - 1].end > s.causes[i].end, false);
		}
		waits_solution_deinit(&s);
	}
}

/* ------------------------------------------------------------------ what people would say ---- */

/* The largest crowd is the victim: a halted wave that one wait leads to comes before a wave that runs. */
static void ranks_by_what_it_is(void)
{
	static const struct waits_node nodes[] = {
		{ .end = WAITS_END_RUNS }, { .end = WAITS_END_STOPPED }, { true }, { true }, { true },
	};
	static const struct waits_edge edges[] = { { 2, 0 }, { 3, 0 }, { 4, 1 } };
	struct waits_solution s;

	TEST_EQ_FATAL(waits_graph_solve(nodes, 5, edges, 3, &s), 0);
	TEST_EQ_FATAL(s.n_causes, 2);
	TEST_EQ(s.causes[0].end, WAITS_END_STOPPED);
	TEST_EQ(s.causes[0].waits, 1);
	TEST_EQ(s.causes[1].waits, 2);
	waits_solution_deinit(&s);
}

/*
 * Ranks of a ring, each of which waits for the one in front of it; or of a tree, whose ranks wait for what comes up
 * from the one that is late, or has come up and does not come down.
 */
static void who_is_late_is_where_all_waits_end(void)
{
	enum { RANKS = 64, JOBS = 10000 };
	static struct waits_node nodes[RANKS];
	static struct waits_edge edges[RANKS];
	uint32_t wrong = 0;

	for (uint32_t job = 0; job < JOBS; job++) {
		const uint32_t n = 2 + number(RANKS - 1), late = number(n), step = number(2) ? 1 : n - 1;
		const bool is_ring = job % 2;
		uint32_t below[RANKS];
		struct waits_solution s;
		size_t n_edges = 0;

		/* On the way up from the late one, each rank waits for the one below it; 0 has no rank above it. */
		memset(below, 0xff, sizeof(below));
		for (uint32_t i = late; i; i = (i - 1) / 2)
			below[(i - 1) / 2] = i;
		for (uint32_t i = 0; i < n; i++) {
			const uint32_t near = below[i] == UINT32_MAX ? (i - 1) / 2 : below[i];

			nodes[i] = (struct waits_node){ .is_wait = i != late, .end = WAITS_END_RUNS };
			if (i != late)
				edges[n_edges++] = (struct waits_edge){ i, is_ring ? (i + step) % n : near,
									WAITS_INFERRED };
		}
		TEST_EQ_FATAL(waits_graph_solve(nodes, n, edges, n_edges, &s), 0);
		wrong += s.n_causes != 1 || s.nodes[s.causes[0].first] != late || s.causes[0].waits != n - 1 ||
			 s.causes[0].end != WAITS_END_RUNS;
		waits_solution_deinit(&s);
	}
	TEST_EQ(wrong, 0);
}

/* Who waits for one of several accuses none of them. */
static void any_accuses_nobody(void)
{
	static const struct waits_node nodes[] = { { true }, { .end = WAITS_END_STOPPED }, { .end = WAITS_END_HOST } };
	static const struct waits_edge edges[] = { { 0, 1, WAITS_PROVEN, true }, { 0, 2, WAITS_PROVEN, true } };
	struct waits_solution s;

	TEST_EQ_FATAL(waits_graph_solve(nodes, 3, edges, 2, &s), 0);
	TEST_EQ_FATAL(s.n_causes, 1);
	TEST_EQ(s.causes[0].end, WAITS_END_UNKNOWN);
	TEST_EQ(s.nodes[s.causes[0].first], 0);
	waits_solution_deinit(&s);
}

static void refuses_edges_of_no_node(void)
{
	static const struct waits_node node = { true };
	static const struct waits_edge edge = { 0, 1 };
	struct waits_solution s;

	TEST_EQ(waits_graph_solve(&node, 1, &edge, 1, &s), -EINVAL);
	waits_solution_deinit(&s);
	TEST_EQ(waits_graph_solve(NULL, 0, NULL, 0, &s), 0);
	waits_solution_deinit(&s);
}

/* A chain as long as there are nodes, and 10000 of them at random: no recursion, and no square of the number. */
static void large_graphs_are_fine(void)
{
	enum { N = 10000, M = 15000 };
	struct waits_node *nodes = calloc(N, sizeof(*nodes));
	struct waits_edge *edges = calloc(M, sizeof(*edges));
	struct waits_solution s;
	uint64_t begin;

	for (uint32_t i = 0; i < N; i++)
		nodes[i] = (struct waits_node){ true, WAITS_END_STILL };
	for (uint32_t i = 0; i + 1 < N; i++)
		edges[i] = (struct waits_edge){ .from = i, .to = i + 1 };
	TEST_EQ_FATAL(waits_graph_solve(nodes, N, edges, N - 1, &s), 0);
	TEST_EQ(s.n_causes, 1);
	TEST_EQ(s.causes[0].waits, N);
	waits_solution_deinit(&s);
	for (uint32_t i = 0; i < M; i++)
		edges[i] = (struct waits_edge){ .from = number(N), .to = number(N) };
	begin = clock_now_ns();
	TEST_EQ_FATAL(waits_graph_solve(nodes, N, edges, M, &s), 0);
	printf("%u nodes, %zu ends: %.1f ms\n", N, s.n_causes, (double)(clock_now_ns() - begin) / 1e6);
	TEST_EQ(s.n_causes > 1000, true);
	waits_solution_deinit(&s);
	free(nodes);
	free(edges);
}

TEST_SUITE(waits_graph, TEST(agrees_with_a_naive_search), TEST(ranks_by_what_it_is),
	  TEST(who_is_late_is_where_all_waits_end), TEST(any_accuses_nobody),
	  TEST(refuses_edges_of_no_node), TEST(large_graphs_are_fine));
