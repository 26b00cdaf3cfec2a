/* SPDX-License-Identifier: MIT */
#include "waits/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define NONE  UINT32_MAX
#define BATCH 64u

/* Edges by where they begin, and what Tarjan's walk knows of each node. */
struct work {
	const struct waits_node *nodes;
	uint32_t n;
	const struct waits_edge *edges;
	uint32_t *first; /* Of each node, and one more: places in `to`. */
	const struct waits_edge **to;
	uint32_t *index, *low, *component, *stack, *call, *next;
	uint32_t n_index, n_stack, n_components;
	uint32_t *members, *begin; /* Nodes by component, each after those that it leads to. */
	uint8_t *weakest;	   /* Of each component: the weakest edge inside it. */
};

static void work_deinit(struct work *w)
{
	free(w->first);
	free(w->to);
	free(w->index);
	free(w->members);
	free(w->begin);
	free(w->weakest);
}

static int work_init(struct work *w, const struct waits_node *nodes, size_t n, const struct waits_edge *edges,
		     size_t n_edges)
{
	uint32_t *words;

	*w = (struct work){ .nodes = nodes, .n = (uint32_t)n, .edges = edges };
	if (n >= NONE / 8 || n_edges >= NONE / 8)
		return -EINVAL;
	for (size_t i = 0; i < n_edges; i++)
		if (edges[i].from >= n || edges[i].to >= n)
			return -EINVAL;
	w->first = calloc(n + 2, sizeof(*w->first));
	w->to = calloc(n_edges + 1, sizeof(*w->to));
	w->index = words = calloc(6 * n + 1, sizeof(*words));
	w->members = calloc(n + 1, sizeof(*w->members));
	w->begin = calloc(n + 2, sizeof(*w->begin));
	w->weakest = calloc(n + 1, sizeof(*w->weakest));
	if (!w->first || !w->to || !words || !w->members || !w->begin || !w->weakest)
		return -ENOMEM;
	w->low = words + n;
	w->component = words + 2 * n;
	w->stack = words + 3 * n;
	w->call = words + 4 * n;
	w->next = words + 5 * n;
	for (size_t i = 0; i < n_edges; i++)
		w->first[edges[i].from + 2] += !edges[i].any;
	for (size_t i = 2; i < n + 2; i++)
		w->first[i] += w->first[i - 1];
	for (size_t i = 0; i < n_edges; i++)
		if (!edges[i].any)
			w->to[w->first[edges[i].from + 1]++] = &edges[i];
	for (size_t i = 0; i < n; i++)
		w->index[i] = w->component[i] = NONE;
	return 0;
}

static void enter(struct work *w, uint32_t v)
{
	w->index[v] = w->low[v] = w->n_index++;
	w->next[v] = w->first[v];
	w->stack[w->n_stack++] = v;
}

static void leave(struct work *w, uint32_t v, uint32_t *n_members)
{
	uint32_t u;

	if (w->low[v] != w->index[v])
		return;
	w->begin[w->n_components] = *n_members;
	do {
		u = w->stack[--w->n_stack];
		w->component[u] = w->n_components;
		w->members[(*n_members)++] = u;
	} while (u != v);
	w->begin[++w->n_components] = *n_members;
}

/* Tarjan's algorithm without recursion: a chain of waits may be as long as there are nodes. */
static void find_components(struct work *w)
{
	uint32_t n_members = 0;

	for (uint32_t root = 0; root < w->n; root++) {
		uint32_t depth = 0;

		if (w->index[root] != NONE)
			continue;
		w->call[depth++] = root;
		enter(w, root);
		while (depth) {
			uint32_t v = w->call[depth - 1], u;

			if (w->next[v] == w->first[v + 1]) {
				leave(w, v, &n_members);
				depth--;
				if (depth && w->low[v] < w->low[w->call[depth - 1]])
					w->low[w->call[depth - 1]] = w->low[v];
				continue;
			}
			u = w->to[w->next[v]++]->to;
			if (w->index[u] == NONE) {
				w->call[depth++] = u;
				enter(w, u);
			} else if (w->component[u] == NONE && w->index[u] < w->low[v]) {
				w->low[v] = w->index[u];
			}
		}
	}
}

/* Does the component end the way?  @return its kind of end; WAITS_END_COUNT: it leads on. */
static enum waits_end end_of(const struct work *w, uint32_t c)
{
	uint32_t v = w->members[w->begin[c]];

	/* A circle is one, whether or not some of it wait for others as well. */
	if (w->begin[c + 1] - w->begin[c] > 1)
		return WAITS_END_CIRCLE;
	for (uint32_t e = w->first[v]; e < w->first[v + 1]; e++)
		if (w->to[e]->to == v)
			return WAITS_END_CIRCLE;
	return w->first[v] == w->first[v + 1] ? w->nodes[v].end : WAITS_END_COUNT;
}

/* A node with edges that do not count and no others: it is not known whom it waits for. */
static void mark_any(const struct waits_edge *edges, size_t n_edges, bool *has_any)
{
	for (size_t i = 0; i < n_edges; i++)
		has_any[edges[i].from] |= edges[i].any;
}

/* A way into a circle, or through one, is taken to be as weak as the circle's weakest edge. */
static void find_weakest(struct work *w)
{
	memset(w->weakest, WAITS_PROVEN, w->n_components);
	for (uint32_t v = 0; v < w->n; v++)
		for (uint32_t e = w->first[v], c = w->component[v]; e < w->first[v + 1]; e++)
			if (w->component[w->to[e]->to] == c)
				w->weakest[c] = (uint8_t)waits_weaker((enum waits_confidence)w->weakest[c],
								      w->to[e]->confidence);
}

