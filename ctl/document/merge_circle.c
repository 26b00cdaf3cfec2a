/* SPDX-License-Identifier: MIT */
/*
 * Ranks that wait for each other in collective operations, or all for ranks that are in none, from what `why` says of
 * each process.
 *
 * A rank that has received nothing waits for one that is not in its operation; that one is in another operation, and
 * waits for the first one, or for others that do.  Documents are of different moments, and what a rank waits for in one
 * of them may have come when the next one was made.  So only those count that were unchanged between two samples, and
 * all of them for one half of a second: then all waited at once.
 *
 * The ranks of a communicator are those of the job only where it has as many, and where all that are seen agree.  A
 * process that executes several collective operations may come to one of them yet, and is in no circle.  That the host
 * does not start the operation meanwhile is not seen either, so that what is said is inferred.
 *
 * A rank that is in no operation may just not have come yet: that others wait for it is said, and accuses nobody.
 *
 * Who is left out because it was looked at at another moment is told: that nothing is said of it does not mean that
 * nothing is there.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/document/merge.h"
#include "waits/graph.h"

/* For so long all of a circle have to have been seen waiting; clocks of different hosts may be wrong by less. */
#define SHARED_US UINT64_C(500000)
/* Most operations of a circle that are told. */
#define OPERATIONS_MAX 8
/* Most that the graph has of each, so that a merged document can be read again. */
#define NODES_MAX  4096
#define EDGES_MAX  8192
#define CAUSES_MAX 64
#define NOBODY	   UINT32_MAX

/* All of it by position in the list of ranks. */
struct waiting {
	struct rpc_arena *a;
	const struct rpc_gpu_snapshot_result *s;
	const struct rpc_collective **of; /* What each rank waits in; NULL: it is not known to wait. */
	uint32_t *by_rank;		  /* Positions, by rank of the job; NOBODY: it is not there. */
	uint32_t world;
	uint64_t begin_us, end_us;	  /* All of them waited from then till then. */
	size_t n_left;			  /* How many wait at that time. */
	struct merge_set late;		  /* Who was looked at at another one. */
	uint64_t first_us[2], last_us[2]; /* The earliest and the latest of first looks, and of second ones. */
	struct waits_edge *edges;	  /* To those that they wait for. */
	size_t n_edges;
	uint32_t *last; /* Of each rank, the last one of which there is an edge to it. */
	bool *told;
};

/* ------------------------------------------------------------------ who waits ---------------- */

/* Find everybody by rank.  @return false: that cannot be. */
static bool find_ranks(struct waiting *w)
{
	for (uint32_t i = 0; i < w->world; i++)
		w->by_rank[i] = NOBODY;
	for (size_t i = 0; i < w->s->n_ranks; i++) {
		const struct rpc_rank *r = &w->s->ranks[i];

		if (!r->has_rank || !merge_is_same_job(&w->s->ranks[0].rank, &r->rank) || r->rank.rank >= w->world ||
		    w->by_rank[r->rank.rank] != NOBODY)
			return false;
		w->by_rank[r->rank.rank] = (uint32_t)i;
		for (size_t k = 0; k < r->n_collectives; k++)
			if (r->collectives[k].ranks == w->world && r->collectives[k].rank != r->rank.rank)
				return false;
	}
	return true;
}

/* What a rank waits in, if that is all that it does for others. */
static const struct rpc_collective *wait_of(const struct waiting *w, const struct rpc_rank *r)
{
	const struct rpc_collective *c = r->n_collectives == 1 ? &r->collectives[0] : NULL;

	if (!c || !c->operation || c->ranks != w->world || !c->n_waits_for || !c->has_unchanged_since_us ||
	    !c->has_seen_us || c->seen_us < c->unchanged_since_us || c->seen_us - c->unchanged_since_us < SHARED_US)
		return NULL;
	return c;
}

struct moment {
	uint64_t time_us;
	bool begins;
};

static int compare_moments(const void *x, const void *y)
{
	const struct moment *a = x, *b = y;

	if (a->time_us != b->time_us)
		return a->time_us < b->time_us ? -1 : 1;
	return (int)b->begins - (int)a->begins;
}

/* One of the two looks at a rank. */
static void note_look(struct waiting *w, size_t which, uint64_t at_us)
{
	w->first_us[which] = at_us < w->first_us[which] ? at_us : w->first_us[which];
	w->last_us[which] = at_us > w->last_us[which] ? at_us : w->last_us[which];
}

