/* SPDX-License-Identifier: MIT */
/*
 * Grids of NVIDIA's devices that wait, by a barrier of the program's own, for blocks which are not on the device.  All
 * of a grid have to be there at once, or such a barrier never ends; but many programs poll words for a while, and
 * blocks that are late, or that have ended, look the same for a moment.
 *
 * So the numbers have to agree with the grid (waits_grid_barrier_of()), the program has to ask for what is written on
 * the device, nobody else may be there, and both samples have to show that no wave of the grid has gone on.
 */
#include <stdlib.h>

#include "agentd/worker/snapshot/hash.h"
#include "agentd/worker/wait/look.h"
#include "agentd/worker/wait/wait.h"
#include "base/cleanup.h"
#include "waits/grid.h"

/* In history.h. */
#define NAME_ABSENT 10u
#define BLOCKS_MAX  (UINT32_C(1) << 30)
/* Of a block of NVIDIA's. */
#define WARPS_MAX 32u

/* ------------------------------------------------------------------ its waves ---------------- */

static const struct wave *wave_of(const struct look *l, const struct target_spin *s)
{
	return &l->seen->waves.waves[s->wave];
}

/* The loop of the grid that a place is in; NULL: none. */
static const struct target_spin *spin_at(const struct look *l, const struct look_grid *g, uint64_t pc)
{
	const struct target_waves *t = &l->seen->waves;

	for (size_t i = 0; i < t->n_spins; i++)
		if (pc >= t->spins[i].begin && pc < t->spins[i].end && look_is_of_grid(g, wave_of(l, &t->spins[i])))
			return &t->spins[i];
	return NULL;
}

/* The host may give any word that is not known to be one of the device: nobody is accused of what it does. */
static bool is_given_here(const struct target_spin *s)
{
	bool here = s->is_read && s->of_device && !s->is_grid;

	for (uint8_t k = 0; k < s->n_words; k++)
		here &= s->words[k].has_value && !s->words[k].is_host;
	return here && (!s->has_last || (s->last.has_value && !s->last.is_host));
}

/* What is seen of a grid. */
struct standing {
	bool waits; /* Each lane that is there polls, or is at a barrier. */
	uint64_t state;
};

/* Which place of a loop a lane is at changes as it goes round. */
static void add_part(struct look *l, const struct look_grid *g, const struct wave *whole, const struct wave *w,
		     struct standing *s)
{
	const struct target_spin *spin = spin_at(l, g, w->pc);
	const uint64_t words[] = { whole->workgroup[0], whole->workgroup[1], whole->workgroup[2], whole->wave_in_group,
				   spin ? spin->begin : w->pc };

	s->state += hash_bytes(hash_secret(), words, 4 * sizeof(*words));
	s->waits &= whole->state == RPC_WAVE_STATE_RUNNING && whole->has_workgroup && whole->has_wave_in_group &&
		    (spin ? is_given_here(spin) : look_is_at_barrier(l, w));
	/* Lanes at several places of a loop are to add up to the same, whatever the places are. */
	s->state += hash_bytes(hash_secret(), words, sizeof(words)) * w->exec;
}

static void add_words(const struct look *l, const struct look_grid *g, struct standing *to)
{
	const struct target_waves *t = &l->seen->waves;

	for (size_t i = 0; i < t->n_spins; i++) {
		const struct target_spin *s = &t->spins[i];

		if (!look_is_of_grid(g, wave_of(l, s)))
			continue;
		for (uint8_t k = 0; k < s->n_words; k++)
			to->state = hash_mix(to->state ^ s->words[k].value) ^ s->words[k].address;
		if (s->has_last)
			to->state = hash_mix(to->state ^ s->last.value) ^ s->last.address;
	}
}

static struct standing look_at_waves(struct look *l, const struct look_grid *g)
{
	const struct target_waves *t = &l->seen->waves;
	struct standing s = { .waits = true };

	for (size_t i = 0; i < t->n_waves && s.waits; i++) {
		const struct wave *w = &t->waves[i];

		if (!look_is_of_grid(g, w))
			continue;
		s.waits = !l->is_collective[i];
		for (uint32_t k = 0; k < wave_n_parts(w); k++)
			add_part(l, g, w, &w->parts->list[k], &s);
		if (!wave_n_parts(w))
			add_part(l, g, w, w, &s);
	}
	add_words(l, g, &s);
	return s;
}

/* ------------------------------------------------------------------ its loops ---------------- */

/* The wait for the word that was looked at; NULL: it is not told. */
static struct look_wait *wait_of(const struct look *l, const struct look_grid *g, const struct target_spin *s)
{
	for (size_t i = 0; i < l->n_waits; i++) {
		const struct rpc_wait *w = &l->waits[i].rpc;

		if (w->kind == RPC_WAIT_KIND_SPIN && w->has_dispatch && w->gpu_id == g->first->gpu_id &&
		    w->queue_id == g->first->queue_id && w->dispatch == g->first->dispatch && w->at.pc == s->pc &&
		    w->object.address == s->words[0].address)
			return &l->waits[i];
	}
	return NULL;
}

