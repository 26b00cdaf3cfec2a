/* SPDX-License-Identifier: MIT */
/* Waves that poll memory.  Only of one wave at each place the registers are known, and thus the word. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/snapshot/hash.h"
#include "agentd/worker/wait/polls.h"
#include "base/out.h"

/* Most words of one wave that are read: with 64 places that is all that is read of memory. */
#define WORDS_MAX 8u
#define LANES	  64u

/* What the lanes of a wave poll: one word each. */
struct words {
	struct polled_any list[WORDS_MAX];
	size_t n;
	uint32_t others; /* Lanes that poll more words. */
};

/* ------------------------------------------------------------------ registers ---------------- */

/* Registers are told in their order, from the first on. */
static bool read_register(void *ctx, bool is_vector, unsigned int reg, unsigned int lane, uint32_t *ret)
{
	const struct rpc_wave_registers *r = ctx;

	if (is_vector) {
		if (reg >= r->n_vector || lane >= r->vector[reg].n_lanes)
			return false;
		*ret = (uint32_t)r->vector[reg].lanes[lane];
		return true;
	}
	if (reg >= r->n_scalar || r->scalar[reg].name[0] != 's' ||
	    strtoul(r->scalar[reg].name + 1, NULL, 10) != reg)
		return false;
	*ret = (uint32_t)r->scalar[reg].value;
	return true;
}

static void read_value(struct look *l, struct polled *p)
{
	uint64_t eight = 0;
	uint32_t four = 0;

	if (p->word.bytes == 8) {
		p->is_known = look_read(l, p->word.address, &eight, 8);
		p->value = le64toh(eight);
	} else {
		p->is_known = look_read(l, p->word.address, &four, 4);
		p->value = le32toh(four);
	}
}

/* Do lanes wait for the same?  What they compare with, and of which bits, is in registers of each lane. */
static bool is_same(const struct waits_word *a, const struct waits_word *b)
{
	return a->address == b->address && a->with == b->with && a->mask == b->mask && a->op == b->op;
}

static struct polled_any *find_word(struct words *w, const struct waits_word *word)
{
	for (size_t i = 0; i < w->n; i++)
		if (is_same(&w->list[i].list[0].word, word))
			return &w->list[i];
	return NULL;
}

/* @return false: a register is not known, or lanes poll different words and the loop does not tell them apart. */
static bool find_words(struct look *l, const struct rpc_wave_registers *r, const struct wave *w,
		       const struct waits_poll *p, struct words *ret)
{
	for (unsigned int lane = 0; lane < LANES; lane++) {
		struct waits_word word;
		struct polled_any *known;

		if (!(w->exec >> lane & 1))
			continue;
		if (waits_poll_word(p, read_register, (void *)r, lane, &word) < 0)
			return false;
		known = find_word(ret, &word);
		if (known) {
			known->lanes++;
		} else if (ret->n < WORDS_MAX) {
			ret->list[ret->n] = (struct polled_any){ .list = { { .word = word } }, .n = 1, .lanes = 1 };
			read_value(l, &ret->list[ret->n++].list[0]);
		} else {
			ret->others++;
		}
	}
	return ret->n && (p->each_lane || ret->n == 1);
}

/* ------------------------------------------------------------------ in words ----------------- */

static const char *const conditions[WAITS_COMPARE_COUNT] = {
	[WAITS_COMPARE_LT] = "is less than", [WAITS_COMPARE_EQ] = "is",	      [WAITS_COMPARE_LE] = "is at most",
	[WAITS_COMPARE_GT] = "is more than", [WAITS_COMPARE_NE] = "is not",   [WAITS_COMPARE_GE] = "is at least",
};

static bool has_mask(const struct waits_word *w)
{
	return w->mask != UINT64_MAX >> (64 - 8 * w->bytes);
}

static const char *word_text(struct look *l, const struct polled *p)
{
	const char *value = p->is_known ? rpc_arena_printf(l->arena, "0x%llx", (unsigned long long)p->value) :
					  "not readable";

	return rpc_arena_printf(l->arena, "the word at %s0x%llx (value %s)", p->is_shared ? "shared " : "",
				(unsigned long long)p->word.address, value ? value : "?");
}

static const char *until_text(struct look *l, const struct waits_word *w)
{
	const char *mask = has_mask(w) ? rpc_arena_printf(l->arena, ", of bits 0x%llx,", (unsigned long long)w->mask) : "";

	return rpc_arena_printf(l->arena, "until it%s %s 0x%llx", mask ? mask : "", conditions[w->op],
				(unsigned long long)w->with);
}