/* Keep those that wait at the moment at which most do, and for the time behind it. */
static int keep_most(struct waiting *w)
{
	struct moment *list = rpc_arena_array(w->a, 2 * w->s->n_ranks, sizeof(*list));
	uint64_t begin = 0;
	size_t n = 0, now = 0, most = 0;

	if (!list)
		return rpc_arena_error(w->a);
	for (size_t i = 0; i < w->s->n_ranks; i++)
		if (w->of[i]) {
			note_look(w, 0, w->of[i]->unchanged_since_us);
			note_look(w, 1, w->of[i]->seen_us);
			list[n++] = (struct moment){ w->of[i]->unchanged_since_us, true };
			list[n++] = (struct moment){ w->of[i]->seen_us - SHARED_US, false };
		}
	qsort(list, n, sizeof(*list), compare_moments);
	for (size_t i = 0; i < n; i++) {
		now = list[i].begins ? now + 1 : now - 1;
		if (now > most) {
			most = now;
			begin = list[i].time_us;
		}
	}
	w->begin_us = begin;
	w->end_us = UINT64_MAX;
	w->n_left = most;
	for (size_t i = 0; i < w->s->n_ranks; i++) {
		if (w->of[i] &&
		    (w->of[i]->unchanged_since_us > begin || w->of[i]->seen_us - SHARED_US < begin)) {
			merge_set_add(&w->late, i);
			w->of[i] = NULL;
		}
		if (w->of[i] && w->of[i]->seen_us < w->end_us)
			w->end_us = w->of[i]->seen_us;
	}
	return 0;
}

/* ------------------------------------------------------------------ for whom ----------------- */

static bool is_same(const struct rpc_collective *a, const struct rpc_collective *b)
{
	return !strcmp(a->operation, b->operation) && a->has_number == b->has_number &&
	       (!a->has_number || a->number == b->number);
}

/* Is it known that they are in different operations?  A number that is not known may be any. */
static bool is_other(const struct rpc_collective *a, const struct rpc_collective *b)
{
	return strcmp(a->operation, b->operation) != 0 || (a->has_number && b->has_number && a->number != b->number);
}

/* A rank, by its number in the job. */
static uint32_t position_of(const struct waiting *w, uint32_t rank)
{
	return rank < w->world ? w->by_rank[rank] : NOBODY;
}

/* Room for all edges that there can be. */
static int make_room(struct waiting *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->s->n_ranks; i++)
		n += w->of[i] ? w->of[i]->n_waits_for : 0;
	w->edges = rpc_arena_array(w->a, n, sizeof(*w->edges));
	w->last = rpc_arena_array(w->a, w->s->n_ranks, sizeof(*w->last));
	return w->edges && w->last ? 0 : rpc_arena_error(w->a);
}

/* By who waits, each once whatever a document repeats.  @param all  Also to ranks in the same operation, or in none. */
static void find_edges(struct waiting *w, bool all)
{
	w->n_edges = 0;
	for (size_t i = 0; i < w->s->n_ranks; i++)
		w->last[i] = NOBODY;
	for (size_t i = 0; i < w->s->n_ranks; i++)
		for (size_t k = 0; w->of[i] && k < w->of[i]->n_waits_for; k++) {
			const uint32_t to = position_of(w, w->of[i]->waits_for[k]);

			if (to == NOBODY || w->last[to] == i ||
			    (!all && (!w->of[to] || !is_other(w->of[i], w->of[to]))))
				continue;
			w->last[to] = (uint32_t)i;
			w->edges[w->n_edges++] = (struct waits_edge){ (uint32_t)i, to, WAITS_INFERRED, false };
		}
}

static int solve(struct waiting *w, struct waits_solution *ret)
{
	auto_free struct waits_node *nodes = calloc(w->s->n_ranks, sizeof(*nodes));

	if (!nodes)
		return -ENOMEM;
	for (size_t i = 0; i < w->s->n_ranks; i++)
		nodes[i] = (struct waits_node){ .is_wait = w->of[i] != NULL, .end = WAITS_END_UNKNOWN };
	return waits_graph_solve(nodes, w->s->n_ranks, w->edges, w->n_edges, ret);
}