/* Which of the ends of a batch each component leads to; each is behind those that it leads to. */
static void spread(const struct work *w, uint64_t *mask, enum waits_confidence worst)
{
	for (uint32_t c = 0; c < w->n_components; c++) {
		if (w->weakest[c] > worst) {
			mask[c] = 0;
			continue;
		}
		for (uint32_t i = w->begin[c]; i < w->begin[c + 1]; i++) {
			uint32_t v = w->members[i];

			for (uint32_t e = w->first[v]; e < w->first[v + 1]; e++)
				if (w->to[e]->confidence <= worst)
					mask[c] |= mask[w->component[w->to[e]->to]];
		}
	}
}

/* Count the waits that lead to each end of a batch. */
static void count_waits(const struct work *w, const uint64_t *mask, uint32_t counts[BATCH])
{
	memset(counts, 0, BATCH * sizeof(*counts));
	for (uint32_t v = 0; v < w->n; v++)
		for (uint64_t m = w->nodes[v].is_wait ? mask[w->component[v]] : 0; m; m &= m - 1)
			counts[__builtin_ctzll(m)]++;
}

/* The ends of a batch to which any wait leads. */
static uint64_t reached(const struct work *w, const uint64_t *mask)
{
	uint64_t all = 0;

	for (uint32_t v = 0; v < w->n; v++)
		if (w->nodes[v].is_wait)
			all |= mask[w->component[v]];
	return all;
}

static void weigh(const struct work *w, struct waits_cause *causes, const uint32_t *ends, uint32_t n, uint64_t *mask)
{
	uint32_t counts[BATCH];

	for (int worst = WAITS_UNKNOWN; worst >= WAITS_PROVEN; worst--) {
		memset(mask, 0, w->n_components * sizeof(*mask));
		for (uint32_t i = 0; i < n; i++)
			mask[ends[i]] |= UINT64_C(1) << i;
		spread(w, mask, (enum waits_confidence)worst);
		for (uint64_t m = reached(w, mask); m; m &= m - 1)
			causes[__builtin_ctzll(m)].confidence = (enum waits_confidence)worst;
		if (worst != WAITS_UNKNOWN)
			continue;
		count_waits(w, mask, counts);
		for (uint32_t i = 0; i < n; i++)
			causes[i].waits = counts[i];
	}
}

static int by_rank(const void *x, const void *y)
{
	const struct waits_cause *a = x, *b = y;

	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	if (a->waits != b->waits)
		return a->waits > b->waits ? -1 : 1;
	if (a->confidence != b->confidence)
		return a->confidence < b->confidence ? -1 : 1;
	return a->first < b->first ? -1 : a->first > b->first;
}

static int collect(struct work *w, const bool *has_any, struct waits_solution *ret)
{
	auto_free uint32_t *ends = calloc(w->n_components + 1, sizeof(*ends));
	auto_free uint64_t *mask = calloc(w->n_components + 1, sizeof(*mask));
	size_t n = 0, kept = 0;

	ret->causes = calloc(w->n_components + 1, sizeof(*ret->causes));
	if (!ends || !mask || !ret->causes)
		return -ENOMEM;
	for (uint32_t c = 0; c < w->n_components; c++) {
		enum waits_end end = end_of(w, c);

		if (end != WAITS_END_CIRCLE && end != WAITS_END_COUNT && has_any[w->members[w->begin[c]]])
			end = WAITS_END_UNKNOWN;
		if (end == WAITS_END_COUNT)
			continue;
		ends[n] = c;
		ret->causes[n++] = (struct waits_cause){ .end = end,
							 .first = w->begin[c],
							 .n = w->begin[c + 1] - w->begin[c] };
	}
	for (size_t i = 0; i < n; i += BATCH)
		weigh(w, ret->causes + i, ends + i, n - i < BATCH ? (uint32_t)(n - i) : BATCH, mask);
	/* What nobody waits for is no end of a wait; a wait for something unknown is one of its own. */
	for (size_t i = 0; i < n; i++)
		if (ret->causes[i].waits)
			ret->causes[kept++] = ret->causes[i];
	ret->n_causes = kept;
	qsort(ret->causes, kept, sizeof(*ret->causes), by_rank);
	return 0;
}

int waits_graph_solve(const struct waits_node *nodes, size_t n_nodes, const struct waits_edge *edges, size_t n_edges,
		      struct waits_solution *ret)
{
	auto_free bool *has_any = calloc(n_nodes + 1, sizeof(*has_any));
	struct work w;
	int r = work_init(&w, nodes, n_nodes, edges, n_edges);

	*ret = (struct waits_solution){ 0 };
	if (r == 0 && !has_any)
		r = -ENOMEM;
	if (r == 0) {
		mark_any(edges, n_edges, has_any);
		find_components(&w);
		find_weakest(&w);
		r = collect(&w, has_any, ret);
	}
	if (r == 0) {
		ret->nodes = w.members;
		w.members = NULL;
	}
	work_deinit(&w);
	return r;
}

void waits_solution_deinit(struct waits_solution *s)
{
	free(s->causes);
	free(s->nodes);
	*s = (struct waits_solution){ 0 };
}