/* The threads of one block that are in a loop. */
struct pollers {
	uint32_t warps, lanes;
	uint32_t of[WARPS_MAX]; /* The lanes, by warp of the block. */
};

static uint32_t lanes_in(const struct target_spin *s, const struct wave *w)
{
	uint64_t lanes = 0;

	for (uint32_t k = 0; k < wave_n_parts(w); k++) {
		const struct wave *part = &w->parts->list[k];

		lanes |= part->pc >= s->begin && part->pc < s->end ? part->exec : 0;
	}
	if (!wave_n_parts(w) && w->pc >= s->begin && w->pc < s->end)
		lanes = w->exec;
	return (uint32_t)lanes;
}

/* Those of the block of the lane that was looked at. */
static bool find_pollers(const struct look *l, const struct target_spin *s, struct pollers *ret)
{
	const struct target_waves *t = &l->seen->waves;
	const uint32_t leader = wave_of(l, s)->leader;

	*ret = (struct pollers){ 0 };
	for (size_t i = leader; i < t->n_waves && t->waves[i].leader == leader; i++) {
		const struct wave *w = &t->waves[i];
		const uint32_t lanes = lanes_in(s, w);

		if (!lanes)
			continue;
		if (!w->has_wave_in_group || w->wave_in_group >= WARPS_MAX)
			return false;
		ret->of[w->wave_in_group] = lanes;
		ret->lanes += (uint32_t)__builtin_popcount(lanes);
		ret->warps++;
	}
	return true;
}

/*
 * Are the numbers of the threads those of the blocks that are not there?  Of more blocks than a block has threads, each
 * thread polls for every so many.
 */
static bool are_numbered(const struct look *l, const struct look_grid *g, const struct target_spin *s, struct pollers p)
{
	const uint32_t threads = 32u * wave_of(l, s)->group_waves;
	auto_free bool *seen = look_seen_groups(l, g);

	for (uint32_t i = 0; seen && i < g->expects; i++) {
		const uint32_t thread = threads ? i % threads : i, bit = UINT32_C(1) << thread % 32;

		if (seen[i])
			continue;
		if (thread / 32 >= WARPS_MAX || !(p.of[thread / 32] & bit))
			return false;
		p.of[thread / 32] &= ~bit;
		p.lanes--;
	}
	return seen && !p.lanes;
}

/* How many lanes the last one is behind the first. */
static uint32_t apart_of(const struct target_spin *s)
{
	return 31 - (uint32_t)__builtin_clz(s->lanes) - s->lane;
}

static enum waits_grid_barrier barrier_of(const struct look *l, const struct look_grid *g, uint32_t absent,
					  const struct target_spin *s)
{
	const struct target_word *w = &s->words[0];
	struct waits_grid_poll p = {
		.blocks = g->expects,
		.absent = absent,
		.word = { .address = w->address, .bytes = w->bytes, .op = (enum waits_compare)w->op,
			  .is_signed = w->is_signed, .with = w->with, .mask = w->mask },
		.has_value = w->has_value,
		.value = w->value,
	};
	struct pollers pollers;

	if (!is_given_here(s) || s->n_words != 1 || w->is_shared || s->is_lock)
		return WAITS_GRID_NO_BARRIER;
	if (s->has_last && find_pollers(l, s, &pollers)) {
		p.last = s->last.address;
		p.apart = apart_of(s);
		p.lanes = pollers.lanes;
		p.is_one_block = pollers.warps == s->warps;
		p.is_numbered = p.is_one_block && p.lanes == absent && are_numbered(l, g, s, pollers);
	}
	return waits_grid_barrier_of(&p);
}

/* ------------------------------------------------------------------ who is not there --------- */

static const char *text_of(struct look *l, const struct look_grid *g, uint32_t absent, const struct target_spin *s,
			   enum waits_grid_barrier b)
{
	const struct wave *w = wave_of(l, s);
	const struct rpc_wait_at at = wait_of(l, g, s)->rpc.at;
	const char *who = b == WAITS_GRID_FLAGS ? look_workgroup_text(l, w) : "the others";
	const char *how = b == WAITS_GRID_FLAGS ? "polls as many words" : "poll a word that lacks as many";

	const char *have = absent == 1 ? "has" : "have";

	return rpc_arena_printf(l->arena, "%u of %u blocks of %s %s not on the device, and %s not started or %s ended:%s "
				"%s %s, at %s, and no block goes on: if %s not fit, or %s ended, the barrier never completes",
				absent, g->expects, look_kernel(l, g->first), absent == 1 ? "is" : "are", have, have,
				look_absent_text(l, g, absent), who, how, look_place(l, &at),
				absent == 1 ? "it does" : "they do", have);
}

