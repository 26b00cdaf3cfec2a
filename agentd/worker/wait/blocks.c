/* SPDX-License-Identifier: MIT */
/* Waves that wait at barriers of their workgroup or at that of their cluster, and those that have not come. */
#include <string.h>

#include "agentd/worker/snapshot/hash.h"
#include "agentd/worker/snapshot/wave_convert.h"
#include "agentd/worker/wait/look.h"
#include "agentd/worker/wait/wait.h"
#include "base/bit_list.h"
#include "base/out.h"

/* Loops of more bytes are not taken for ones that poll. */
#define LOOP_BYTES 32768u

/* One workgroup, as seen from one of the barriers at which its waves wait. */
struct block {
	const struct wave *waves;
	uint32_t n;
	uint32_t undecoded;
	struct waits_at_barrier all[LOOK_PARTIES_MAX]; /* Of each wave, as the next; meaningful unless DOES_UNKNOWN. */
	uint8_t does[LOOK_PARTIES_MAX];
	struct waits_block counts;
	uint32_t named; /* The number of the named barrier; 0: not known. */
	const struct wave *waiter; /* The first one. */
	struct waits_at_barrier at; /* What is known of that one. */
};

enum { DOES_WAIT, DOES_NOT, DOES_UNKNOWN };

/* The code at a place is read once, however many waves are there. */
static const struct look_code *code_at(struct look *l, const struct wave *w)
{
	struct look_code *c = &l->sites[w->site];

	if (c->known)
		return c;
	c->known = true;
	if (code_bytes(&l->code, w->pc - 4, c->bytes, 8) == 0)
		c->n = 8;
	else if (code_bytes(&l->code, w->pc, c->bytes + 4, 4) == 0)
		c->n = 4;
	return c;
}

static void look_at_wave(struct look *l, struct block *b, uint32_t i)
{
	const struct wave *w = &b->waves[i];
	struct waits_saved saved = { .status = w->saved.status, .state_priv = w->saved.state_priv,
				     .barrier = w->saved.barrier, .cluster = w->saved.cluster };
	const struct look_code *c;

	b->does[i] = DOES_NOT;
	/* A wave that stopped waits for nobody, wherever it is; it may stand behind its site, and others do not. */
	if (w->state != RPC_WAVE_STATE_RUNNING)
		return;
	c = code_at(l, w);
	saved.n_code = c->n;
	memcpy(saved.code, c->bytes, sizeof(saved.code));
	if (waits_at_barrier(look_family(l, w), &saved, &b->all[i]) == 0 && b->all[i].confidence == WAITS_UNKNOWN) {
		b->does[i] = DOES_UNKNOWN;
		b->undecoded++;
	}
}

/* The state of the barrier that a wave saved; those of named barriers are saved once for the workgroup. */
static uint32_t word_of(const struct block *b, uint32_t i)
{
	const struct wave_saved *s = &b->waves[i].saved;

	return b->counts.which == WAITS_BARRIER_CLUSTER ? s->cluster : s->barrier;
}

static void count_wave(struct block *b, uint32_t i)
{
	const struct waits_at_barrier *at = &b->all[i];

	b->counts.same_words &= word_of(b, i) == word_of(b, 0);
	if (b->does[i] == DOES_UNKNOWN)
		return;
	b->does[i] = at->waits && at->which == b->counts.which ? DOES_WAIT : DOES_NOT;
	if (b->does[i] != DOES_WAIT)
		return;
	if (!b->counts.waiting++) {
		b->waiter = &b->waves[i];
		b->at = *at;
	}
	b->counts.confidence = waits_weaker(b->counts.confidence, at->confidence);
}

static void find_state(struct block *b)
{
	const struct wave_saved *first = &b->waves->saved;

	switch (b->counts.which) {
	case WAITS_BARRIER_NAMED:
		b->counts.same_words = first->named && waits_named_find(first->named, &b->named, &b->counts.state) == 0;
		break;
	case WAITS_BARRIER_CLUSTER:
		b->counts.state = waits_barrier_state_read(first->cluster);
		break;
	default:
		b->counts.state = waits_barrier_state_read(first->barrier);
	}
}

