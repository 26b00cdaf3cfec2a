/* SPDX-License-Identifier: MIT */
/*
 * Warps of NVIDIA's devices that wait for barrier objects in shared memory.  Who arrives on an object is written
 * nowhere: any warp of the block may, or of its cluster, and copies do.  So nobody is named but where nobody is left.
 */
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/snapshot/hash.h"
#include "agentd/worker/wait/warps.h"
#include "base/out.h"

/* In history.h: a block of which no warp can come; above all places of a block. */
#define NAME_OVER 64u
/* How many objects a cause names. */
#define OBJECTS_SHOWN 4u

/* ------------------------------------------------------------------ one wait ----------------- */

const struct target_mbarrier *mbarriers_find(const struct look *l, const struct wave *warp, uint64_t pc)
{
	const struct target_waves *t = &l->seen->waves;

	for (size_t i = 0; i < t->n_mbarriers; i++)
		if (&t->waves[t->mbarriers[i].wave] == warp && t->mbarriers[i].pc == pc)
			return &t->mbarriers[i];
	return NULL;
}

void mbarriers_classify(struct unit *u)
{
	if (!u->object->is_read || waits_mbarrier_read(u->object->word, &u->state) < 0)
		u->does = DOES_UNKNOWN;
	else if (waits_mbarrier_blocks(&u->state, u->object->phase_register))
		u->does = DOES_WAIT;
}

static const char *arrivals_text(struct look *l, const struct unit *u)
{
	const struct waits_mbarrier *m = &u->state;

	if (!m->pending)
		return rpc_arena_printf(l->arena, "phase %d, %d bytes of copies missing", m->phase, m->tx);
	return rpc_arena_printf(l->arena, "phase %d, %u of %u arrival%s missing", m->phase, m->pending, m->expected,
				m->expected == 1 ? "" : "s");
}

static void add_code(struct look *l, const struct unit *first, struct rpc_wait *to)
{
	auto_out struct out o = { 0 };
	uint8_t code[WAITS_SASS_BYTES];

	if (code_bytes(&l->code, first->object->at, code, sizeof(code)) < 0)
		return;
	for (size_t i = 0; i < sizeof(code); i++)
		out_fmt(&o, "%02x", code[i]);
	look_add_evidence(l, to, "instruction", rpc_arena_strdup(l->arena, o.data ? o.data : ""));
}

void mbarriers_describe(struct look *l, const struct unit *first, struct rpc_wait *to)
{
	const struct waits_mbarrier *m = &first->state;

	to->at.instruction = waits_mbarrier_name();
	to->has_object = to->has_condition = true;
	to->object = (struct rpc_wait_object){ .address = first->object->address, .bytes = WAITS_MBARRIER_BYTES,
					       .has_value = true, .value = first->object->word };
	/* It ends when the other phase has begun. */
	to->condition = (struct rpc_wait_condition){ .op = "ne", .value = (uint64_t)m->phase << 63, .has_mask = true,
						     .mask = UINT64_C(1) << 63 };
	to->has_expects = to->has_has = true;
	to->expects = m->expected;
	to->has = m->expected - m->pending;
	add_code(l, first, to);
	look_add_evidence(l, to, "phase", m->phase ? "1" : "0");
	look_add_evidence(l, to, "parity waited for", first->object->phase_register >> 31 ? "1" : "0");
	look_add_evidence(l, to, "arrivals pending", rpc_arena_printf(l->arena, "%u of %u", m->pending, m->expected));
	look_add_evidence(l, to, LOOK_COPIES, rpc_arena_printf(l->arena, "%d", m->tx));
}

/* ------------------------------------------------------------------ who is left -------------- */

/* Until copies are done they may come; and from sm_100 on, units that compute come by themselves. */
static bool is_open(struct look *l, const struct unit *u)
{
	const struct rpc_device *d = NULL;

	for (size_t i = 0; i < l->seen->n_devices; i++)
		if (l->seen->devices[i].rpc.gpu_id == u->w->gpu_id)
			d = &l->seen->devices[i].rpc;
	return u->state.tx || !u->state.pending || !d || !d->arch || strcmp(d->arch, "sm_90") != 0 ||
	       warps_may_arrive(l, u);
}

