/* SPDX-License-Identifier: MIT */
#include "waits/sass_poll.h"

#include <errno.h>
#include <string.h>

#include "waits/sass_round.h"

#define MEANING WAITS_SASS_MEANING
/* Of BRA: all of its second word, where it leads back.  The sign of the distance is in the lowest 18 bits. */
#define BRANCHES 0x0383ffffu
#define SIGN	 0x0003ffffu
/* Likewise of EXIT, whose first word has nothing but its kind and a predicate. */
#define EXITS 0x03800000u

/* ------------------------------------------------------------------ branches ----------------- */

enum branch {
	BRANCH_OTHER,
	BRANCH_EACH, /* Each lane for itself. */
	BRANCH_ALL,  /* BRA.U: the lanes of a warp together. */
};

/* @param ret_to  Gets where it leads. */
static enum branch read_branch(struct waits_sass_word w, enum waits_sass_age age, size_t at, int64_t *ret_to)
{
	const bool is_all = age < WAITS_SASS_SM_80 && waits_sass_bits(w.low, 32, 2) == 1;
	const uint64_t fixed = age < WAITS_SASS_SM_90 ? waits_sass_bits(w.low, 16, 16 + (is_all ? 0 : 2)) :
							waits_sass_bits(w.low, 24, 10);

	*ret_to = (int64_t)at + WAITS_SASS_BYTES + waits_sass_distance(w, age);
	if (waits_sass_form(w) != WAITS_SASS_BRANCH || fixed || *ret_to % WAITS_SASS_BYTES ||
	    (w.high & MEANING) != (*ret_to > (int64_t)at ? BRANCHES & ~SIGN : BRANCHES))
		return BRANCH_OTHER;
	return is_all ? BRANCH_ALL : BRANCH_EACH;
}

static unsigned int predicate_of(struct waits_sass_word w)
{
	return (unsigned int)waits_sass_bits(w.low, 12, 3);
}

static bool is_negated(struct waits_sass_word w)
{
	return waits_sass_bits(w.low, 15, 1);
}

/* @return how a branch leads back, by less than WAITS_SASS_POLL_REACH; BRANCH_OTHER: it does not. */
static enum branch leads_back(struct waits_sass_word w, enum waits_sass_age age, size_t at, uint32_t *ret_begin)
{
	int64_t to;
	const enum branch b = read_branch(w, age, at, &to);

	if (b == BRANCH_OTHER || predicate_of(w) == WAITS_SASS_TRUE || to < 0 || to >= (int64_t)at ||
	    (int64_t)at + WAITS_SASS_BYTES - to > WAITS_SASS_POLL_REACH)
		return BRANCH_OTHER;
	*ret_begin = (uint32_t)to;
	return b;
}

/* ------------------------------------------------------------------ votes -------------------- */

/* VOTE.ANY or VOTEU.ANY of all lanes that are active. */
static bool is_vote(struct waits_sass_word w, bool is_uniform)
{
	const unsigned int form = is_uniform ? WAITS_SASS_VOTEU : WAITS_SASS_VOTE;

	return (w.low & ~(UINT64_C(0xff) << 16)) == (form | 7u << 12) && (w.high & MEANING) == 0x038e0100;
}

static uint32_t written_by(struct waits_sass_word w)
{
	return (uint32_t)waits_sass_bits(w.low, 16, 8);
}

/*
 * Before sm_80, lanes that go on meet at the end of a loop: they vote twice, and go back together when the same ones
 * have voted, or else vote again.
 * @param at      Where that begins.
 * @param branch  The branch back.
 */
static bool is_meeting(const uint8_t *code, size_t size, enum waits_sass_age age, size_t at, size_t branch)
{
	const size_t first = at;
	struct waits_sass_word one, two, w = waits_sass_word_at(code, at);
	bool is_uniform;
	int64_t to;

	/* sm_70 has instructions that no lane executes in between, and has no uniform registers. */
	if (w.low == 0x000000fffffff389 && (w.high & MEANING) == 0xe00ff)
		at += WAITS_SASS_BYTES;
	one = waits_sass_word_at(code, at);
	if (waits_sass_form(waits_sass_word_at(code, at + WAITS_SASS_BYTES)) != WAITS_SASS_YIELD)
		return false;
	at += 2 * WAITS_SASS_BYTES;
	w = waits_sass_word_at(code, at);
	if (w.low == 0x00000000fffffb82 && (w.high & MEANING) == 0x800)
		at += WAITS_SASS_BYTES;
	two = waits_sass_word_at(code, at);
	is_uniform = waits_sass_form(two) == WAITS_SASS_VOTEU;
	if (!is_vote(one, false) || !is_vote(two, is_uniform) || at + 2 * WAITS_SASS_BYTES != branch ||
	    size - branch < 2 * WAITS_SASS_BYTES)
		return false;
	/* LOP3 P, RZ, one, two, RZ, 0xc: those of the second vote that are not in the first. */
	at += WAITS_SASS_BYTES;
	w = waits_sass_word_at(code, at);
	if (w.low != ((is_uniform ? 0x00ff7c12u : 0x00ff7212u) | (uint64_t)written_by(one) << 24 |
		      (uint64_t)written_by(two) << 32) ||
	    (w.high & MEANING & ~UINT64_C(0xe0000)) != (0x07800cffu | (is_uniform ? 0x08000000u : 0)))
		return false;
	at = branch + WAITS_SASS_BYTES;
	if (predicate_of(waits_sass_word_at(code, branch)) != waits_sass_bits(w.high, 17, 3) ||
	    !is_negated(waits_sass_word_at(code, branch)))
		return false;
	w = waits_sass_word_at(code, at);
	return read_branch(w, age, at, &to) == BRANCH_EACH && waits_sass_is_always(w) && to == (int64_t)first;
}