/* Look at a workgroup from one barrier: who of it waits there, and what is saved of that barrier. */
static void count(struct look *l, struct block *b, enum waits_barrier which)
{
	b->counts = (struct waits_block){ .family = look_family(l, b->waves), .which = which, .seen = b->n,
					  .expects = b->waves->group_waves, .same_words = true };
	b->named = 0;
	b->waiter = NULL;
	for (uint32_t i = 0; i < b->n; i++)
		count_wave(b, i);
	find_state(b);
}

/* ------------------------------------------------------------------ names and states --------- */

static uint64_t name_of_block(const struct wave *w)
{
	const uint64_t words[] = { w->gpu_id, w->queue_id, w->has_dispatch ? w->dispatch + 1 : 0, w->workgroup[0],
				   w->workgroup[1], w->workgroup[2] };

	return hash_bytes(hash_secret(), words, sizeof(words));
}

static uint64_t name_of_wave(const struct wave *w)
{
	return hash_mix(name_of_block(w) + w->wave_in_group + 1);
}

bool look_wave_name(const struct wave *w, uint64_t *ret)
{
	*ret = name_of_wave(w);
	return w->has_workgroup && w->has_wave_in_group;
}

static uint64_t hash_scalars(uint64_t h, const struct rpc_scalar_register *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = hash_mix(h ^ list[i].value);
	return h;
}

static uint64_t hash_vectors(uint64_t h, const struct rpc_vector_register *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = hash_bytes(h, list[i].lanes, list[i].n_lanes * sizeof(*list[i].lanes));
	return h;
}

static const struct rpc_wave_registers *registers_of(const struct look *l, const struct wave *w)
{
	const struct target_waves *t = &l->seen->waves;

	for (size_t i = 0; i < t->n_registers; i++) {
		const struct rpc_wave_ref *ref = &t->registers[i].wave.ref;

		if (ref->queue_id == w->queue_id && ref->unit == w->unit && ref->index == w->index &&
		    t->registers[i].wave.pc == w->pc)
			return &t->registers[i];
	}
	return NULL;
}

/* All that a wave works with.  @return 0: it is not known. */
static uint64_t state_of(const struct look *l, const struct wave *w)
{
	const struct rpc_wave_registers *r = registers_of(l, w);
	uint64_t h = hash_secret();

	if (!r || r->n_missing || !w->has_workgroup || !w->has_wave_in_group)
		return 0;
	h = hash_mix(h ^ w->pc) ^ w->exec;
	h = hash_scalars(h, r->special, r->n_special);
	h = hash_scalars(h, r->scalar, r->n_scalar);
	h = hash_vectors(h, r->vector, r->n_vector);
	h = hash_vectors(h, r->accumulator, r->n_accumulator);
	return h ? h : 1;
}

/* ------------------------------------------------------------------ those who are missing ---- */

/*
 * Is the wave in a loop, or asleep?  Then it may poll, as idle waves of a persistent kernel do, and being the same
 * in two samples says nothing.  Words are looked at without knowing where instructions begin: some that are none may be
 * taken for a branch back, so that this answers yes too often, and never too seldom.
 * @return false with c->not_judged: there may be a loop that cannot be seen.
 */
static bool looks_like_a_loop(struct look *l, const struct wave *w, struct look_code *c)
{
	enum waits_family f = look_family(l, w);
	struct waits_instruction i;
	struct code_symbol kernel;
	uint8_t word[4];

	/* Who called this function may do so in a loop. */
	if (code_kernel_around(&l->code, w->pc, &kernel) < 0)
		return true;
	for (uint64_t pc = w->pc - 4; pc < w->pc + LOOP_BYTES; pc += 4) {
		if (code_bytes(&l->code, pc, word, sizeof(word)) < 0) {
			/* The end of the code is not an end of what is known, but that of all loops. */
			if (pc > w->pc)
				return false;
			if (pc == w->pc)
				return true;
			continue;
		}
		if (waits_instruction_read(f, word, sizeof(word), &i) < 0)
			return true;
		if (pc <= w->pc && i.op == WAITS_OP_SLEEP)
			return true;
		if (pc >= w->pc && waits_op_branches(i.op) && waits_branch_target(&i, pc) <= w->pc) {
			c->not_judged = NULL;
			return true;
		}
		if (pc >= w->pc && i.op == WAITS_OP_JUMP)
			c->not_judged = "runs, in code with a jump to where a register says, which is not analysed";
	}
	/* The kernel's own symbol is that of its descriptor. */
	if (code_function(&l->code, w->pc, &kernel) < 0 || !kernel.size ||
	    kernel.address + kernel.size > w->pc + LOOP_BYTES)
		c->not_judged = "runs, in more than 32 KiB of code, which is not analysed";
	return false;
}