/* Do all lanes of a block wait, some of them for objects, and none for a copy? */
static bool is_settled(struct look *l, const struct block *b)
{
	bool any = false;

	if (b->undecoded || b->cut || !b->n_units)
		return false;
	for (uint32_t i = 0; i < b->n_units; i++) {
		const struct unit *u = &b->units[i];

		if (u->does != DOES_WAIT || u->wait == LOOK_NONE || (u->object && is_open(l, u)))
			return false;
		any |= u->object != NULL;
	}
	for (uint32_t i = 0; any && i < b->n_places; i++)
		if (!warps_is_closed(l, b, i))
			return false;
	return any;
}

void mbarriers_begin_look(struct look *l)
{
	const struct target_waves *t = &l->seen->waves;
	struct block *b = t->n_mbarriers ? calloc(1, sizeof(*b)) : NULL;
	uint32_t last = UINT32_MAX;

	l->over = rpc_arena_array(l->arena, t->n_mbarriers, sizeof(*l->over));
	for (size_t i = 0; b && l->over && i < t->n_mbarriers; i++) {
		uint32_t leader = t->waves[t->mbarriers[i].wave].leader;

		if (leader == last)
			continue;
		last = leader;
		*b = (struct block){ .waves = &t->waves[leader] };
		while (leader + b->n < t->n_waves && t->waves[leader + b->n].leader == leader)
			b->n++;
		warps_read_block(l, b);
		if (is_settled(l, b))
			l->over[l->n_over++] = (struct look_over){
				.waves = b->waves,
				.is_old = look_is_same(l, warps_name_of(b->waves, NAME_OVER), warps_state_of(b)),
			};
	}
	free(b);
}

static const struct look_over *find_over(const struct look *l, const struct wave *leader)
{
	for (size_t i = 0; i < l->n_over; i++)
		if (l->over[i].waves == leader)
			return &l->over[i];
	return NULL;
}

/* The blocks of a cluster start together: one that is not there has ended. */
static bool is_cluster_over(const struct look *l, const struct wave *of, const uint32_t size[3], bool *is_old)
{
	const struct target_waves *t = &l->seen->waves;

	for (size_t i = 0; i < t->n_waves; i++) {
		const struct look_over *o;

		if (t->waves[i].leader != i || !clusters_is_same(of, &t->waves[i], size))
			continue;
		o = find_over(l, &t->waves[i]);
		if (!o)
			return false;
		*is_old &= o->is_old;
	}
	return true;
}

void mbarriers_judge(struct look *l, struct block *b)
{
	const struct look_over *o = find_over(l, b->waves);
	const struct target_mbarrier *m = NULL;

	for (uint32_t i = 0; o && !m && i < b->n_units; i++)
		m = b->units[i].object;
	if (!m || m->has_unknown_cluster)
		return;
	b->is_old = o->is_old && l->before && l->apart_ns >= LOOK_STILL_NS;
	b->is_over = m->cluster[0] ? b->waves->has_workgroup &&
					     is_cluster_over(l, b->waves, m->cluster, &b->is_old) :
				     true;
}

/* ------------------------------------------------------------------ who has not come --------- */

static const char *over_text(struct look *l, const struct block *b, const char *exited)
{
	auto_out struct out o = { 0 };
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->n_places; i++) {
		const struct unit *u = b->places[i].first;
		const char *who = warps_text(l, b, i);

		if (!u->object || n++ >= OBJECTS_SHOWN)
			continue;
		out_fmt(&o, "%s%s %s on mbarrier 0x%x (%s)", n > 1 ? ", " : "", who, look_verb(who),
			u->object->address, arrivals_text(l, u));
	}
	if (n > OBJECTS_SHOWN)
		out_fmt(&o, ", and others on %u more", n - OBJECTS_SHOWN);
	out_fmt(&o, "; %s, and nobody is left who could arrive", exited);
	return rpc_arena_strdup(l->arena, o.data ? o.data : "");
}