static const char *who_text(struct look *l, const struct wave *w, const struct rpc_wait_at *at,
			    const struct poll_loop *loop, const struct polled_any *p)
{
	const char *who = look_wave_text(l, w);
	const char *does = loop->is_lock ? "tries to take the lock in" : "polls";
	auto_out struct out o = { 0 };

	/* Of several lanes, other than of one wave. */
	if (!strcmp(look_verb(who), "wait"))
		does = loop->is_lock ? "try to take the lock in" : "poll";
	out_fmt(&o, "%s, at %s, %s", who, look_place(l, at), does);
	for (uint32_t i = 0; i < p->n; i++)
		out_fmt(&o, "%s %s %s", i ? ", or" : "", word_text(l, &p->list[i]), until_text(l, &p->list[i].word));
	out_str(&o, loop->more);
	return rpc_arena_strdup(l->arena, o.data ? o.data : "");
}

/* ------------------------------------------------------------------ one wait ----------------- */

bool polls_end(const struct polled_any *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (waits_word_always_holds(&p->list[i].word) ||
		    (p->list[i].is_known && waits_word_holds(&p->list[i].word, p->list[i].value)))
			return true;
	return false;
}

/* The same for each wave that polls these words from this loop: which of them is looked at changes. */
static uint64_t name_of(const struct wave *w, uint64_t loop, const struct polled_any *p)
{
	const uint64_t words[] = { w->gpu_id, w->queue_id, w->has_dispatch ? w->dispatch + 1 : 0, loop, 2 };
	uint64_t h = hash_bytes(hash_secret(), words, sizeof(words));

	for (uint32_t i = 0; i < p->n; i++)
		h = hash_mix(hash_mix(h ^ p->list[i].word.address) ^ p->list[i].word.with);
	return h;
}

static uint64_t state_of(const struct polled_any *p)
{
	uint64_t h = p->list[0].value;

	for (uint32_t i = 1; i < p->n; i++)
		h = hash_mix(h) ^ p->list[i].value;
	return h;
}

static struct rpc_wait_object object_of(const struct waits_word *word, bool is_known, uint64_t value)
{
	return (struct rpc_wait_object){ .address = word->address, .bytes = word->bytes, .has_value = is_known,
					 .value = value };
}

static struct rpc_wait_condition condition_of(const struct waits_word *word)
{
	return (struct rpc_wait_condition){ .op = waits_compare_name(word->op), .value = word->with,
					    .has_mask = has_mask(word), .mask = word->mask,
					    .has_is_signed = word->is_signed, .is_signed = true };
}

void look_tell_word(struct rpc_wait *to, const struct waits_word *word, bool is_known, uint64_t value)
{
	to->has_object = to->has_condition = true;
	to->object = object_of(word, is_known, value);
	to->condition = condition_of(word);
}

static void tell_words(struct look *l, struct rpc_wait *to, const struct polled_any *p)
{
	look_tell_word(to, &p->list[0].word, p->list[0].is_known, p->list[0].value);
	if (p->n == 1)
		return;
	to->alternatives = rpc_arena_array(l->arena, p->n - 1, sizeof(*to->alternatives));
	to->has_alternatives = to->alternatives != NULL;
	for (uint32_t i = 1; to->alternatives && i < p->n; i++) {
		const struct polled *other = &p->list[i];

		to->alternatives[to->n_alternatives++] = (struct rpc_wait_alternative){
			.object = object_of(&other->word, other->is_known, other->value),
			.condition = condition_of(&other->word),
		};
	}
}

static const char *shared_text(struct look *l, const struct polled *p)
{
	return rpc_arena_printf(l->arena, "shared, of the word at 0x%llx", (unsigned long long)p->word.address);
}

/*
 * Has the wave gone round the loop since the sample before?  That it is at the same place does not say that it has not.
 * @param name  Of the wait: of this loop and these words.
 * @return NULL: it is not known to be the same wave, or that one was not looked at.
 */
static const char *round_text(struct look *l, const struct wave *whole, uint64_t pc, uint64_t name)
{
	uint64_t wave;
	bool is_known = look_wave_name(whole, &wave), is_same;

	if (!is_known)
		return NULL;
	wave = hash_mix(wave ^ name);
	is_same = look_is_same(l, wave, pc);
	if (!l->before || !past_knows(l->before, wave))
		return NULL;
	return is_same ? "at the same place of the loop" : "elsewhere in the loop";
}

static bool is_known(const struct polled_any *p)
{
	bool all = true;

	for (uint32_t i = 0; i < p->n; i++)
		all &= p->list[i].is_known;
	return all;
}

/*
 * Did these lanes try to take the same lock in the sample before, and has its word changed since?  Then others got it,
 * and these did not; or they did, and have come again, which is not seen.  What is read of a word that others count on
 * towards what is waited for, says nothing of the kind.
 */