/* Of a running wave; the code at a place is looked at once. */
static bool may_poll(struct look *l, const struct wave *w)
{
	struct look_code *c = &l->sites[w->site];

	if (!c->is_judged)
		c->may_poll = looks_like_a_loop(l, w, c) || c->not_judged;
	c->is_judged = true;
	return c->may_poll;
}

bool look_is_still(struct look *l, const struct wave *w)
{
	uint64_t state = state_of(l, w);

	return state && look_is_same(l, name_of_wave(w), state) && !may_poll(l, w) && !look_is_at_gws(l, w);
}

static enum waits_end end_of(struct look *l, const struct wave *w)
{
	if (w->state != RPC_WAVE_STATE_RUNNING)
		return WAITS_END_STOPPED;
	/* Whether its code has a loop is not known. */
	if (look_is_nvidia(l))
		return WAITS_END_RUNS;
	return look_is_still(l, w) ? WAITS_END_STILL : WAITS_END_RUNS;
}

static const char *reason_of(struct look *l, const struct wave *w)
{
	if (w->state == RPC_WAVE_STATE_HALTED)
		return "has halted itself";
	for (unsigned bit = 0; bit < WAVE_REASONS_COUNT; bit++)
		if (w->reasons >> bit & 1)
			return rpc_arena_printf(l->arena, "has stopped (%s)",
						rpc_stop_reason_name((enum rpc_stop_reason)bit));
	return "has stopped";
}

static const char *loop_text(const struct look *l, const struct wave *w)
{
	const struct look_code *c = &l->sites[w->site];

	return c->polls ? "polls a word of memory" : c->not_judged ? c->not_judged : "runs in a loop or sleeps";
}

static const char *still_text(struct look *l, const struct wave *w)
{
	const char *at = look_memory_wait(l, w);

	if (!at || l->apart_ns < LOOK_STILL_NS)
		return "is the same in both samples";
	return rpc_arena_printf(l->arena, "is the same in both samples, at %s: it waits for its own loads and stores",
				at);
}

static const char *state_text(struct look *l, const struct wave *w, enum waits_end end)
{
	switch (end) {
	case WAITS_END_STOPPED:
		return reason_of(l, w);
	case WAITS_END_STILL:
		return still_text(l, w);
	default:
		return !look_is_nvidia(l) && may_poll(l, w) ? loop_text(l, w) :
		       l->before ? "has moved, or may have, between both samples" : "runs";
	}
}

const char *look_workgroup_text(struct look *l, const struct wave *w)
{
	const char *word = look_is_nvidia(l) ? "block" : "workgroup";

	if (!w->has_workgroup)
		return rpc_arena_printf(l->arena, "a %s of %s", word, look_kernel(l, w));
	return rpc_arena_printf(l->arena, "%s (%u,%u,%u) of %s", word, w->workgroup[0], w->workgroup[1], w->workgroup[2],
				look_kernel(l, w));
}

/* "lanes 0-15,17 of " a part of a wave; "" of a whole one. */
static const char *lanes_text(struct look *l, const struct wave *w)
{
	auto_out struct out o = { 0 };

	if (!w->is_part)
		return "";
	out_str(&o, w->lanes == 1 ? "lane " : "lanes ");
	bit_list_print(w->exec, &o);
	out_str(&o, " of ");
	return rpc_arena_strdup(l->arena, o.data ? o.data : "");
}

const char *look_wave_text(struct look *l, const struct wave *w)
{
	const char *word = look_is_nvidia(l) ? "warp" : "wave", *lanes = lanes_text(l, w);

	if (!w->has_wave_in_group)
		return rpc_arena_printf(l->arena, "%sa %s of %s", lanes ? lanes : "", word, look_workgroup_text(l, w));
	return rpc_arena_printf(l->arena, "%s%s %u of %s", lanes ? lanes : "", word, w->wave_in_group,
				look_workgroup_text(l, w));
}