/* ------------------------------------------------------------------ the loop ----------------- */

struct loop {
	const uint8_t *code;
	size_t size, branch;
	bool is_together; /* Lanes that go on meet, and go back together. */
};

/*
 * Where lanes leave that have seen what they wait for, while the others go on.
 * @return whether all that is left is how those meet.
 */
static bool is_left_at(const struct loop *l, const struct waits_sass_round *r, struct waits_sass_word w, size_t at)
{
	const size_t next = at + WAITS_SASS_BYTES;
	int64_t to;

	/* Both kinds of meeting have 4 instructions at least in front of the branch. */
	return l->is_together && r->is_done && l->branch >= next + 4 * WAITS_SASS_BYTES &&
	       read_branch(w, r->age, at, &to) == BRANCH_EACH && predicate_of(w) == r->predicate &&
	       to >= (int64_t)r->poll->end && is_meeting(l->code, l->size, r->age, next, l->branch);
}

/* Do lanes leave the loop where one word was as it should be, while the others go on to compare another one? */
static bool is_left_early(const struct loop *l, const struct waits_sass_round *r, struct waits_sass_word w, size_t at)
{
	int64_t to;

	if (!r->is_done || predicate_of(w) != r->predicate)
		return false;
	if (waits_sass_form(w) == WAITS_SASS_EXIT)
		return !(w.low >> 16) && (w.high & MEANING) == EXITS;
	return read_branch(w, r->age, at, &to) == BRANCH_EACH && to >= (int64_t)r->poll->end && to < (int64_t)l->size;
}

/* A word is known. @param ends  Whether the loop ends where its compare is true. */
static void end_word(struct waits_sass_polls *p, bool ends)
{
	struct waits_sass_poll *last = &p->any[p->n++];

	if (!ends)
		last->op = waits_compare_negated(last->op);
}

/* @return false: there are too many words. */
static bool begin_word(struct waits_sass_round *r, struct waits_sass_polls *p)
{
	if (p->n == WAITS_SASS_WORDS)
		return false;
	p->any[p->n] = (struct waits_sass_poll){ .begin = p->any[0].begin, .end = p->any[0].end };
	waits_sass_round_next(r, &p->any[p->n]);
	return true;
}

/* Follow the instructions from where the loop begins to the branch.  @param p  With that, and where it ends, alone. */
static bool is_poll(const struct loop *l, enum waits_sass_age age, struct waits_sass_polls *p)
{
	struct waits_sass_word w = waits_sass_word_at(l->code, l->branch);
	struct waits_sass_round r = { .age = age, .poll = &p->any[0] };
	bool is_left = false;

	waits_sass_round_begin(&r, l->code, r.poll->begin, l->branch);
	for (uint32_t at = r.poll->begin; at < l->branch && !is_left; at += WAITS_SASS_BYTES) {
		const struct waits_sass_word here = waits_sass_word_at(l->code, at);

		is_left = is_left_at(l, &r, here, at);
		if (is_left) {
			w = here;
		} else if (is_left_early(l, &r, here, at)) {
			end_word(p, !is_negated(here));
			if (!begin_word(&r, p))
				return false;
		} else if (!waits_sass_round_follow(&r, here, at)) {
			return false;
		}
	}
	if (!r.is_done || predicate_of(w) != r.predicate || is_left != l->is_together)
		return false;
	/* It goes on for as long as the branch back is taken, or that out of it is not. */
	end_word(p, is_negated(w) != is_left);
	for (uint8_t i = 0; i < p->n; i++)
		p->any[i].sleeps = r.sleeps;
	return true;
}

int waits_sass_poll_find(const char *arch, const void *code, size_t size, size_t *at, struct waits_sass_polls *ret)
{
	const enum waits_sass_age age = waits_sass_age_of(arch);

	if (age >= WAITS_SASS_AGE_COUNT)
		return -ENOTSUP;
	for (; *at <= size && size - *at >= WAITS_SASS_BYTES && *at <= UINT32_MAX - 2 * WAITS_SASS_BYTES;
	     *at += WAITS_SASS_BYTES) {
		struct waits_sass_poll first = { .end = (uint32_t)*at + WAITS_SASS_BYTES };
		const enum branch b = leads_back(waits_sass_word_at(code, *at), age, *at, &first.begin);
		const struct loop l = { code, size, *at, b == BRANCH_ALL };
		struct waits_sass_polls p;

		if (b == BRANCH_OTHER)
			continue;
		/* Behind a branch of all lanes is one by which they vote again. */
		if (l.is_together)
			first.end += WAITS_SASS_BYTES;
		p = (struct waits_sass_polls){ .any = { first } };
		if (!is_poll(&l, age, &p))
			continue;
		*ret = p;
		return 0;
	}
	return -ENOENT;
}