static bool may_starve(struct look *l, const struct wave *w, const struct wave *whole, uint64_t name,
		       const struct polled_any *p)
{
	uint64_t lanes;
	bool is_wave = look_wave_name(whole, &lanes), was_there, was_known;

	lanes = hash_mix(hash_mix(lanes ^ name) + 1);
	was_there = look_is_same(l, lanes, w->exec) && is_wave;
	was_known = look_is_same(l, hash_mix(name + 1), is_known(p));
	return was_there && was_known && is_known(p) && l->apart_ns >= LOOK_STILL_NS &&
	       past_knows(l->before, name) && !past_has(l->before, name, state_of(p));
}

static void add_evidence(struct look *l, struct rpc_wait *to, const struct poll_loop *loop, const struct polled_any *p)
{
	look_add_evidence(l, to, "loop",
			  rpc_arena_printf(l->arena, "0x%llx to 0x%llx", (unsigned long long)loop->begin,
					   (unsigned long long)loop->end));
	look_add_evidence(l, to, "size of the loop",
			  rpc_arena_printf(l->arena, "%llu bytes", (unsigned long long)(loop->end - loop->begin)));
	for (uint32_t i = 0; i < p->n; i++) {
		look_add_evidence(l, to, loop->is_lock ? "compare and swap" : "load",
				  rpc_arena_printf(l->arena, "0x%llx", (unsigned long long)p->list[i].load));
		if (p->list[i].is_shared)
			look_add_evidence(l, to, "memory", p->n > 1 ? shared_text(l, &p->list[i]) : "shared");
	}
	look_add_evidence(l, to, "lanes", rpc_arena_printf(l->arena, "%u", p->lanes));
	if (loop->sleeps)
		look_add_evidence(l, to, "the loop", "sleeps");
	if (loop->here > 1)
		look_add_evidence(l, to,
				  look_is_nvidia(l) ? "warps in this loop, of which this is one" :
						      "waves at this place, of which this is one",
				  rpc_arena_printf(l->arena, "%u", loop->here));
	look_add_evidence(l, to, "value", loop->read);
}

/* A word: who writes it is not known, and who may be late accuses nobody. */
static void add_word(struct look *l, size_t wait, const struct polled *p, bool any)
{
	struct rpc_wait *to = &l->waits[wait].rpc;
	uint32_t node = look_add_node(l, RPC_WAIT_NODE_KIND_WORD, WAITS_END_UNKNOWN,
				      rpc_arena_printf(l->arena, "whoever writes %s", word_text(l, p)));

	if (node == LOOK_NONE)
		return;
	l->nodes[node].may_come = true;
	l->nodes[node].word = p->is_shared ? 0 : p->word.address;
	look_add_edge(l, l->waits[wait].node, node, WAITS_INFERRED, any);
	if (to->missing)
		to->missing[to->n_missing++] = (struct rpc_wait_party){ .what = l->nodes[node].rpc.text,
									.state = RPC_WAIT_END_UNKNOWN };
}

/* Is it another word than those before?  A loop may compare one with several values. */
static bool is_other_word(const struct polled_any *p, uint32_t at)
{
	const struct polled *q = &p->list[at];

	for (uint32_t i = 0; i < at; i++)
		if (p->list[i].word.address == q->word.address && p->list[i].is_shared == q->is_shared)
			return false;
	return true;
}

/* Of several, one is enough. */
static void add_words(struct look *l, size_t wait, const struct polled_any *p)
{
	struct rpc_wait *to = &l->waits[wait].rpc;
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n; i++)
		n += is_other_word(p, i);
	to->missing = rpc_arena_array(l->arena, n, sizeof(*to->missing));
	to->missing_count = 1;
	to->has_candidates = to->candidates = n > 1;
	for (uint32_t i = 0; i < p->n; i++)
		if (is_other_word(p, i))
			add_word(l, wait, &p->list[i], n > 1);
}

void polls_add(struct look *l, const struct wave *w, const struct wave *whole, const struct poll_loop *loop,
	       const struct polled_any *p)
{
	struct rpc_wait_at at = look_at(l, w);
	uint64_t name = name_of(whole, loop->begin, p);
	bool is_new = l->before && !past_knows(l->before, name);
	const bool starves = loop->is_lock && may_starve(l, w, whole, name, p);
	size_t wait = l->n_waits;
	struct look_wait *added = look_add_wait(l, loop->is_lock ? RPC_WAIT_KIND_LOCK : RPC_WAIT_KIND_SPIN,
						RPC_WAIT_NODE_KIND_WAVE, who_text(l, w, &at, loop, p), name,
						state_of(p));

	if (!added)
		return;
	/* Another wave of the loop may be the one that is looked at by now. */
	added->changed = added->changed && !is_new;
	added->rpc.confidence = is_known(p) ? RPC_CONFIDENCE_INFERRED : RPC_CONFIDENCE_UNKNOWN;
	added->rpc.waves = 1;
	added->rpc.alike = 1;
	look_note(l, whole, wait);
	l->nodes[added->node].wave = w;
	l->nodes[added->node].node.end = WAITS_END_RUNS;
	look_tell_wave(l, &added->rpc, w);
	tell_words(l, &added->rpc, p);
	add_evidence(l, &l->waits[wait].rpc, loop, p);
	look_add_evidence(l, &l->waits[wait].rpc, "in the sample before", round_text(l, whole, w->pc, name));
	if (starves)
		look_add_evidence(l, &l->waits[wait].rpc, LOOK_STARVING,
				  "waited in both samples, or got it and has come again; the word has changed");
	add_words(l, wait, p);
}