/* Mark those of the first circle.  @return whether there is one; negative without memory. */
static int find_circle(struct waiting *w)
{
	struct waits_solution solution = { 0 };
	int r = solve(w, &solution);

	for (size_t i = 0; r == 0 && i < solution.n_causes; i++) {
		const struct waits_cause *c = &solution.causes[i];

		if (c->end != WAITS_END_CIRCLE)
			continue;
		for (uint32_t k = 0; k < c->n; k++)
			w->told[solution.nodes[c->first + k]] = true;
		r = 1;
	}
	waits_solution_deinit(&solution);
	return r;
}

/* The operations of a circle, each once. */
struct operations {
	const struct rpc_collective *list[OPERATIONS_MAX];
	size_t n;
	bool more;
};

static bool has_operation(const struct operations *o, const struct rpc_collective *c)
{
	for (size_t i = 0; i < o->n; i++)
		if (is_same(o->list[i], c))
			return true;
	return false;
}

static void list_operations(const struct waiting *w, struct operations *ret)
{
	for (size_t i = 0; i < w->s->n_ranks; i++) {
		if (!w->told[i] || has_operation(ret, w->of[i]))
			continue;
		if (ret->n == OPERATIONS_MAX)
			ret->more = true;
		else
			ret->list[ret->n++] = w->of[i];
	}
}

/* Who waits for one of the circle, and who waits in a numbered operation of it, is no better off. */
static void add_others(struct waiting *w, const bool *circle, const struct operations *o)
{
	for (size_t i = 0; i < w->n_edges; i++)
		if (circle[w->edges[i].to] && has_operation(o, w->of[w->edges[i].from]))
			w->told[w->edges[i].from] = true;
	for (size_t i = 0; i < w->s->n_ranks; i++)
		if (w->of[i] && w->of[i]->has_number && has_operation(o, w->of[i]))
			w->told[i] = true;
}

/* ------------------------------------------------------------------ as a graph --------------- */

static void keep_node(uint32_t *place, size_t i, size_t *n)
{
	if (place[i] != NOBODY || *n == NODES_MAX)
		return;
	place[i] = 0;
	++*n;
}

/*
 * The nodes: those of whom it is told that they wait, and for whom.
 * @param first      Who has room before others.
 * @param ret_place  Gets the node of each rank.
 */
static int add_nodes(struct waiting *w, const bool *first, struct rpc_rank_graph *ret, uint32_t **ret_place)
{
	uint32_t *place = rpc_arena_array(w->a, w->s->n_ranks, sizeof(*place));
	size_t n = 0;

	if (!place)
		return rpc_arena_error(w->a);
	for (size_t i = 0; i < w->s->n_ranks; i++)
		place[i] = NOBODY;
	for (size_t i = 0; i < w->s->n_ranks; i++)
		if (first[i])
			keep_node(place, i, &n);
	for (size_t i = 0; i < w->s->n_ranks; i++)
		if (w->told[i])
			keep_node(place, i, &n);
	for (size_t i = 0; i < w->n_edges; i++)
		if (w->told[w->edges[i].from])
			keep_node(place, w->edges[i].to, &n);
	ret->nodes = rpc_arena_array(w->a, n, sizeof(*ret->nodes));
	if (!ret->nodes)
		return rpc_arena_error(w->a);
	for (size_t i = 0; i < w->s->n_ranks; i++) {
		if (place[i] == NOBODY)
			continue;
		place[i] = (uint32_t)ret->n_nodes;
		/* Who waits is no end, also where it is not seen for whom. */
		ret->nodes[ret->n_nodes++] = (struct rpc_wait_node){ .kind = RPC_WAIT_NODE_KIND_RANK,
								     .text = w->s->ranks[i].name,
								     .has_process = true, .process = (uint32_t)i,
								     .has_end = !w->of[i],
								     .end = RPC_WAIT_END_UNKNOWN };
	}
	*ret_place = place;
	return 0;
}

static bool is_between(const uint32_t *place, const struct waits_edge *e)
{
	return place[e->from] != NOBODY && place[e->to] != NOBODY;
}

/* Is it of the circle, or does it lead to an end?  @param first  Those of the circle, or the ends. */
static bool is_of_cause(const struct waiting *w, const bool *first, const struct waits_edge *e)
{
	return first[e->to] && (first[e->from] || !w->of[e->to]);
}

