/* SPDX-License-Identifier: MIT */
#include "waits/barrier.h"

#include <errno.h>

#define STATUS_IN_BARRIER   (UINT32_C(1) << 12)
#define STATE_PRIV_COMPLETE (UINT32_C(1) << 2)
#define BLOCK_BARRIER	    (-1)

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

static void by_place(enum waits_family f, const struct waits_saved *s, struct waits_at_barrier *ret)
{
	bool here;

	find(f, s, WAITS_OP_BARRIER_WAIT, ret);
	here = ret->found && ret->at_pc && !(s->state_priv & STATE_PRIV_COMPLETE);
	ret->waits = here && ret->id == BLOCK_BARRIER;
	ret->other = here && ret->id != BLOCK_BARRIER;
	ret->confidence = s->n_code < 4 ? WAITS_UNKNOWN : ret->other ? WAITS_INFERRED : WAITS_PROVEN;
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

/* From gfx12 on a wave that does not wait may have arrived: the hardware's counts tell how many have not. */
static void by_counts(const struct waits_block *b, uint32_t elsewhere, struct waits_missing *m)
{
	const struct waits_barrier_state *s = &b->state;
	bool counts = b->same_words && s->valid && s->members > s->signals && s->signals >= b->waiting;
	uint32_t lacking = counts ? s->members - s->signals : elsewhere;

	m->candidates = lacking != elsewhere;
	m->missing = lacking < elsewhere ? lacking : elsewhere;
	if (!counts || m->candidates || s->members != b->seen)
		m->confidence = waits_weaker(m->confidence, WAITS_INFERRED);
}

int waits_block_missing(const struct waits_block *b, struct waits_missing *ret)
{
	uint32_t elsewhere = b->seen - b->waiting;
	struct waits_missing m = { .missing = elsewhere, .confidence = b->confidence };

	if (b->waiting > b->seen || !elsewhere || b->family >= WAITS_FAMILY_COUNT)
		return -ENODATA;
	if (b->expects > b->seen)
		m.ended = b->expects - b->seen;
	if (b->family >= WAITS_GFX12)
		by_counts(b, elsewhere, &m);
	*ret = m;
	return 0;
}
