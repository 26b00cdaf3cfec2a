/* SPDX-License-Identifier: MIT */
/*
 * Blocks of NVIDIA's devices at the barrier of their cluster.  It waits for all threads of the cluster that have not
 * exited (PTX ISA, barrier.cluster): so no block has to be there for who is missing, but for those that are.
 */
#include "agentd/worker/snapshot/hash.h"
#include "agentd/worker/snapshot/wave_convert.h"
#include "agentd/worker/wait/wait.h"
#include "agentd/worker/wait/warps.h"

bool clusters_is_same(const struct wave *a, const struct wave *b, const uint32_t size[3])
{
	if (a->gpu_id != b->gpu_id || a->queue_id != b->queue_id || a->dispatch != b->dispatch || !b->has_workgroup)
		return false;
	for (int i = 0; i < 3; i++)
		if (a->workgroup[i] / size[i] != b->workgroup[i] / size[i])
			return false;
	return true;
}

/* Of a workgroup, by its first wave; NULL: it was not asked for. */
static const struct target_cluster *find_cluster(const struct look *l, const struct wave *leader)
{
	const struct target_waves *t = &l->seen->waves;

	for (size_t i = 0; i < t->n_clusters; i++)
		if (&t->waves[t->waves[t->clusters[i].wave].leader] == leader)
			return &t->clusters[i];
	return NULL;
}

/* Of the cluster of a block, in each direction.  @return whether that is known. */
static bool find_size(const struct look *l, const struct block *b, uint32_t ret[3])
{
	const struct target_cluster *c = find_cluster(l, b->waves);

	for (int i = 0; c && i < 3; i++)
		ret[i] = c->size[i] ? c->size[i] : 1;
	return c && !c->is_unknown && b->waves->has_workgroup;
}

/* Read the first block of this cluster at a position or behind it.  @return the position behind; 0: there is none. */
static size_t next_block(struct look *l, const struct wave *of, const uint32_t size[3], size_t i)
{
	const struct target_waves *t = &l->seen->waves;
	struct block *b = l->neighbour;
	size_t end;

	while (i < t->n_waves && !clusters_is_same(of, &t->waves[i], size))
		i++;
	if (i == t->n_waves)
		return 0;
	end = i + 1;
	while (end < t->n_waves && t->waves[end].leader == t->waves[i].leader)
		end++;
	*b = (struct block){ .waves = &t->waves[i], .n = (uint32_t)(end - i) };
	warps_read_block(l, b);
	return end;
}

static bool has_come(const struct unit *u)
{
	return u->does == DOES_WAIT && !u->object && u->at.op == WAITS_SASS_CLUSTER_WAIT;
}

uint64_t clusters_state_of(struct look *l, const struct block *b)
{
	uint64_t h = 0;
	uint32_t size[3];
	bool any = false;

	for (uint32_t i = 0; i < b->n_places; i++)
		any |= has_come(b->places[i].first);
	if (!any || !find_size(l, b, size))
		return 0;
	if (!l->neighbour)
		l->neighbour = rpc_arena_array(l->arena, 1, sizeof(*l->neighbour));
	for (size_t at = 0; l->neighbour && (at = next_block(l, b->waves, size, at));) {
		const uint32_t *n = l->neighbour->waves->workgroup;
		uint64_t rank = (n[2] % size[2] * size[1] + n[1] % size[1]) * size[0] + n[0] % size[0];

		/* Blocks lie in any order. */
		h += hash_mix(warps_state_of(l->neighbour) ^ rank << 32);
	}
	return h;
}

void clusters_note(struct look *l, const struct block *b, const struct unit *first, size_t wait)
{
	struct look_cluster *to;
	uint32_t size[3];

	l->waits[wait].rpc.confidence = RPC_CONFIDENCE_UNKNOWN;
	if (!find_size(l, b, size)) {
		l->n_unknown_clusters++;
		return;
	}
	if (!l->clusters)
		l->clusters = rpc_arena_array(l->arena, l->seen->waves.n_clusters, sizeof(*l->clusters));
	if (!l->clusters)
		return;
	to = &l->clusters[l->n_clusters++];
	*to = (struct look_cluster){ .waves = b->waves, .wait = wait, .size = { size[0], size[1], size[2] } };
	/* Who may have come without waiting need not be missing. */
	to->may_arrive = b->undecoded || b->cut || warps_may_arrive(l, first);
}