int waits_sass_back_find(const char *arch, const void *code, size_t size, size_t *at, size_t *ret_to)
{
	const enum waits_sass_age age = waits_sass_age_of(arch);

	if (age >= WAITS_SASS_AGE_COUNT)
		return -ENOTSUP;
	for (; *at <= size && size - *at >= WAITS_SASS_BYTES && *at <= UINT32_MAX; *at += WAITS_SASS_BYTES) {
		const struct waits_sass_word w = waits_sass_word_at(code, *at);
		const int64_t to = (int64_t)*at + WAITS_SASS_BYTES + waits_sass_distance(w, age);

		if (waits_sass_form(w) != WAITS_SASS_BRANCH || to < 0 || to > (int64_t)*at)
			continue;
		*ret_to = (size_t)to;
		return 0;
	}
	return -ENOENT;
}

/* ------------------------------------------------------------------ what a lane polls -------- */

static bool value_of(const struct waits_sass_operand *o, waits_sass_operand_fn *get, const void *ctx, uint32_t *ret)
{
	*ret = o->kind == WAITS_SASS_CONSTANT ? o->value : 0;
	return o->kind == WAITS_SASS_NONE || o->kind == WAITS_SASS_CONSTANT || get(ctx, o, ret);
}

/* Two halves; the upper one is 0 where there is none. */
static bool pair_of(const struct waits_sass_operand o[2], waits_sass_operand_fn *get, const void *ctx, uint64_t *ret)
{
	uint32_t low, high;

	if (!value_of(&o[0], get, ctx, &low) || !value_of(&o[1], get, ctx, &high))
		return false;
	*ret = (uint64_t)high << 32 | low;
	return true;
}

/* Compares of (word ^ toggle): of equality, or of the sign, as where blocks of a grid wait for each other. */
static int without_toggle(struct waits_word *w, uint32_t toggle)
{
	const uint64_t sign = UINT64_C(1) << 31;
	const bool is_set = (w->op == WAITS_COMPARE_LT && !w->with) ||
			    (w->op == WAITS_COMPARE_LE && w->with == UINT32_MAX);
	const bool is_clear = (w->op == WAITS_COMPARE_GE && !w->with) ||
			      (w->op == WAITS_COMPARE_GT && w->with == UINT32_MAX);

	if (w->op == WAITS_COMPARE_EQ || w->op == WAITS_COMPARE_NE) {
		w->with ^= toggle;
		return 0;
	}
	if (!w->is_signed || !(is_set || is_clear) || !(w->mask & sign))
		return -ENOTSUP;
	w->mask = sign;
	w->with = toggle & sign;
	w->op = is_set ? WAITS_COMPARE_NE : WAITS_COMPARE_EQ;
	w->is_signed = false;
	return 0;
}

/*
 * Words of 1 or 2 bytes are compared as 32 bits.  The order of those is that of the words, where what they are compared
 * with is such a word as well.
 */
static int without_rest(struct waits_word *w, bool extends)
{
	const uint64_t all = (UINT64_C(1) << 8 * w->bytes) - 1, sign = all ^ all >> 1;
	const uint64_t with = w->with & all;

	w->mask &= all;
	if (w->with != (extends && (with & sign) ? with | (UINT32_MAX & ~all) : with))
		return -ENOTSUP;
	w->with = with;
	w->is_signed &= extends;
	return 0;
}

int waits_sass_poll_word(const struct waits_sass_poll *p, waits_sass_operand_fn *get, const void *ctx,
			 struct waits_word *ret)
{
	struct waits_word w = { .bytes = p->bytes, .op = p->op, .is_signed = p->is_signed,
				.mask = p->bytes == 8 ? UINT64_MAX : UINT32_MAX };
	uint32_t added, mask, toggle;
	int r = 0;

	if (!pair_of(p->base, get, ctx, &w.address) || !value_of(&p->base[2], get, ctx, &added) ||
	    !pair_of(p->with, get, ctx, &w.with) || !value_of(&p->mask, get, ctx, &mask) ||
	    !value_of(&p->toggle, get, ctx, &toggle))
		return -ENODATA;
	w.address = (w.address << p->shift) + added + (uint64_t)(int64_t)p->offset;
	if (p->space == WAITS_SASS_SHARED)
		w.address &= UINT32_MAX;
	if (p->mask.kind != WAITS_SASS_NONE)
		w.mask = mask;
	if (p->toggle.kind != WAITS_SASS_NONE)
		r = without_toggle(&w, toggle);
	else if (p->bytes < 4)
		r = without_rest(&w, p->extends);
	if (r == 0)
		*ret = w;
	return r;
}