uint32_t look_add_wave(struct look *l, const struct wave *w, const struct rpc_wait_at *at)
{
	const uint32_t grid = look_grid_of(l, w);
	enum waits_end end;
	uint32_t node;

	if (grid != LOOK_NONE)
		return l->waits[grid].node;
	for (size_t i = 0; i < l->n_nodes; i++)
		if (l->nodes[i].wave == w)
			return (uint32_t)i;
	end = end_of(l, w);
	node = look_add_node(l, RPC_WAIT_NODE_KIND_WAVE, end,
			     rpc_arena_printf(l->arena, "%s, at %s, %s", look_wave_text(l, w), look_place(l, at),
					      state_text(l, w, end)));
	if (node != LOOK_NONE)
		l->nodes[node].wave = w;
	return node;
}

/* @return the wait of a wave that waits at another barrier than this one; WAIT_NONE: it does not. */
static uint32_t other_wait(const struct look *l, const struct block *b, uint32_t i)
{
	return b->does[i] == DOES_NOT && b->all[i].waits ? l->of_wave[&b->waves[i] - l->seen->waves.waves] : WAIT_NONE;
}

static const char *party_text(struct look *l, const struct wave *w, const struct rpc_wait_at *at, uint32_t node,
			      bool at_other)
{
	const char *what = look_grid_of(l, w) != LOOK_NONE ? "waits at a barrier of the grid" :
			   at_other			   ? "waits at another barrier" :
							     NULL;

	return what ? rpc_arena_printf(l->arena, "%s, at %s, %s", look_wave_text(l, w), look_place(l, at), what) :
		      l->nodes[node].rpc.text;
}

/* Add one who is missing, as a party and as a node. */
static void add_party(struct look *l, size_t wait, const struct block *b, uint32_t i, const struct waits_missing *m)
{
	const struct wave *w = &b->waves[i];
	const uint32_t other = other_wait(l, b, i);
	struct rpc_wait_at at = look_at(l, w);
	uint32_t node = other != WAIT_NONE ? l->waits[other].node : look_add_wave(l, w, &at);
	enum waits_end end;
	struct rpc_wait *to = &l->waits[wait].rpc;

	if (node == LOOK_NONE)
		return;
	end = l->nodes[node].node.end;
	l->no_registers |= end == WAITS_END_RUNS && l->before && !l->waits[wait].changed && !state_of(l, w);
	look_add_edge(l, l->waits[wait].node, node,
		      end == WAITS_END_STILL ? WAITS_INFERRED : m->confidence, m->candidates);
	to->missing[to->n_missing++] = (struct rpc_wait_party){
		.what = party_text(l, w, &at, node, other != WAIT_NONE),
		.has_ref = true,
		.ref = wave_ref((struct wave *)w),
		.state = (enum rpc_wait_end)end,
		.has_at = true,
		.at = at,
	};
}

/* Numbers of those of so many waves that are not there; 0: it is not known which these are. */
static uint64_t ended_numbers(const struct block *b)
{
	const uint32_t launched = b->waves->group_waves;
	uint64_t numbers = launched < 64 ? (UINT64_C(1) << launched) - 1 : UINT64_MAX;

	for (uint32_t i = 0; i < b->n; i++) {
		if (!b->waves[i].has_wave_in_group || b->waves[i].wave_in_group >= 64)
			return 0;
		numbers &= ~(UINT64_C(1) << b->waves[i].wave_in_group);
	}
	return launched > 64 ? 0 : numbers;
}

/* @param of  " of workgroup (0,0,0) of gemm", or "".  @return "waves 2-3, which have ended". */
static const char *ended_text(struct look *l, const struct block *b, uint32_t n, const char *of)
{
	/* What is saved of a workgroup may not fit together. */
	const uint64_t gone = ended_numbers(b), numbers = (uint32_t)__builtin_popcountll(gone) == n ? gone : 0;
	const char *has = n == 1 ? "has" : "have", *word = n == 1 ? "wave" : "waves";
	auto_out struct out o = { 0 };

	bit_list_print(numbers, &o);
	return numbers && o.data ? rpc_arena_printf(l->arena, "%s %s%s, which %s ended", word, o.data, of, has) :
				   rpc_arena_printf(l->arena, "%u %s%s, which %s ended", n, word, of, has);
}

