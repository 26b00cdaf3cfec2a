/* SPDX-License-Identifier: MIT */
#include "waits/barrier.h"

#include <errno.h>
#include <string.h>

#define STATUS_IN_BARRIER   (UINT32_C(1) << 12)
#define BLOCK_BARRIER	    (-1)
#define CLUSTER_BARRIER	    (-3)
/* Numbers of named barriers come around at so many, or a multiple (HipKittens, its named_barrier of gfx1250). */
#define NAMED_AT_LEAST 4u

/* The bit of STATE_PRIV that says that a wave is through (Linux, cwsr_trap_handler_gfx12.asm). */
static const uint32_t complete[WAITS_BARRIER_COUNT] = {
	[WAITS_BARRIER_BLOCK] = UINT32_C(1) << 2,
	[WAITS_BARRIER_NAMED] = UINT32_C(1) << 3,
	[WAITS_BARRIER_CLUSTER] = UINT32_C(1) << 16,
};

/* Look at pc first: a saved wave executes its barrier again. */
static void find(enum waits_family f, const struct waits_saved *s, enum waits_op op, struct waits_at_barrier *ret)
{
	struct waits_instruction i;

	for (unsigned at = 0; at < 2 && !ret->found; at++) {
		if (s->n_code < 4 * (at + 1) ||
		    waits_instruction_read(f, s->code + (at ? 0 : 4), 4, &i) < 0 || i.op != op)
			continue;
		ret->found = true;
		ret->at_pc = !at;
		ret->op = op;
		ret->id = i.immediate;
	}
}

static void by_status(enum waits_family f, const struct waits_saved *s, struct waits_at_barrier *ret)
{
	bool bit = s->status & STATUS_IN_BARRIER;

	find(f, s, WAITS_OP_BARRIER, ret);
	ret->id = BLOCK_BARRIER;
	/* Behind it, and without the bit, it is through. */
	ret->waits = bit || (ret->found && ret->at_pc);
	ret->confidence = ret->waits && !(bit && ret->found) ? WAITS_INFERRED : WAITS_PROVEN;
}

/* @return WAITS_BARRIER_COUNT: none at which a wave of this family waits. */
static enum waits_barrier which_of(enum waits_family f, int16_t id)
{
	if (id == BLOCK_BARRIER)
		return WAITS_BARRIER_BLOCK;
	if (f < WAITS_GFX12_5)
		return WAITS_BARRIER_COUNT;
	if (id == CLUSTER_BARRIER)
		return WAITS_BARRIER_CLUSTER;
	return id > 0 && id <= (int16_t)WAITS_NAMED_BARRIERS ? WAITS_BARRIER_NAMED : WAITS_BARRIER_COUNT;
}

static void by_place(enum waits_family f, const struct waits_saved *s, struct waits_at_barrier *ret)
{
	enum waits_barrier which;

	find(f, s, WAITS_OP_BARRIER_WAIT, ret);
	which = which_of(f, ret->id);
	ret->waits = ret->found && ret->at_pc && which != WAITS_BARRIER_COUNT && !(s->state_priv & complete[which]);
	/* Outside of a cluster there is none: the state that was saved is not valid (Linux, the same file). */
	ret->waits &= which != WAITS_BARRIER_CLUSTER || waits_barrier_state_read(s->cluster).valid;
	ret->which = ret->waits ? which : WAITS_BARRIER_BLOCK;
	ret->confidence = s->n_code < 4			    ? WAITS_UNKNOWN :
			  ret->which == WAITS_BARRIER_NAMED ? WAITS_INFERRED :
							      WAITS_PROVEN;
}

int waits_at_barrier(enum waits_family f, const struct waits_saved *s, struct waits_at_barrier *ret)
{
	if (f >= WAITS_FAMILY_COUNT)
		return -ENOTSUP;
	*ret = (struct waits_at_barrier){ 0 };
	if (f >= WAITS_GFX12)
		by_place(f, s, ret);
	else
		by_status(f, s, ret);
	return 0;
}

struct waits_barrier_state waits_barrier_state_read(uint32_t word)
{
	return (struct waits_barrier_state){ .valid = word & 1,
					     .members = word >> 4 & 0x7f,
					     .signals = word >> 16 & 0x7f };
}

static bool is_open(const struct waits_barrier_state *s)
{
	return s->valid && s->members > s->signals;
}

/* After how many numbers all the states come around. */
static uint32_t period_of(const uint32_t words[WAITS_NAMED_BARRIERS])
{
	uint32_t period = NAMED_AT_LEAST;

	while (period < WAITS_NAMED_BARRIERS &&
	       memcmp(words, words + period, (WAITS_NAMED_BARRIERS - period) * sizeof(*words)) != 0)
		period *= 2;
	return period;
}

int waits_named_find(const uint32_t words[WAITS_NAMED_BARRIERS], uint32_t *ret_number,
		     struct waits_barrier_state *ret)
{
	const uint32_t period = period_of(words);
	uint32_t first = WAITS_NAMED_BARRIERS;

	for (uint32_t i = 0; i < period; i++) {
		const struct waits_barrier_state s = waits_barrier_state_read(words[i]);

		if (!is_open(&s))
			continue;
		if (first != WAITS_NAMED_BARRIERS)
			return -ENOTUNIQ;
		first = i;
	}
	if (first == WAITS_NAMED_BARRIERS)
		return -ENODATA;
	*ret_number = first + 1;
	*ret = waits_barrier_state_read(words[first]);
	return 0;
}

/* From gfx12 on a wave that does not wait may have arrived: the hardware's counts tell how many have not. */
static void by_counts(const struct waits_block *b, uint32_t elsewhere, struct waits_missing *m)
{
	const struct waits_barrier_state *s = &b->state;
	bool counts = b->same_words && is_open(s) && s->signals >= b->waiting;
	uint32_t lacking = counts ? s->members - s->signals : elsewhere;

	m->candidates = lacking != elsewhere;
	m->missing = lacking < elsewhere ? lacking : elsewhere;
	if (!counts || m->candidates || s->members != b->seen)
		m->confidence = waits_weaker(m->confidence, WAITS_INFERRED);
}

/* A wave can wait at a named barrier without coming to it, and come without waiting. */
static void by_named_counts(const struct waits_block *b, uint32_t elsewhere, struct waits_missing *m)
{
	const struct waits_barrier_state *s = &b->state;
	bool counts = b->same_words && is_open(s);
	uint32_t lacking = counts ? s->members - s->signals : 1;

	/* Without counts those that wait may be at several barriers, and wait for each other. */
	m->candidates = !counts || lacking != elsewhere + m->ended;
	m->missing = lacking;
	m->confidence = waits_weaker(m->confidence, WAITS_INFERRED);
}

int waits_block_missing(const struct waits_block *b, struct waits_missing *ret)
{
	uint32_t elsewhere = b->seen - b->waiting;
	struct waits_missing m = { .missing = elsewhere, .confidence = b->confidence };

	if (b->expects > b->seen)
		m.ended = b->expects - b->seen;
	if (b->waiting > b->seen || b->family >= WAITS_FAMILY_COUNT)
		return -ENODATA;
	if (!elsewhere && (b->which != WAITS_BARRIER_NAMED || !m.ended))
		return -ENODATA;
	if (b->which == WAITS_BARRIER_NAMED)
		by_named_counts(b, elsewhere, &m);
	else if (b->family >= WAITS_GFX12)
		by_counts(b, elsewhere, &m);
	*ret = m;
	return 0;
}