/* What the graph can have. */
struct choice {
	const uint32_t *place; /* Of each rank. */
	const bool *first;
	size_t n_nodes;
	bool *kept; /* Of each edge. */
	size_t n;
};

/* Where there are too many, each node has as many as the others. */
static void choose(const struct waiting *w, struct choice *c, bool of_causes)
{
	const size_t room = EDGES_MAX - c->n;
	size_t n = 0, of_node = 0, share;
	uint32_t from = NOBODY;

	for (size_t i = 0; i < w->n_edges; i++)
		n += is_between(c->place, &w->edges[i]) && is_of_cause(w, c->first, &w->edges[i]) == of_causes;
	share = n <= room ? n : room > c->n_nodes ? room / c->n_nodes : 1;
	for (size_t i = 0; i < w->n_edges; i++) {
		const struct waits_edge *e = &w->edges[i];

		if (!is_between(c->place, e) || is_of_cause(w, c->first, e) != of_causes)
			continue;
		of_node = e->from == from ? of_node + 1 : 1;
		from = e->from;
		c->kept[i] = of_node <= share && c->n < EDGES_MAX;
		c->n += c->kept[i];
	}
}

/* Those by which somebody is a cause have room before others. */
static int add_edges(struct waiting *w, const uint32_t *place, const bool *first, struct rpc_rank_graph *ret)
{
	struct choice c = { .place = place, .first = first, .n_nodes = ret->n_nodes,
			    .kept = rpc_arena_array(w->a, w->n_edges, sizeof(*c.kept)) };

	if (!c.kept)
		return rpc_arena_error(w->a);
	choose(w, &c, true);
	choose(w, &c, false);
	ret->edges = rpc_arena_array(w->a, c.n, sizeof(*ret->edges));
	if (!ret->edges)
		return rpc_arena_error(w->a);
	for (size_t i = 0; i < w->n_edges; i++) {
		const struct waits_edge *e = &w->edges[i];

		if (c.kept[i])
			ret->edges[ret->n_edges++] = (struct rpc_wait_edge){
				.from = place[e->from], .to = place[e->to],
				.confidence = (enum rpc_confidence)e->confidence,
			};
	}
	return 0;
}

/* An end of the waits; what the text says of it is only inferred. */
static void add_cause(const uint32_t *place, size_t rank, enum rpc_wait_end end, const char *text, uint32_t waits,
		      struct rpc_rank_graph *to)
{
	to->causes[to->n_causes++] = (struct rpc_wait_cause){ .text = text, .node = place[rank], .end = end,
							      .confidence = RPC_CONFIDENCE_INFERRED, .waits = waits };
}

/*
 * Who is told of, and all waits between them.
 * @param first   The ends of the waits, and who else is not left out before others.
 * @param causes  How many will be added.
 */
static int begin_graph(struct waiting *w, const bool *first, size_t causes, struct merge_waits *ret,
		       uint32_t **ret_place)
{
	int r = add_nodes(w, first, &ret->graph, ret_place);

	find_edges(w, true);
	if (r == 0)
		r = add_edges(w, *ret_place, first, &ret->graph);
	ret->graph.causes = rpc_arena_array(w->a, causes, sizeof(*ret->graph.causes));
	if (r == 0 && !ret->graph.causes)
		r = rpc_arena_error(w->a);
	ret->has_graph = r == 0;
	return r;
}

/* ------------------------------------------------------------------ in words ----------------- */

#define INFERRED "  [inferred]"

static int say_operation(struct waiting *w, const struct rpc_collective *c, struct out *o)
{
	struct merge_set in, out;
	const char *who, *for_whom;
	int r = merge_set_init(w->a, w->s->n_ranks, &in);

	if (r == 0)
		r = merge_set_init(w->a, w->s->n_ranks, &out);
	if (r < 0)
		return r;
	for (size_t i = 0; i < w->s->n_ranks; i++)
		if (w->told[i] && is_same(w->of[i], c))
			merge_set_add(&in, i);
	for (size_t i = 0; i < w->n_edges; i++)
		if (merge_set_has(&in, w->edges[i].from))
			merge_set_add(&out, w->edges[i].to);
	who = merge_ranks_text(w->a, w->s, &in);
	for_whom = merge_ranks_text(w->a, w->s, &out);
	if (!who || !for_whom)
		return rpc_arena_error(w->a);
	out_fmt(o, "%s wait%s in %s", who, merge_set_count(&in) == 1 ? "s" : "", c->operation);
	if (c->has_number)
		out_fmt(o, " (operation 0x%llx)", (unsigned long long)c->number);
	out_fmt(o, " for %s, which %s not in it", for_whom, merge_set_count(&out) == 1 ? "is" : "are");
	return 0;
}

