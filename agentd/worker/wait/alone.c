/* SPDX-License-Identifier: MIT */
/*
 * Waves that wait for nobody else: they sleep, or wait for their own loads and stores.  That is described, and is no
 * wait: an idle wave of a persistent kernel sleeps, and nobody has to come.
 */
#include <string.h>

#include "agentd/worker/snapshot/hash.h"
#include "agentd/worker/wait/warps.h"

/* Places that are told, and places whose code is searched for a loop around a sleep. */
#define ALONE_MAX    64u
#define SEARCHES_MAX 256u

/* Waves at one place. */
struct place_alone {
	const struct wave *first; /* Or a part of it. */
	enum rpc_wait_kind kind;
	const char *instruction;
	bool is_behind; /* They are behind the instruction. */
	uint32_t waves;
};

struct alone {
	struct place_alone list[ALONE_MAX];
	uint32_t n, searches;
};

/* ------------------------------------------------------------------ what a wave does --------- */

/* @param at  0 of what is in front of an AMD wave's pc, 4 at it.  @return its name, if it is of this kind. */
static const char *word_of(const struct look *l, const struct wave *w, uint32_t at, enum waits_op op)
{
	const struct look_code *c = &l->sites[w->site];
	struct waits_instruction i;

	if (!c->known || (at ? c->n < 4 : c->n < 8) ||
	    waits_instruction_read(look_family(l, w), c->bytes + at, 4, &i) < 0 || i.op != op)
		return NULL;
	return i.name;
}

const char *look_memory_wait(const struct look *l, const struct wave *w)
{
	return word_of(l, w, 4, WAITS_OP_WAIT_MEMORY);
}

/*
 * A wave that sleeps is at its instruction or behind it: which of them is not documented.  One that is behind it and at
 * a wait for its memory may be in either: that is not told.
 */
static bool amd_sleeps(const struct look *l, const struct wave *w, struct place_alone *ret)
{
	ret->instruction = word_of(l, w, 4, WAITS_OP_SLEEP);
	ret->is_behind = !ret->instruction;
	if (ret->is_behind && !look_memory_wait(l, w))
		ret->instruction = word_of(l, w, 0, WAITS_OP_SLEEP);
	return ret->instruction;
}

static bool is_in_a_spin(const struct look *l, const struct wave *w)
{
	const struct target_waves *t = &l->seen->waves;

	for (size_t i = 0; i < t->n_spins; i++)
		if (t->waves[t->spins[i].wave].gpu_id == w->gpu_id && w->pc >= t->spins[i].begin &&
		    w->pc < t->spins[i].end)
			return true;
	return false;
}

/* @param w  The warp, or a part of it. */
static bool warp_sleeps(const struct look *l, const struct wave *w, const struct wave *warp, struct place_alone *ret)
{
	const struct look_code *c = &l->sites[w->site];
	struct waits_sass s;

	/* Who sleeps in a loop that was not looked at may poll. */
	if (l->seen->waves.polls_left_out || !c->known ||
	    waits_sass_read(look_arch(l, w), c->bytes, c->n, &s) < 0 || s.op != WAITS_SASS_SLEEP)
		return false;
	ret->instruction = waits_sass_name(s.op);
	return !mbarriers_find(l, warp, w->pc) && !is_in_a_spin(l, w);
}

/* ------------------------------------------------------------------ where they are ----------- */

static bool is_same_place(const struct place_alone *p, const struct wave *w, enum rpc_wait_kind kind)
{
	const struct wave *first = p->first;

	return p->kind == kind && first->site == w->site && first->pc == w->pc && first->gpu_id == w->gpu_id &&
	       first->queue_id == w->queue_id && first->has_dispatch == w->has_dispatch &&
	       first->dispatch == w->dispatch;
}

static struct place_alone *find(struct alone *a, const struct wave *w, enum rpc_wait_kind kind)
{
	for (uint32_t i = 0; i < a->n; i++)
		if (is_same_place(&a->list[i], w, kind))
			return &a->list[i];
	return NULL;
}

static void add(struct look *l, struct alone *a, const struct wave *w, enum rpc_wait_kind kind,
		const struct place_alone *what)
{
	struct place_alone *p = find(a, w, kind);

	if (!p && a->n == ALONE_MAX) {
		look_missing(l, "waves that sleep, or wait for their own memory: those at more than 64 places");
		return;
	}
	if (!p) {
		p = &a->list[a->n++];
		*p = *what;
		p->first = w;
		p->kind = kind;
	}
	p->waves++;
}

/* In a loop that polls it is told by that, or is about to leave it. */
static bool may_be_told(struct look *l, struct alone *a, const struct wave *w)
{
	if (!l->sites[w->site].is_searched && a->searches++ >= SEARCHES_MAX) {
		look_missing(l, "waves that sleep: those at more than 256 places, which may be in loops that poll");
		return false;
	}
	return !look_polls(l, w);
}