/*
 * Waves that have ended have not left a named barrier: as one party, for which there is room, and as a node.  That they
 * do not come is certain, and that it is them who are missing is inferred: two samples show that nobody else comes.
 */
static void add_ended(struct look *l, size_t wait, const struct block *b, const struct waits_missing *m)
{
	struct rpc_wait *to = &l->waits[wait].rpc;
	/* Of a barrier that has just opened, those who wait are still counted as lacking: nobody has to come. */
	const bool is_counted = b->counts.state.signals >= b->counts.waiting;
	const bool is_old = l->before && l->apart_ns >= LOOK_STILL_NS && !l->waits[wait].changed;
	const char *group = look_workgroup_text(l, b->waves);
	const char *what = ended_text(l, b, m->ended, ""), *of = rpc_arena_printf(l->arena, " of %s", group ? group : "");
	uint32_t node;

	if (!what || !of)
		return;
	to->missing[to->n_missing++] = (struct rpc_wait_party){ .what = what, .state = RPC_WAIT_END_GONE };
	node = look_add_node(l, RPC_WAIT_NODE_KIND_NOBODY,
			     is_old && is_counted && m->ended == m->missing ? WAITS_END_GONE : WAITS_END_UNKNOWN,
			     ended_text(l, b, m->ended, of));
	look_add_edge(l, l->waits[wait].node, node, WAITS_INFERRED, m->candidates);
}

/* ------------------------------------------------------------------ one workgroup ------------ */

static const char *numbers_text(struct look *l, const struct block *b, uint8_t does)
{
	auto_out struct out text = { 0 };
	uint64_t numbers = 0;

	/* They have six bits. */
	for (uint32_t i = 0; i < b->n; i++)
		if (b->does[i] == does)
			numbers |= UINT64_C(1) << (b->waves[i].wave_in_group & 63);
	bit_list_print(numbers, &text);
	return rpc_arena_strdup(l->arena, text.data ? text.data : "");
}

/* Workgroups whose waves wait at one place for waves at the same places are told as one. */
static uint64_t shape_of(const struct block *b)
{
	const struct wave *w = b->waves;
	const uint64_t words[] = { w->gpu_id, w->queue_id, w->has_dispatch ? w->dispatch + 1 : 0, b->waiter->pc,
				   b->counts.expects, b->counts.waiting };
	uint64_t h = hash_bytes(hash_secret(), words, sizeof(words));

	if (b->counts.which != WAITS_BARRIER_BLOCK)
		h = hash_mix(h ^ ((uint64_t)b->counts.state.signals << 32 | b->counts.state.members << 8 | b->named));
	for (uint32_t i = 0; i < b->n; i++)
		if (b->does[i] != DOES_WAIT)
			h = hash_mix(h ^ (w[i].pc + w[i].wave_in_group)) ^ w[i].reasons ^ w[i].state;
	return h;
}

static uint64_t name_of_wait(const struct block *b)
{
	const uint64_t name = name_of_block(b->waves);

	return b->counts.which == WAITS_BARRIER_BLOCK ? name : hash_mix(name ^ b->counts.which);
}

/* Who of the workgroup waits, whichever number it has in its save area. */
static uint64_t waiters_of(const struct block *b)
{
	const uint32_t *named = b->waves->saved.named;
	uint64_t h = b->waiter->pc;

	/* Who comes to these barriers without waiting is seen by their counts alone. */
	if (b->counts.which != WAITS_BARRIER_BLOCK)
		h = hash_mix(h ^ ((uint64_t)b->counts.state.signals << 32 | b->counts.state.members));
	for (uint32_t i = 0; b->counts.which == WAITS_BARRIER_NAMED && named && i < WAITS_NAMED_BARRIERS; i++)
		h = hash_mix(h ^ named[i]);
	for (uint32_t i = 0; i < b->n; i++)
		h = hash_mix(h ^ ((uint64_t)b->waves[i].wave_in_group << 2 | b->does[i]));
	return h;
}