/* A copy is under way, and comes some time. */
static void add_copy(struct look *l, size_t wait, const struct unit *u)
{
	uint32_t node;

	if (!u->state.tx)
		return;
	node = look_add_node(l, RPC_WAIT_NODE_KIND_COPY_ENGINE, WAITS_END_UNKNOWN,
			     rpc_arena_printf(l->arena, "copies to shared memory, of which %d bytes are missing",
					      u->state.tx));
	if (node == LOOK_NONE)
		return;
	l->nodes[node].may_come = true;
	look_add_edge(l, l->waits[wait].node, node, WAITS_INFERRED, u->state.pending);
}

/* @return who may arrive besides the block's own warps; NULL: nobody. */
static const char *neighbours_text(struct look *l, const struct target_mbarrier *m)
{
	const uint64_t blocks = (uint64_t)m->cluster[0] * m->cluster[1] * m->cluster[2];

	if (m->has_unknown_cluster)
		return "warps of other blocks, if it is in a cluster";
	return blocks < 2 ? NULL :
			    rpc_arena_printf(l->arena, "warps of the other %s of its cluster", blocks == 2 ? "block" : "blocks");
}

static void add_candidates(struct look *l, const struct block *b, uint32_t place)
{
	const struct unit *first = b->places[place].first;
	size_t wait = b->places[place].wait;
	const char *neighbours;

	add_copy(l, wait, first);
	/* There may be no room behind the units. */
	neighbours = first->state.pending ? neighbours_text(l, first->object) : NULL;
	if (neighbours)
		warps_add_others(l, wait, neighbours);
	for (uint32_t i = 0; first->state.pending && i < b->n_units; i++)
		if (b->units[i].wait != place)
			warps_add_party(l, b, wait, &b->units[i], true);
}

/* Those who wait at another place may be among those who had to arrive: they do not come either. */
static void add_those_gone(struct look *l, const struct block *b, uint32_t place)
{
	warps_add_exited(l, b, b->places[place].wait);
	for (uint32_t i = 0; i < b->n_places; i++)
		if (i != place)
			warps_add_waiting(l, b, b->places[place].wait, i);
}

/* Arrivals are counted, and not those who arrive. */
static void tell_missing(struct rpc_wait *to, const struct waits_mbarrier *m)
{
	to->confidence = RPC_CONFIDENCE_INFERRED;
	to->missing_count = m->pending;
	to->has_candidates = to->candidates = true;
}

void mbarriers_add_parties(struct look *l, struct block *b)
{
	const char *exited = b->is_over ? warps_exited_text(l, b) : NULL;
	uint32_t nobody = LOOK_NONE;

	for (uint32_t i = 0; i < b->n_places; i++) {
		size_t wait = b->places[i].wait;

		if (!b->places[i].first->object || wait == LOOK_NONE)
			continue;
		(exited ? add_those_gone : add_candidates)(l, b, i);
		tell_missing(&l->waits[wait].rpc, &b->places[i].first->state);
		if (!exited)
			continue;
		if (nobody == LOOK_NONE)
			nobody = look_add_node(l, RPC_WAIT_NODE_KIND_NOBODY,
					       b->is_old ? WAITS_END_GONE : WAITS_END_UNKNOWN, exited);
		l->waits[wait].over = over_text(l, b, exited);
		l->waits[wait].nobody = nobody;
		look_add_edge(l, l->waits[wait].node, nobody, WAITS_INFERRED, false);
	}
}

void mbarriers_end_look(struct look *l)
{
	for (size_t i = 0; i < l->n_waits; i++) {
		const struct look_wait *w = &l->waits[i];
		const char *block, *more = "";

		if (!w->over || w->nobody == LOOK_NONE)
			continue;
		block = look_workgroup_text(l, w->first);
		if (w->rpc.alike > 1)
			more = rpc_arena_printf(l->arena, " and %u more", w->rpc.alike - 1);
		l->nodes[w->nobody].rpc.text = rpc_arena_printf(l->arena, "%s%s: %s", block, more ? more : "", w->over);
	}
}