/* ------------------------------------------------------------------ who has not come --------- */

/* What is counted of one cluster. */
struct count {
	uint32_t come, there;
};

/* The wait of a warp that is missing, or the warp itself. */
static uint32_t node_of(struct look *l, const struct unit *u, const struct rpc_wait_at *at)
{
	const uint32_t wait = l->of_wave[u->warp - l->seen->waves.waves];

	if (wait != WAIT_NONE && l->waits[wait].rpc.kind != RPC_WAIT_KIND_CLUSTER)
		return l->waits[wait].node;
	return look_add_wave(l, u->w, at);
}

static void add_party(struct look *l, const struct look_cluster *c, const struct unit *u)
{
	struct rpc_wait *to = &l->waits[c->wait].rpc;
	struct rpc_wait_at at = look_at(l, u->w);
	uint32_t node, from = l->waits[c->wait].node;
	bool waits;

	to->missing_count++;
	if (!to->missing)
		to->missing = rpc_arena_array(l->arena, LOOK_PARTIES_MAX, sizeof(*to->missing));
	if (!to->missing || to->n_missing == LOOK_PARTIES_MAX)
		return;
	node = node_of(l, u, &at);
	if (node == LOOK_NONE)
		return;
	waits = l->nodes[node].rpc.has_wait;
	look_add_edge(l, from, node, WAITS_INFERRED, c->may_arrive);
	to->missing[to->n_missing++] = (struct rpc_wait_party){
		.what = waits ?
				rpc_arena_printf(l->arena, "%s, at %s, waits itself", look_wave_text(l, u->w), look_place(l, &at)) :
				l->nodes[node].rpc.text,
		.has_ref = true,
		.ref = wave_ref((struct wave *)u->warp),
		.state = waits ? RPC_WAIT_END_UNKNOWN : (enum rpc_wait_end)l->nodes[node].node.end,
		.has_at = true,
		.at = at,
	};
}

static void look_at_block(struct look *l, const struct look_cluster *c, bool stopped, struct count *n)
{
	const struct block *b = l->neighbour;
	const struct wave *missing = NULL;
	uint32_t late = 0;

	for (uint32_t i = 0; i < b->n_units; i++) {
		const struct unit *u = &b->units[i];

		if (has_come(u))
			continue;
		late += u->warp != missing;
		missing = u->warp;
		if ((u->does == DOES_STOP) == stopped)
			add_party(l, c, u);
	}
	n->come += b->n - late;
	n->there += b->n;
}

static struct count add_parties(struct look *l, const struct look_cluster *c, bool stopped)
{
	struct count n = { 0 };

	for (size_t at = 0; (at = next_block(l, c->waves, c->size, at));)
		look_at_block(l, c, stopped, &n);
	return n;
}

/* ------------------------------------------------------------------ all of them -------------- */

static void tell(struct look *l, const struct look_cluster *c, const struct count *n)
{
	struct rpc_wait *to = &l->waits[c->wait].rpc;

	if (to->missing_count)
		to->confidence = RPC_CONFIDENCE_INFERRED;
	to->has_candidates = to->candidates = to->missing_count && c->may_arrive;
	to->has_has = to->has_expects = true;
	to->has = n->come;
	to->expects = n->there;
	look_add_evidence(l, to, "blocks of the cluster",
			  rpc_arena_printf(l->arena, "%u x %u x %u", c->size[0], c->size[1], c->size[2]));
}

void look_at_clusters(struct look *l)
{
	if (l->n_unknown_clusters)
		look_missing(l, rpc_arena_printf(l->arena, "clusters: for whom blocks wait is not known in %u wait%s, because the size of the cluster is not",
						 l->n_unknown_clusters, l->n_unknown_clusters == 1 ? "" : "s"));
	for (size_t i = 0; l->neighbour && i < l->n_clusters; i++) {
		const struct look_cluster *c = &l->clusters[i];
		struct count n;

		/* Those that have stopped come first: there may be more than are named. */
		add_parties(l, c, true);
		n = add_parties(l, c, false);
		tell(l, c, &n);
	}
}