static const char *state_word_text(struct look *l, const struct block *b)
{
	const struct wave_saved *first = &b->waves->saved;

	switch (b->counts.which) {
	case WAITS_BARRIER_NAMED:
		if (!b->named)
			return first->named ? "not known: not one named barrier alone is incomplete" : "not read";
		return rpc_arena_printf(l->arena, "0x%x", first->named[b->named - 1]);
	case WAITS_BARRIER_CLUSTER:
		return rpc_arena_printf(l->arena, "0x%x", first->cluster);
	default:
		return rpc_arena_printf(l->arena, "0x%x", b->waiter->saved.barrier);
	}
}

static void add_evidence(struct look *l, struct rpc_wait *w, const struct block *b)
{
	const struct wave *first = b->waiter;

	if (b->counts.family < WAITS_GFX12)
		look_add_evidence(l, w, "STATUS of the first", rpc_arena_printf(l->arena, "0x%x", first->saved.status));
	else
		look_add_evidence(l, w, "barrier state", state_word_text(l, b));
	if (b->named)
		look_add_evidence(l, w, "barrier", rpc_arena_printf(l->arena, "%u", b->named));
	if (b->at.found)
		look_add_evidence(l, w, waits_op_name(b->at.op),
				  rpc_arena_printf(l->arena, "0x%llx", (unsigned long long)first->pc -
								(b->at.at_pc ? 0 : 4)));
	else
		look_add_evidence(l, w, "instruction", "not seen");
}

/*
 * How many have to come, and have: workgroups to the barrier of a cluster, else waves.  No workgroup's own barrier
 * waits for waves that have ended; of waves whose code is not known it is not known whether they have come to it.
 */
static void fill_counts(struct look *l, struct rpc_wait *to, const struct block *b)
{
	const struct waits_block *c = &b->counts;
	const bool by_word = c->which != WAITS_BARRIER_BLOCK;

	if (by_word && (!c->state.valid || !c->same_words))
		return;
	to->expects = by_word ? c->state.members : c->seen;
	to->has = by_word ? c->state.signals : c->seen - to->missing_count;
	to->has_has = by_word || (!b->undecoded && c->expects && (c->seen >= c->expects || look_has_all_waves(l)));
	to->has_expects = to->has_has && to->expects;
	if (to->has_expects)
		to->missing_count = to->expects > to->has ? to->expects - to->has : 0;
}

static void fill(struct look *l, size_t wait, const struct block *b)
{
	const struct wave *w = b->waiter;
	struct rpc_wait *to = &l->waits[wait].rpc;

	look_tell_wave(l, to, w);
	to->at.instruction = b->at.found ? waits_op_name(b->at.op) : NULL;
	fill_counts(l, to, b);
	add_evidence(l, to, b);
}

static void note_waiters(struct look *l, const struct block *b, size_t wait)
{
	for (uint32_t i = 0; i < b->n; i++)
		if (b->does[i] == DOES_WAIT)
			look_note(l, &b->waves[i], wait);
}

static const char *who_text(struct look *l, const struct block *b)
{
	const char *group = look_workgroup_text(l, b->waiter);

	if (!b->waiter->has_wave_in_group)
		return rpc_arena_printf(l->arena, "%u wave%s of %s", b->counts.waiting,
					b->counts.waiting == 1 ? "" : "s", group);
	return rpc_arena_printf(l->arena, "%s %s of %s", b->counts.waiting == 1 ? "wave" : "waves",
				numbers_text(l, b, DOES_WAIT), group);
}

/* Which workgroups a cluster has is not saved: who is missing at its barrier is not known. */
static bool find_missing(struct look *l, const struct block *b, struct waits_missing *ret)
{
	struct waits_block counts = b->counts;

	/* Who is not there may just not have been read. */
	if (!look_has_all_waves(l))
		counts.expects = 0;
	if (counts.which == WAITS_BARRIER_CLUSTER || waits_block_missing(&counts, ret) < 0)
		return false;
	if (b->undecoded)
		ret->confidence = waits_weaker(ret->confidence, WAITS_INFERRED);
	return true;
}