static void look_at_wave(struct look *l, struct alone *a, const struct wave *w)
{
	struct place_alone what = { 0 };

	if (w->state != RPC_WAVE_STATE_RUNNING || l->of_wave[w - l->seen->waves.waves] != LOOK_NONE)
		return;
	if (amd_sleeps(l, w, &what)) {
		if (may_be_told(l, a, w))
			add(l, a, w, RPC_WAIT_KIND_SLEEP, &what);
		return;
	}
	/* What is saved of a wave does not say whether loads and stores are under way: only time does. */
	what.instruction = look_memory_wait(l, w);
	if (what.instruction && look_is_still(l, w) && l->apart_ns >= LOOK_STILL_NS)
		add(l, a, w, RPC_WAIT_KIND_MEMORY, &what);
}

static void look_at_warp(struct look *l, struct alone *a, const struct wave *warp)
{
	const uint32_t n = wave_n_parts(warp);

	for (uint32_t i = 0; i < (n ? n : 1); i++) {
		const struct wave *w = n ? &warp->parts->list[i] : warp;
		struct place_alone what = { 0 };

		if (w->state == RPC_WAVE_STATE_RUNNING && warp_sleeps(l, w, warp, &what))
			add(l, a, w, RPC_WAIT_KIND_SLEEP, &what);
	}
}

/* ------------------------------------------------------------------ in words ----------------- */

static const char *who_text(struct look *l, const struct place_alone *p)
{
	const bool is_nvidia = look_is_nvidia(l);

	if (p->waves == 1 || p->kind == RPC_WAIT_KIND_MEMORY)
		return look_wave_text(l, p->first);
	return rpc_arena_printf(l->arena, "%s%u %s of %s", p->first->is_part ? "lanes of " : "", p->waves,
				is_nvidia ? "warps" : "waves", look_kernel(l, p->first));
}

static const char *does_text(const struct place_alone *p, const char *who)
{
	const bool is_one = p->waves == 1 && strcmp(look_verb(who), "wait");

	if (p->kind == RPC_WAIT_KIND_MEMORY)
		return "waits for its own loads and stores";
	return is_one ? "sleeps" : "sleep";
}

static uint64_t name_of(const struct place_alone *p)
{
	const struct wave *w = p->first;
	const uint64_t words[] = { w->gpu_id, w->queue_id, w->has_dispatch ? w->dispatch + 1 : 0, w->pc, p->kind, 5 };

	return hash_bytes(hash_secret(), words, sizeof(words));
}

static void tell(struct look *l, const struct place_alone *p, struct rpc_wait *to)
{
	/* There is none where memory ends, which is told by the arena. */
	const char *text = who_text(l, p), *who = text ? text : "";

	*to = (struct rpc_wait){ .kind = p->kind, .confidence = RPC_CONFIDENCE_INFERRED, .who = who,
				 .waves = p->kind == RPC_WAIT_KIND_MEMORY ? 1 : p->waves };
	to->id = rpc_arena_printf(l->arena, "w%016llx", (unsigned long long)name_of(p));
	look_tell_wave(l, to, p->first);
	/* Many are in many workgroups. */
	if (to->waves > 1)
		to->n_workgroup = 0;
	to->at.instruction = p->instruction;
	to->text = rpc_arena_printf(l->arena, "%s, at %s, %s (%s)", who, look_place(l, &to->at), does_text(p, who),
				    p->instruction);
	look_add_evidence(l, to, p->instruction,
			  rpc_arena_printf(l->arena, "0x%llx",
					   (unsigned long long)p->first->pc - (p->is_behind ? 4 : 0)));
	if (p->kind != RPC_WAIT_KIND_MEMORY)
		return;
	look_add_evidence(l, to, "registers", "the same in both samples");
	look_add_evidence(l, to, "waves at this place, of which this is one",
			  rpc_arena_printf(l->arena, "%u", look_count_at(l, p->first)));
}

void look_at_alone(struct look *l, struct rpc_why_get_result *ret)
{
	const struct target_waves *t = &l->seen->waves;
	struct alone a = { 0 };

	for (size_t i = 0; i < t->n_waves; i++) {
		/* Who executes a collective operation waits for its other ranks, whether these are known or not. */
		if (l->is_collective[i])
			continue;
		if (look_is_nvidia(l))
			look_at_warp(l, &a, &t->waves[i]);
		else
			look_at_wave(l, &a, &t->waves[i]);
	}
	ret->alone = rpc_arena_array(l->arena, a.n, sizeof(*ret->alone));
	for (uint32_t i = 0; ret->alone && i < a.n; i++)
		tell(l, &a.list[i], &ret->alone[ret->n_alone++]);
	ret->has_alone = ret->n_alone > 0;
}