/* ------------------------------------------------------------------ AMD's -------------------- */

static void add_poll(struct look *l, const struct wave *w, const struct look_code *c, const struct words *words,
		     struct polled_any *first, uint32_t here)
{
	struct poll_loop loop = { .begin = c->loop, .end = c->loop + c->poll.end - c->poll.begin,
				  .is_lock = c->poll.is_lock,
				  .sleeps = c->poll.sleeps, .here = here, .read = "read when the queues ran again",
				  .more = "" };
	const char *more = words->n == 1 ? NULL :
					   rpc_arena_printf(l->arena, ", and %s%zu more word%s of other lanes",
							    words->others ? "at least " : "", words->n - 1,
							    words->n == 2 ? "" : "s");

	if (more)
		loop.more = more;
	first->list[0].load = c->loop + c->poll.load - c->poll.begin;
	polls_add(l, w, w, &loop, first);
}

/* @return the first word that is not yet as it should be; NULL: the loop ends. */
static struct polled_any *first_open(struct words *words)
{
	for (size_t i = 0; i < words->n; i++)
		if (!polls_end(&words->list[i]))
			return &words->list[i];
	return NULL;
}

/* ------------------------------------------------------------------ all of them -------------- */

/* The code around a place; what is not known ends it. */
static void find_loop(struct look *l, const struct wave *w, struct look_code *c)
{
	uint8_t code[2 * WAITS_POLL_REACH + 16];
	size_t before = 0, size;

	c->is_searched = true;
	while (before < WAITS_POLL_REACH &&
	       code_bytes(&l->code, w->pc - before - 4, code + WAITS_POLL_REACH - before - 4, 4) == 0)
		before += 4;
	for (size = WAITS_POLL_REACH; size + 4 <= sizeof(code); size += 4)
		if (code_bytes(&l->code, w->pc + (size - WAITS_POLL_REACH), code + size, 4) < 0)
			break;
	c->polls = waits_poll_find(look_family(l, w), code + WAITS_POLL_REACH - before,
				   size - WAITS_POLL_REACH + before, before, &c->poll) == 0;
	c->loop = w->pc - before + c->poll.begin;
}

bool look_polls(struct look *l, const struct wave *w)
{
	struct look_code *c = &l->sites[w->site];

	if (!c->is_searched)
		find_loop(l, w, c);
	return c->polls;
}

static const struct wave *wave_of(const struct look *l, const struct rpc_wave_registers *r)
{
	const struct target_waves *t = &l->seen->waves;

	for (size_t i = 0; i < t->n_waves; i++) {
		const struct wave *w = &t->waves[i];

		if (w->queue_id == r->wave.ref.queue_id && w->unit == r->wave.ref.unit &&
		    w->index == r->wave.ref.index && w->pc == r->wave.pc)
			return w;
	}
	return NULL;
}

uint32_t look_count_at(const struct look *l, const struct wave *w)
{
	const struct target_waves *t = &l->seen->waves;
	uint32_t n = 0;

	for (size_t i = 0; i < t->n_waves; i++)
		n += t->waves[i].site == w->site && t->waves[i].queue_id == w->queue_id &&
		     t->waves[i].dispatch == w->dispatch && t->waves[i].state == RPC_WAVE_STATE_RUNNING;
	return n;
}

static void look_at_one(struct look *l, const struct rpc_wave_registers *r)
{
	const struct wave *w = wave_of(l, r);
	struct words words = { 0 };
	struct polled_any *first;
	struct look_code *c;

	if (!w || w->state != RPC_WAVE_STATE_RUNNING || !w->exec)
		return;
	c = &l->sites[w->site];
	if (look_add_gws(l, r, w) || !look_polls(l, w) || !find_words(l, r, w, &c->poll, &words))
		return;
	first = first_open(&words);
	if (first && !look_add_grid(l, r, w, c, &first->list[0].word))
		add_poll(l, w, c, &words, first, look_count_at(l, w));
}

void look_at_polls(struct look *l)
{
	const struct target_waves *t = &l->seen->waves;

	for (size_t i = 0; i < t->n_registers; i++)
		look_at_one(l, &t->registers[i]);
}