static void add_wait(struct look *l, const struct block *b, uint64_t shape)
{
	static const enum rpc_wait_kind kinds[WAITS_BARRIER_COUNT] = {
		[WAITS_BARRIER_BLOCK] = RPC_WAIT_KIND_BARRIER,
		[WAITS_BARRIER_NAMED] = RPC_WAIT_KIND_NAMED_BARRIER,
		[WAITS_BARRIER_CLUSTER] = RPC_WAIT_KIND_CLUSTER,
	};
	size_t wait = l->n_waits;
	struct look_wait *w = look_add_wait(l, kinds[b->counts.which], RPC_WAIT_NODE_KIND_WORKGROUP, who_text(l, b),
					    name_of_wait(b), waiters_of(b));
	struct waits_missing m = { .confidence = WAITS_UNKNOWN };

	if (!w)
		return;
	find_missing(l, b, &m);
	note_waiters(l, b, wait);
	w->first = b->waves;
	w->shape = shape;
	w->rpc.waves = b->counts.waiting;
	w->rpc.alike = 1;
	w->rpc.confidence = (enum rpc_confidence)m.confidence;
	w->rpc.missing_count = m.missing;
	w->rpc.has_candidates = w->rpc.candidates = m.candidates;
	w->rpc.missing = rpc_arena_array(l->arena, b->n - b->counts.waiting + 1, sizeof(*w->rpc.missing));
	fill(l, wait, b);
}

/* Add what waits at one barrier of a workgroup, or count it to a wait that is like it. */
static void add_block(struct look *l, const struct block *b)
{
	uint64_t shape = shape_of(b);

	for (size_t i = 0; i < l->n_waits; i++) {
		struct look_wait *w = &l->waits[i];

		if (w->shape != shape || !w->first)
			continue;
		note_waiters(l, b, i);
		w->rpc.waves += b->counts.waiting;
		w->rpc.alike++;
		/* One of them that has moved shows that all of them may. */
		w->changed |= !look_is_same(l, name_of_wait(b), waiters_of(b)) && l->before;
		return;
	}
	add_wait(l, b, shape);
}

/* Name who is missing, where this workgroup is the one that is told. */
static void add_parties(struct look *l, const struct block *b)
{
	const uint32_t wait = l->of_wave[b->waiter - l->seen->waves.waves];
	struct waits_missing m;

	if (wait == WAIT_NONE || l->waits[wait].first != b->waves || !l->waits[wait].rpc.missing ||
	    !find_missing(l, b, &m))
		return;
	for (uint32_t i = 0; i < b->n; i++)
		if (b->does[i] != DOES_WAIT)
			add_party(l, wait, b, i, &m);
	if (b->counts.which == WAITS_BARRIER_NAMED && m.ended)
		add_ended(l, wait, b, &m);
}

/* ------------------------------------------------------------------ all of them -------------- */

static void look_at_block(struct look *l, const struct wave *first, uint32_t n)
{
	const unsigned int n_barriers = look_family(l, first) < WAITS_GFX12_5 ? 1 : WAITS_BARRIER_COUNT;
	struct block b = { .waves = first, .n = n };

	if (n > LOOK_PARTIES_MAX) {
		look_undecoded(l, "their workgroup has more waves than are looked at", n);
		return;
	}
	if (look_family(l, first) == WAITS_FAMILY_COUNT) {
		look_undecoded(l, "the instructions of their device are not known", n);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		look_at_wave(l, &b, i);
	if (b.undecoded)
		look_undecoded(l, "their code could not be read", b.undecoded);
	/* Who is missing at one barrier may wait at another. */
	for (unsigned int pass = 0; pass < 2; pass++)
		for (unsigned int which = 0; which < n_barriers; which++) {
			count(l, &b, (enum waits_barrier)which);
			if (b.counts.waiting)
				(pass ? add_parties : add_block)(l, &b);
		}
}

void look_at_blocks(struct look *l)
{
	const struct target_waves *t = &l->seen->waves;

	for (size_t i = 0, end; i < t->n_waves; i = end) {
		end = i + 1;
		while (end < t->n_waves && t->waves[end].leader == t->waves[i].leader)
			end++;
		look_at_block(l, &t->waves[i], (uint32_t)(end - i));
	}
}
