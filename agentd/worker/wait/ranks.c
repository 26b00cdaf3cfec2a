/* SPDX-License-Identifier: MIT */
/*
 * Collective operations that wait for other ranks, as waits.  Those ranks are other processes, or other devices of this
 * one: which one is not known here, so chains end at a rank, and nobody is accused.
 *
 * A wave that polls the very word by which the data comes is told as one that polls, with what the word has to be: the
 * word then leads to the rank, and where that says all of the operation there is no other wait for it.
 */
#include "agentd/worker/snapshot/hash.h"
#include "agentd/worker/wait/look.h"

/* Connections that are told as evidence, beside rank and communicator. */
#define CONNECTIONS_TOLD 8u

static uint32_t rank_node(struct look *l, uint64_t communicator, uint32_t rank)
{
	uint32_t node;

	for (size_t i = 0; i < l->n_nodes; i++)
		if (l->nodes[i].rpc.kind == RPC_WAIT_NODE_KIND_RANK && l->nodes[i].rpc.rank == rank &&
		    l->nodes[i].rpc.communicator == communicator)
			return (uint32_t)i;
	node = look_add_node(l, RPC_WAIT_NODE_KIND_RANK, WAITS_END_UNKNOWN,
			     rpc_arena_printf(l->arena, "rank %u of communicator 0x%llx", rank,
					      (unsigned long long)communicator));
	if (node == LOOK_NONE)
		return LOOK_NONE;
	l->nodes[node].may_come = true;
	l->nodes[node].rpc.has_rank = l->nodes[node].rpc.has_communicator = true;
	l->nodes[node].rpc.communicator = communicator;
	l->nodes[node].rpc.rank = rank;
	return node;
}

/* ------------------------------------------------------------------ words that are polled ---- */

/* Is it a wait of waves of the dispatch for words? */
static bool is_poll_of(const struct look *l, uint32_t node, const struct wave *first)
{
	const struct look_node *n = &l->nodes[node];
	const struct rpc_wait *w = n->rpc.has_wait ? &l->waits[n->rpc.wait].rpc : NULL;

	return w && (w->kind == RPC_WAIT_KIND_SPIN || w->kind == RPC_WAIT_KIND_LOCK) &&
	       w->gpu_id == first->gpu_id && w->queue_id == first->queue_id && w->has_dispatch == first->has_dispatch &&
	       (!w->has_dispatch || w->dispatch == first->dispatch);
}

/* @param begin  Of the edges that are looked at. */
static bool has_edge(const struct look *l, size_t begin, uint32_t from, uint32_t to)
{
	for (size_t i = begin; i < l->n_edges; i++)
		if (l->edges[i].from == from && l->edges[i].to == to)
			return true;
	return false;
}

/* Of a connection: the node of its rank, and whether a wave polls its word, and nothing else. */
struct way {
	uint32_t node; /* May be LOOK_NONE. */
	bool has_node, is_told;
};

/* Lead from a word on to the ranks whose data it counts.  @param is_led  That was done for another wave. */
static void lead_on(struct look *l, const struct waits_edge *e, const struct look_awaits *a, uint64_t communicator,
		    bool is_led, struct way *ways)
{
	const size_t begin = l->n_edges;

	for (size_t i = 0; i < a->n; i++) {
		struct way *way = &ways[i];

		if (a->list[i].word != l->nodes[e->to].word)
			continue;
		way->is_told |= !e->any;
		if (is_led)
			continue;
		if (!way->has_node)
			way->node = rank_node(l, communicator, (uint32_t)a->list[i].from);
		way->has_node = true;
		if (!has_edge(l, begin, e->to, way->node))
			look_add_edge(l, e->to, way->node, WAITS_INFERRED, false);
	}
}

/* @return whether waves that poll say all of it. */
static bool is_told_by_polls(struct look *l, const struct wave *first, const struct look_awaits *a,
			     uint64_t communicator)
{
	const size_t n_edges = l->n_edges;
	struct way *ways = rpc_arena_array(l->arena, a->n, sizeof(*ways));
	bool *led = rpc_arena_array(l->arena, l->n_nodes, sizeof(*led)), all = ways && led;

	for (size_t i = 0; all && i < n_edges; i++) {
		const struct waits_edge e = l->edges[i];

		if (!l->nodes[e.to].word || !is_poll_of(l, e.from, first))
			continue;
		lead_on(l, &e, a, communicator, led[e.to], ways);
		led[e.to] = true;
	}
	for (size_t i = 0; ways && i < a->n; i++)
		all &= ways[i].is_told;
	return all;
}