/* Is the word one of the barrier's: the same count, or a flag in the same row? */
static bool is_of_barrier(const struct look_grid *g, const struct target_spin *barrier, enum waits_grid_barrier b,
			  const struct target_spin *s)
{
	const uint64_t first = barrier->words[0].address, address = s->words[0].address;
	const uint64_t way = address > first ? address - first : first - address;
	uint64_t step;

	if (!is_given_here(s) || s->n_words != 1 || s->words[0].is_shared || s->is_lock)
		return false;
	if (b == WAITS_GRID_COUNT)
		return !way;
	step = (barrier->last.address - first) / apart_of(barrier);
	return way % step == 0 && way / step < g->expects;
}

/* Of the words of the barrier, nobody who waits gives any. */
static void add_edges(struct look *l, const struct look_grid *g, const struct target_spin *barrier,
		      enum waits_grid_barrier b, uint32_t node)
{
	const struct target_waves *t = &l->seen->waves;
	const size_t n = l->n_edges;

	for (size_t i = 0; i < t->n_spins; i++) {
		const struct target_spin *s = &t->spins[i];
		const bool is_one = look_is_of_grid(g, wave_of(l, s)) && is_of_barrier(g, barrier, b, s);
		const struct look_wait *w = is_one ? wait_of(l, g, s) : NULL;

		for (size_t k = 0; w && k < n; k++) {
			const uint32_t word = l->edges[k].to;

			if (l->edges[k].from != w->node || l->nodes[word].rpc.kind != RPC_WAIT_NODE_KIND_WORD)
				continue;
			l->nodes[word].may_come = false;
			look_add_edge(l, word, node, WAITS_INFERRED, false);
		}
	}
}

/* Has the grid stood still since the sample before, alone on its device? */
static bool is_stuck(struct look *l, const struct look_grid *g, const struct look_wait *w)
{
	const uint64_t words[] = { g->first->gpu_id, g->first->queue_id, g->first->dispatch, NAME_ABSENT };
	const struct standing s = look_at_waves(l, g);

	if (!s.waits || l->seen->waves.polls_left_out || look_has_others(l, g))
		return false;
	return look_is_same(l, hash_bytes(hash_secret(), words, sizeof(words)), s.state) && !w->changed &&
	       l->apart_ns >= LOOK_STILL_NS;
}

static void add_absent(struct look *l, const struct look_grid *g, uint32_t absent, const struct target_spin *s,
		       enum waits_grid_barrier b)
{
	const struct look_wait *w = wait_of(l, g, s);
	uint32_t node;

	if (!w || !is_stuck(l, g, w))
		return;
	node = look_add_node(l, RPC_WAIT_NODE_KIND_NOBODY, WAITS_END_GONE, text_of(l, g, absent, s, b));
	if (node != LOOK_NONE)
		add_edges(l, g, s, b, node);
}

/* ------------------------------------------------------------------ all of them -------------- */

static uint32_t blocks_of(const struct target_spin *s)
{
	uint64_t n = 1;

	for (unsigned i = 0; i < 3; i++) {
		n *= s->grid[i];
		if (n > BLOCKS_MAX)
			return 0;
	}
	return (uint32_t)n;
}

static void tell(struct look *l, const struct look_grid *g, uint32_t absent, const struct target_spin *s)
{
	struct look_wait *w = wait_of(l, g, s);

	if (w)
		look_add_evidence(l, &w->rpc, "blocks of the grid that are not on the device",
				  rpc_arena_printf(l->arena, "%u of %u", absent, g->expects));
}

/* @return whether an earlier loop is of the same grid. */
static bool is_looked_at(const struct look *l, const struct look_grid *g, size_t at)
{
	const struct target_waves *t = &l->seen->waves;

	for (size_t i = 0; i < at; i++)
		if (look_is_of_grid(g, wave_of(l, &t->spins[i])))
			return true;
	return false;
}

static void look_at_grid(struct look *l, const struct look_grid *g, size_t at)
{
	const struct target_waves *t = &l->seen->waves;
	const uint32_t there = look_count_groups(l, g);
	const uint32_t absent = there < g->expects ? g->expects - there : 0;
	enum waits_grid_barrier barrier = WAITS_GRID_NO_BARRIER;

	for (size_t i = at; absent && i < t->n_spins; i++) {
		const struct target_spin *s = &t->spins[i];

		if (!look_is_of_grid(g, wave_of(l, s)))
			continue;
		tell(l, g, absent, s);
		if (barrier != WAITS_GRID_NO_BARRIER)
			continue;
		barrier = barrier_of(l, g, absent, s);
		if (barrier != WAITS_GRID_NO_BARRIER)
			add_absent(l, g, absent, s, barrier);
	}
}

void look_at_absent(struct look *l)
{
	const struct target_waves *t = &l->seen->waves;

	for (size_t i = 0; look_has_all_waves(l) && i < t->n_spins; i++) {
		const struct target_spin *s = &t->spins[i];
		const struct look_grid g = { .first = wave_of(l, s), .expects = blocks_of(s),
					     .size = { s->grid[0], s->grid[1], s->grid[2] } };

		if (g.first->has_dispatch && !is_looked_at(l, &g, i))
			look_at_grid(l, &g, i);
	}
}
