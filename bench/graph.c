/* SPDX-License-Identifier: MIT */
/*
 * Where waits end, in random graphs, beside a search from each node by itself.
 *
 * usage: bench_graph NODES ROUNDS
 * Prints: ENDS MEDIAN-NS NAIVE-NS.  There are one and a half times as many edges as nodes.  Ends, and how many waits
 * lead to all of them, have to be the same in both.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "waits/graph.h"

#define ROUNDS_MAX 1001u

struct graph {
	struct waits_node *nodes;
	struct waits_edge *edges;
	uint32_t *first, *next; /* Edges of a node, as a list; UINT32_MAX: none. */
	uint32_t n, n_edges;
};

/* What both say. */
struct ends {
	uint64_t n, waits;
};

static uint64_t state = 88172645463325252u;

static uint32_t number(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 20) % below;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void make(struct graph *g)
{
	memset(g->first, 0xff, g->n * sizeof(*g->first));
	for (uint32_t i = 0; i < g->n; i++)
		g->nodes[i] = (struct waits_node){ true, WAITS_END_STILL };
	for (uint32_t i = 0; i < g->n_edges; i++) {
		g->edges[i] = (struct waits_edge){ .from = number(g->n), .to = number(g->n) };
		g->next[i] = g->first[g->edges[i].from];
		g->first[g->edges[i].from] = i;
	}
}

/* ------------------------------------------------------------------ a naive search ----------- */

/*
 * @param seen   A byte for each node, set for those that can be reached by an edge or more.
 * @param stack  Room for all nodes, and one more.
 */
static void search(const struct graph *g, uint32_t from, uint8_t *seen, uint32_t *stack)
{
	uint32_t n = 0;

	stack[n++] = from;
	while (n) {
		const uint32_t at = stack[--n];

		for (uint32_t e = g->first[at]; e != UINT32_MAX; e = g->next[e]) {
			const uint32_t to = g->edges[e].to;

			if (!seen[to])
				stack[n++] = to;
			seen[to] = 1;
		}
	}
}

/* A node that leads nowhere is an end, and so is each circle, which its first node stands for. */
static void count(const struct graph *g, const uint8_t *reach, struct ends *ret)
{
	const size_t n = g->n;

	*ret = (struct ends){ 0 };
	for (size_t v = 0; v < n; v++) {
		const bool is_circle = reach[v * n + v];
		bool is_end = is_circle || g->first[v] == UINT32_MAX;
		uint64_t waits = !is_circle;

		for (size_t u = 0; u < v && is_circle; u++)
			is_end &= !(reach[u * n + v] && reach[v * n + u]);
		for (size_t u = 0; u < n && is_end; u++)
			waits += reach[u * n + v];
		ret->n += is_end;
		ret->waits += is_end ? waits : 0;
	}
}

static int naive(const struct graph *g, struct ends *ret)
{
	uint8_t *reach = calloc(g->n, g->n);
	uint32_t *stack = calloc(g->n + 1u, sizeof(*stack));

	for (uint32_t i = 0; reach && stack && i < g->n; i++)
		search(g, i, reach + (size_t)i * g->n, stack);
	if (reach && stack)
		count(g, reach, ret);
	free(stack);
	free(reach);
	return reach && stack ? 0 : -1;
}

/* ------------------------------------------------------------------ both --------------------- */

static int solve(const struct graph *g, struct ends *ret)
{
	struct waits_solution s;
	int r = waits_graph_solve(g->nodes, g->n, g->edges, g->n_edges, &s);

	*ret = (struct ends){ .n = s.n_causes };
	for (size_t i = 0; r == 0 && i < s.n_causes; i++)
		ret->waits += s.causes[i].waits;
	waits_solution_deinit(&s);
	return r;
}

static int measure(struct graph *g, size_t rounds)
{
	static uint64_t ours[ROUNDS_MAX];
	struct ends found = { 0 }, wanted = { 0 };
	uint64_t start;

	make(g);
	for (size_t i = 0; i < rounds; i++) {
		start = now_ns();
		if (solve(g, &found) < 0)
			return -1;
		ours[i] = now_ns() - start;
	}
	qsort(ours, rounds, sizeof(ours[0]), by_value);
	start = now_ns();
	if (naive(g, &wanted) < 0)
		return -1;
	printf("%llu %llu %llu\n", (unsigned long long)found.n, (unsigned long long)ours[rounds / 2],
	       (unsigned long long)(now_ns() - start));
	if (found.n == wanted.n && found.waits == wanted.waits)
		return 0;
	fprintf(stderr, "bench_graph: %llu ends of %llu waits, and by a search from each node %llu of %llu\n",
		(unsigned long long)found.n, (unsigned long long)found.waits, (unsigned long long)wanted.n,
		(unsigned long long)wanted.waits);
	return -1;
}

int main(int argc, char **argv)
{
	const size_t n = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
	const size_t rounds = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	struct graph g = { .n = (uint32_t)n, .n_edges = (uint32_t)(n + n / 2) };
	int r = -1;

	if (!n || n > 20000 || !rounds || rounds > ROUNDS_MAX) {
		fputs("usage: bench_graph NODES ROUNDS\n", stderr);
		return 2;
	}
	g.nodes = calloc(g.n, sizeof(*g.nodes));
	g.edges = calloc(g.n_edges + 1u, sizeof(*g.edges));
	g.first = calloc(g.n, sizeof(*g.first));
	g.next = calloc(g.n_edges + 1u, sizeof(*g.next));
	if (g.nodes && g.edges && g.first && g.next)
		r = measure(&g, rounds);
	free(g.nodes);
	free(g.edges);
	free(g.first);
	free(g.next);
	return r < 0;
}