static int say(struct waiting *w, const struct operations *ops, const char **ret)
{
	auto_out struct out o = { 0 };
	int r = 0;

	out_str(&o, "a circle: ");
	for (size_t i = 0; i < ops->n && r == 0; i++) {
		out_str(&o, i ? "; " : "");
		r = say_operation(w, ops->list[i], &o);
	}
	if (r < 0)
		return r;
	out_str(&o, ops->more ? "; and so on" : "");
	*ret = out_error(&o) ? NULL : rpc_arena_strdup(w->a, o.data);
	return *ret ? 0 : -ENOMEM;
}

static int say_circle(struct waiting *w, struct merge_waits *ret)
{
	struct operations operations = { 0 };
	bool *circle = rpc_arena_array(w->a, w->s->n_ranks, sizeof(*circle));
	const char *text;
	uint32_t *place, n = 0;
	size_t first = 0;
	int r;

	if (!circle)
		return rpc_arena_error(w->a);
	memcpy(circle, w->told, w->s->n_ranks * sizeof(*circle));
	list_operations(w, &operations);
	add_others(w, circle, &operations);
	r = say(w, &operations, &text);
	if (r == 0)
		r = begin_graph(w, circle, 1, ret, &place);
	if (r < 0)
		return r;
	while (!circle[first])
		first++;
	for (size_t i = 0; i < w->s->n_ranks; i++)
		n += w->told[i];
	add_cause(place, first, RPC_WAIT_END_CIRCLE, text, n, &ret->graph);
	ret->circle = rpc_arena_printf(w->a, "%s" INFERRED, text);
	return rpc_arena_error(w->a);
}

/* ------------------------------------------------------------------ for who is in none ------- */

/* Is it known that a rank was in no operation, when the others waited?  One seen at another time is noted. */
static bool is_in_none(struct waiting *w, size_t i)
{
	const struct rpc_rank *r = &w->s->ranks[i];

	if (!r->has_collectives || r->n_collectives)
		return false;
	if (r->time_us >= w->begin_us && r->time_us - w->begin_us <= w->end_us - w->begin_us + SHARED_US)
		return true;
	note_look(w, 1, r->time_us);
	merge_set_add(&w->late, i);
	return false;
}

static int tell_awaited(struct waiting *w, const struct waits_solution *solution, struct merge_waits *ret)
{
	const size_t n = solution->n_causes < CAUSES_MAX ? solution->n_causes : CAUSES_MAX;
	bool *ends = rpc_arena_array(w->a, w->s->n_ranks, sizeof(*ends));
	uint32_t *place;
	int r;

	if (!ends)
		return rpc_arena_error(w->a);
	for (size_t i = 0; i < n; i++)
		ends[solution->nodes[solution->causes[i].first]] = true;
	r = begin_graph(w, ends, n, ret, &place);
	for (size_t i = 0; r == 0 && i < n; i++) {
		const uint32_t end = solution->nodes[solution->causes[i].first];

		add_cause(place, end, RPC_WAIT_END_UNKNOWN,
			  rpc_arena_printf(w->a, "%s, which was in no collective operation when seen",
					   w->s->ranks[end].name),
			  solution->causes[i].waits, &ret->graph);
	}
	return r < 0 ? r : rpc_arena_error(w->a);
}

/*
 * Find the ranks to which all that wait lead, through each other.
 * @param ret  Gets the graph of these.
 * @return whether all of those are in no operation; negative without memory.
 */