/* ------------------------------------------------------------------ the operation ------------ */

static void add_evidence(struct look *l, struct rpc_wait *to, const struct look_awaits *a,
			 const struct rpc_collective *of)
{
	look_add_evidence(l, to, "communicator",
			  rpc_arena_printf(l->arena, "0x%llx of %u ranks", (unsigned long long)of->communicator, of->ranks));
	for (size_t i = 0; i < a->n && i < CONNECTIONS_TOLD; i++) {
		const struct look_awaited *c = &a->list[i];

		look_add_evidence(l, to,
				  rpc_arena_printf(l->arena, "steps that have come from rank %llu for %s %llu",
						   (unsigned long long)c->from, look_is_nvidia(l) ? "block" : "workgroup",
						   (unsigned long long)c->workgroup),
				  rpc_arena_printf(l->arena, "%llu, and kernels before it have taken %llu",
						   (unsigned long long)c->arrived, (unsigned long long)c->taken));
	}
}

static const char *who_text(struct look *l, const struct wave *first, const struct rpc_collective *of)
{
	return rpc_arena_printf(l->arena, "%u %s%s of %s (rank %u of communicator 0x%llx)", of->waves,
				look_is_nvidia(l) ? "warp" : "wave", of->waves == 1 ? "" : "s", look_kernel(l, first),
				of->rank, (unsigned long long)of->communicator);
}

static void add_parties(struct look *l, size_t wait, const struct rpc_collective *of)
{
	struct rpc_wait *to = &l->waits[wait].rpc;
	const size_t n = of->n_waits_for < LOOK_PARTIES_MAX ? of->n_waits_for : LOOK_PARTIES_MAX;

	to->missing_count = (uint32_t)of->n_waits_for;
	to->missing = rpc_arena_array(l->arena, n, sizeof(*to->missing));
	for (size_t i = 0; i < of->n_waits_for; i++) {
		const uint32_t node = rank_node(l, of->communicator, of->waits_for[i]);

		if (node == LOOK_NONE)
			return;
		look_add_edge(l, l->waits[wait].node, node, WAITS_INFERRED, false);
		if (to->missing && i < n)
			to->missing[to->n_missing++] = (struct rpc_wait_party){ .what = l->nodes[node].rpc.text,
										.state = RPC_WAIT_END_UNKNOWN };
	}
}

static void add_wait(struct look *l, const struct wave *first, const struct look_awaits *a,
		     const struct rpc_collective *of)
{
	const uint64_t name[] = { of->gpu_id, of->queue_id, of->dispatch, of->communicator, of->rank, 9 };
	const size_t wait = l->n_waits;
	struct look_wait *w = look_add_wait(l, RPC_WAIT_KIND_COLLECTIVE, RPC_WAIT_NODE_KIND_WAVES,
					    who_text(l, first, of), hash_bytes(hash_secret(), name, sizeof(name)),
					    hash_bytes(hash_secret(), a->list, a->n * sizeof(*a->list)));

	if (!w)
		return;
	w->rpc.confidence = RPC_CONFIDENCE_INFERRED;
	w->rpc.waves = of->waves;
	w->rpc.gpu_id = of->gpu_id;
	w->rpc.queue_id = of->queue_id;
	w->rpc.has_dispatch = first->has_dispatch;
	w->rpc.dispatch = of->dispatch;
	w->rpc.kernel = first->kernel ? look_kernel(l, first) : NULL;
	add_evidence(l, &w->rpc, a, of);
	add_parties(l, wait, of);
}

void look_add_ranks(struct look *l, const struct wave *first, const struct look_awaits *a,
		    const struct rpc_collective *of)
{
	/* Without memory the ranks may be missing, which is told by the arena. */
	if (of->n_waits_for && !is_told_by_polls(l, first, a, of->communicator))
		add_wait(l, first, a, of);
}