static int find_awaited(struct waiting *w, struct merge_set *who, struct merge_set *whom, struct merge_waits *ret)
{
	struct waits_solution solution = { 0 };
	bool known = true;
	int r;

	find_edges(w, true);
	r = solve(w, &solution);
	for (size_t i = 0; r == 0 && i < w->s->n_ranks; i++) {
		if (!w->of[i])
			continue;
		merge_set_add(who, i);
		w->told[i] = true;
		for (size_t k = 0; k < w->of[i]->n_waits_for; k++)
			/* Of who was not seen nothing is known. */
			if (position_of(w, w->of[i]->waits_for[k]) == NOBODY)
				goto out;
	}
	for (size_t i = 0; r == 0 && i < solution.n_causes; i++) {
		const uint32_t end = solution.nodes[solution.causes[i].first];

		known = solution.causes[i].end != WAITS_END_CIRCLE && is_in_none(w, end) && known;
		merge_set_add(whom, end);
	}
	known = known && solution.n_causes > 0;
	if (r == 0 && known)
		r = tell_awaited(w, &solution, ret);
	r = r == 0 ? known : r;
out:
	waits_solution_deinit(&solution);
	return r;
}

static int say_awaited(struct waiting *w, struct merge_waits *ret)
{
	struct merge_set who, whom;
	const char *from, *to;
	int r = merge_set_init(w->a, w->s->n_ranks, &who);

	if (r == 0)
		r = merge_set_init(w->a, w->s->n_ranks, &whom);
	if (r == 0)
		r = find_awaited(w, &who, &whom, ret);
	if (r <= 0)
		return r;
	from = merge_ranks_text(w->a, w->s, &who);
	to = merge_ranks_text(w->a, w->s, &whom);
	if (from && to)
		ret->awaited = rpc_arena_printf(w->a,
						"%s wait%s in collective operations, for each other and in the end for %s, "
						"which %s in none when seen" INFERRED,
						from, merge_set_count(&who) == 1 ? "s" : "", to,
						merge_set_count(&whom) == 1 ? "was" : "were");
	return rpc_arena_error(w->a);
}

/* ------------------------------------------------------------------ who was seen too late ------ */

/* @param found  Something is said of those that wait at one time. */
static int say_late(struct waiting *w, bool found, const char **ret)
{
	const uint64_t begins = w->last_us[0] - w->first_us[0], ends = w->last_us[1] - w->first_us[1];
	const uint64_t tenths = (begins > ends ? begins : ends) / 100000;
	const bool all = !found && w->n_left < 2;
	const char *who;

	if (!merge_set_count(&w->late))
		return 0;
	who = all ? "" : merge_ranks_text(w->a, w->s, &w->late);
	if (who)
		*ret = rpc_arena_printf(w->a,
					"circles and causes across ranks were not looked for%s%s: ranks were looked at "
					"%" PRIu64 ".%" PRIu64 " s apart, and what one waits for may have come meanwhile",
					all ? "" : " with ", who, tenths / 10, tenths % 10);
	return rpc_arena_error(w->a);
}

/* ------------------------------------------------------------------ all of it ---------------- */

/* @return whether anything can be said; negative without memory. */
static int prepare(struct waiting *w)
{
	const struct rpc_rank *first = w->s->n_ranks ? &w->s->ranks[0] : NULL;
	int r;

	w->world = first && first->has_rank && first->rank.has_world_size ? first->rank.world_size : 0;
	if (!w->world || w->world > MERGE_RANKS_MAX)
		return 0;
	w->of = rpc_arena_array(w->a, w->s->n_ranks, sizeof(*w->of));
	w->by_rank = rpc_arena_array(w->a, w->world, sizeof(*w->by_rank));
	w->told = rpc_arena_array(w->a, w->s->n_ranks, sizeof(*w->told));
	if (!w->of || !w->by_rank || !w->told || merge_set_init(w->a, w->s->n_ranks, &w->late) < 0)
		return rpc_arena_error(w->a);
	if (!find_ranks(w))
		return 0;
	for (size_t i = 0; i < w->s->n_ranks; i++)
		w->of[i] = wait_of(w, &w->s->ranks[i]);
	r = keep_most(w);
	if (r == 0)
		r = make_room(w);
	return r < 0 ? r : 1;
}

int merge_circle(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, struct merge_waits *ret)
{
	struct waiting w = { .a = a, .s = s, .first_us = { UINT64_MAX, UINT64_MAX } };
	int r;

	*ret = (struct merge_waits){ 0 };
	r = prepare(&w);
	if (r <= 0)
		return r;
	find_edges(&w, false);
	r = find_circle(&w);
	if (r >= 0)
		r = r ? say_circle(&w, ret) : say_awaited(&w, ret);
	return r < 0 ? r : say_late(&w, ret->circle || ret->awaited, &ret->late);
}
