/* SPDX-License-Identifier: MIT */
/*
 * Instructions are those that ptxas 13.0 makes of loops over volatile, relaxed and acquiring loads and over
 * compare-and-swap, for sm_80 to sm_121.  Bits that have not been seen to differ have to be as they were seen: they may
 * mean something else.
 */
#include "waits/sass_poll.h"

#include <errno.h>
#include <string.h>

#include "waits/sass_word.h"

/* Low 12 bits: the operation, and what its second operand is. */
enum {
	BRA = 0x947,
	LDG = 0x981,
	LD = 0x980,
	LDS = 0x984,
	ATOMG_CAS = 0x3a9,
	ISETP = 0x00c,
	LOP3 = 0x012,
	MOV = 0x202,
	IMAD_MOV = 0x224,
	HFMA2_MMA = 0x435,
	HFMA2 = 0x431,
	OPERATION = 0x1ff,
};

/* Of the second word, bits from 41 on say when to issue the instruction. */
#define MEANING	 ((UINT64_C(1) << 41) - 1)
#define ZERO	 0xffu /* RZ */
#define TRUE_P	 7u    /* PT */
#define SCOPE	 (UINT64_C(15) << 13)
#define SCOPE_AT 13u
#define SIZE	 (UINT64_C(7) << 9)
#define SIZE_AT	 9u

/* One round of the loop, as far as it has been followed. */
struct round {
	struct waits_sass_poll *poll;
	bool writes[256]; /* Registers, anywhere in the loop: such a one is no operand. */
	bool has_load, is_done; /* There was a load; the compare is whole. */
	uint32_t word;	  /* The register with the word, or what was made of it. */
	bool has_low;	  /* Lower halves were compared, to `predicate`. */
	bool low_signed;
	unsigned int predicate;
};

/* ------------------------------------------------------------------ operands ----------------- */

static struct waits_sass_operand of_register(uint64_t number)
{
	if (number == ZERO)
		return (struct waits_sass_operand){ WAITS_SASS_CONSTANT, 0 };
	return (struct waits_sass_operand){ WAITS_SASS_REGISTER, (uint32_t)number };
}

/*
 * The second operand of an instruction of arithmetic.
 * @param ret_high  Gets which bits of the second word it sets.
 * @return false: it is of a kind, or has a bit, that is not known.
 */
static bool second_operand(struct waits_sass_word w, struct waits_sass_operand *ret, uint64_t *ret_high)
{
	const uint64_t field = waits_sass_bits(w.low, 32, 32);

	*ret_high = 0;
	switch (waits_sass_form(w) & ~(unsigned int)OPERATION) {
	case 0x200:
		*ret = of_register(field);
		return field <= ZERO;
	case 0x800:
		*ret = (struct waits_sass_operand){ WAITS_SASS_CONSTANT, (uint32_t)field };
		return true;
	case 0xa00:
		/* Number of the bank in bits 54 to 58, and words in it. */
		*ret = (struct waits_sass_operand){ WAITS_SASS_BANK, (uint32_t)waits_sass_bits(w.low, 40, 14) * 4 };
		return !(field & ~UINT64_C(0x3fff00));
	case 0xc00:
		*ret_high = UINT64_C(1) << 27;
		*ret = (struct waits_sass_operand){ WAITS_SASS_UNIFORM, (uint32_t)field };
		return field < 0x3f;
	default:
		return false;
	}
}

static bool is_constant(const struct round *r, const struct waits_sass_operand *o)
{
	return o->kind != WAITS_SASS_REGISTER || !r->writes[o->value];
}

/* ------------------------------------------------------------------ loads -------------------- */

/* Loads that others' stores are seen by: of the device or the system. */
static bool is_strong(struct waits_sass_word w)
{
	const uint64_t scope = waits_sass_bits(w.high, SCOPE_AT, 4);

	return scope == 7 || scope == 10;
}

static uint8_t bytes_of(struct waits_sass_word w)
{
	const uint64_t size = waits_sass_bits(w.high, SIZE_AT, 3);

	return size == 4 ? 4 : size == 5 ? 8 : 0;
}

/* What an instruction loads, of those that are known.  @return false: it is none of them. */
static bool read_load(struct waits_sass_word w, struct waits_sass_poll *p)
{
	const uint64_t high = w.high & MEANING, base = waits_sass_bits(w.low, 24, 8);
	const uint64_t second = waits_sass_bits(w.low, 32, 8);

	p->offset = (int32_t)waits_sass_signed_bits(w.low, 40, 24);
	p->base[0] = of_register(base);
	p->bytes = bytes_of(w);
	switch (waits_sass_form(w)) {
	case LDG:
	case LD:
		/* The second one describes memory: it is no part of the address. */
		p->space = waits_sass_form(w) == LDG ? WAITS_SASS_GLOBAL : WAITS_SASS_GENERIC;
		p->base[1] = of_register(base + 1);
		return (high & ~(SCOPE | SIZE)) == (p->space == WAITS_SASS_GLOBAL ? 0x0c1e1100 : 0x0c101100) &&
		       is_strong(w) && base < ZERO - 1 && base % 2 == 0;
	case ATOMG_CAS:
		p->is_lock = true;
		p->bytes = 4;
		p->base[1] = of_register(base + 1);
		return (high & ~(SCOPE | 0xff)) == 0x001e0100 && is_strong(w) && base < ZERO - 1 && base % 2 == 0;
	case LDS:
		p->space = WAITS_SASS_SHARED;
		if ((high & ~SIZE) == 0x08000000)
			p->base[2] = (struct waits_sass_operand){ WAITS_SASS_UNIFORM, (uint32_t)second };
		return ((high & ~SIZE) == 0x08000000 && second < 0x3f) || ((high & ~SIZE) == 0 && !second);
	default:
		return false;
	}
}

static bool do_load(struct round *r, struct waits_sass_word w, uint32_t at)
{
	struct waits_sass_poll *p = r->poll;

	if (r->has_load || !waits_sass_is_always(w) || !read_load(w, p) || !p->bytes)
		return false;
	for (unsigned int i = 0; i < 3; i++)
		if (!is_constant(r, &p->base[i]))
			return false;
	r->has_load = true;
	r->word = (uint32_t)waits_sass_bits(w.low, 16, 8);
	p->load = at;
	return r->word < ZERO - 1;
}

/* ------------------------------------------------------------------ compares ----------------- */

/* In the order of the encoding, from 1 on. */
static const enum waits_compare compares[] = {
	[1] = WAITS_COMPARE_LT, [2] = WAITS_COMPARE_EQ, [3] = WAITS_COMPARE_LE,
	[4] = WAITS_COMPARE_GT, [5] = WAITS_COMPARE_NE, [6] = WAITS_COMPARE_GE,
};

/*
 * Which of the two operands is (half of) the word, and what is the other one?
 * @return 0, 1; -1: neither, or the other one changes.
 */
static int word_among(const struct round *r, uint32_t word, struct waits_sass_word w, struct waits_sass_operand second,
		      struct waits_sass_operand *ret)
{
	const struct waits_sass_operand first = of_register(waits_sass_bits(w.low, 24, 8));
	const bool is_first = first.kind == WAITS_SASS_REGISTER && first.value == word;

	if (!is_first && !(second.kind == WAITS_SASS_REGISTER && second.value == word))
		return -1;
	*ret = is_first ? second : first;
	return is_constant(r, ret) ? !is_first : -1;
}

/* Upper halves: the same compare, on top of that of the lower ones. */
static bool do_upper(struct round *r, enum waits_compare op, unsigned int number)
{
	if (!r->has_low || op != r->poll->op || number != r->predicate)
		return false;
	r->is_done = true;
	return true;
}

static bool do_compare(struct round *r, struct waits_sass_word w)
{
	struct waits_sass_poll *p = r->poll;
	const uint64_t op = waits_sass_bits(w.high, 12, 3), high = w.high & MEANING & ~UINT64_C(0xe7200);
	const unsigned int predicate = (unsigned int)waits_sass_bits(w.high, 17, 3);
	const bool is_upper = waits_sass_bits(w.high, 8, 1), is_signed = waits_sass_bits(w.high, 9, 1);
	struct waits_sass_operand second, with;
	enum waits_compare compare;
	uint64_t of_second;
	int word;

	if (!waits_sass_is_always(w) || waits_sass_bits(w.low, 16, 8) || !op || op == 7 || predicate == TRUE_P ||
	    r->is_done || !r->has_load || is_upper != r->has_low || !second_operand(w, &second, &of_second))
		return false;
	if (high != (is_upper ? (0x03f00100 | of_second | (uint64_t)predicate << 4) : (0x03f00070 | of_second)))
		return false;
	word = word_among(r, r->word + is_upper, w, second, &with);
	if (word < 0)
		return false;
	compare = word ? waits_compare_swapped(compares[op]) : compares[op];
	p->with[is_upper] = with;
	p->is_signed = is_signed && compare != WAITS_COMPARE_EQ && compare != WAITS_COMPARE_NE;
	if (is_upper)
		return do_upper(r, compare, predicate);
	r->predicate = predicate;
	p->op = compare;
	r->has_low = p->bytes == 8;
	r->is_done = p->bytes == 4;
	/* Lower halves have no sign. */
	return p->bytes == 4 || !is_signed;
}

/* And, xor of the word with something that does not change; the answer may be whether anything is left. */
static bool do_logic(struct round *r, struct waits_sass_word w)
{
	const uint64_t table = waits_sass_bits(w.high, 8, 8), to = waits_sass_bits(w.low, 16, 8);
	const unsigned int predicate = (unsigned int)waits_sass_bits(w.high, 17, 3);
	struct waits_sass_poll *p = r->poll;
	struct waits_sass_operand second, other, *of = table == 0x3c ? &p->toggle : &p->mask;
	uint64_t of_second;

	if (!waits_sass_is_always(w) || !r->has_load || r->is_done || p->bytes != 4 ||
	    (table != 0xc0 && table != 0x3c) || !second_operand(w, &second, &of_second))
		return false;
	if ((w.high & MEANING & ~UINT64_C(0xeff00)) != (0x078000ff | of_second) ||
	    word_among(r, r->word, w, second, &other) < 0)
		return false;
	/* A mask behind a toggle is not what struct waits_sass_poll has. */
	if (of->kind != WAITS_SASS_NONE || p->toggle.kind != WAITS_SASS_NONE)
		return false;
	*of = other;
	r->word = (uint32_t)to;
	if (predicate == TRUE_P)
		return to != ZERO;
	r->predicate = predicate;
	r->is_done = true;
	p->op = WAITS_COMPARE_NE;
	p->with[0] = (struct waits_sass_operand){ WAITS_SASS_CONSTANT, 0 };
	return to == ZERO;
}

/* ------------------------------------------------------------------ the loop ----------------- */

/* It neither writes a register nor stores, and no lane waits there. */
static bool does_nothing(struct waits_sass_word w)
{
	switch (waits_sass_form(w)) {
	case 0x918: /* NOP */
	case 0x946: /* YIELD */
	case 0x95d: /* NANOSLEEP */
	case 0x35d:
	case 0x98f: /* CCTL */
	case 0x992: /* MEMBAR */
	case 0x9ab: /* ERRBAR */
		return true;
	default:
		return false;
	}
}

/* Constants that are made anew in each round.  @return whether it does nothing else. */
static bool is_move(struct waits_sass_word w)
{
	const uint64_t high = w.high & MEANING, first = waits_sass_bits(w.low, 24, 8);

	switch (waits_sass_form(w)) {
	case MOV:
		return high == 0xf00 && !first;
	case IMAD_MOV:
		return high == 0x078e00ff && first == ZERO;
	case HFMA2_MMA:
	case HFMA2:
		return high == 0x1ff && first == ZERO;
	default:
		return false;
	}
}

static bool follow(struct round *r, struct waits_sass_word w, uint32_t at)
{
	if (does_nothing(w)) {
		r->poll->sleeps |= waits_sass_bits(w.low, 0, 8) == 0x5d;
		return true;
	}
	switch (waits_sass_form(w) & OPERATION) {
	case ISETP:
		return do_compare(r, w);
	case LOP3:
		return do_logic(r, w);
	default:
		break;
	}
	/* What overwrites the word ends what is known of it. */
	if (is_move(w))
		return !r->has_load || r->is_done;
	return do_load(r, w, at);
}

/* Registers that an instruction which follow() knows writes: bits for the size of a load mean none in others. */
static void note_writes(struct round *r, struct waits_sass_word w)
{
	const unsigned int to = (unsigned int)waits_sass_bits(w.low, 16, 8);

	if (does_nothing(w) || (waits_sass_form(w) & OPERATION) == ISETP)
		return;
	r->writes[to] = true;
	if (bytes_of(w) == 8 && to < ZERO - 1)
		r->writes[to + 1] = true;
}

/* @return whether it leads back, by less than WAITS_SASS_POLL_REACH. */
static bool leads_back(struct waits_sass_word w, enum waits_sass_age age, size_t at, uint32_t *ret_begin)
{
	const uint64_t fixed = age < WAITS_SASS_SM_90 ? waits_sass_bits(w.low, 16, 18) : waits_sass_bits(w.low, 24, 10);
	int64_t to;

	if (waits_sass_form(w) != BRA || waits_sass_bits(w.low, 12, 3) == TRUE_P || fixed ||
	    (w.high & MEANING) != 0x0383ffff)
		return false;
	to = (int64_t)at + WAITS_SASS_BYTES + waits_sass_distance(w, age);
	if (to < 0 || to >= (int64_t)at || (int64_t)at + WAITS_SASS_BYTES - to > WAITS_SASS_POLL_REACH ||
	    to % WAITS_SASS_BYTES)
		return false;
	*ret_begin = (uint32_t)to;
	return true;
}

/* Follow the instructions from p->begin to the branch. */
static bool is_poll(const uint8_t *code, size_t branch, struct waits_sass_poll *p)
{
	const struct waits_sass_word w = waits_sass_word_at(code, branch);
	struct round r = { .poll = p };

	for (uint32_t at = p->begin; at < branch; at += WAITS_SASS_BYTES)
		note_writes(&r, waits_sass_word_at(code, at));
	for (uint32_t at = p->begin; at < branch; at += WAITS_SASS_BYTES)
		if (!follow(&r, waits_sass_word_at(code, at), at))
			return false;
	if (!r.is_done || waits_sass_bits(w.low, 12, 3) != r.predicate)
		return false;
	/* It goes on for as long as the branch is taken. */
	if (!waits_sass_bits(w.low, 15, 1))
		p->op = waits_compare_negated(p->op);
	return true;
}

int waits_sass_poll_find(const char *arch, const void *code, size_t size, size_t *at, struct waits_sass_poll *ret)
{
	const enum waits_sass_age age = waits_sass_age_of(arch);

	if (age < WAITS_SASS_SM_80 || age >= WAITS_SASS_AGE_COUNT)
		return -ENOTSUP;
	for (; *at <= size && size - *at >= WAITS_SASS_BYTES && *at <= UINT32_MAX - WAITS_SASS_BYTES;
	     *at += WAITS_SASS_BYTES) {
		struct waits_sass_poll p = { .end = (uint32_t)*at + WAITS_SASS_BYTES };

		if (!leads_back(waits_sass_word_at(code, *at), age, *at, &p.begin) || !is_poll(code, *at, &p))
			continue;
		*ret = p;
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
	w.address += added + (uint64_t)(int64_t)p->offset;
	if (p->space == WAITS_SASS_SHARED)
		w.address &= UINT32_MAX;
	if (p->mask.kind != WAITS_SASS_NONE)
		w.mask = mask;
	if (p->toggle.kind != WAITS_SASS_NONE)
		r = without_toggle(&w, toggle);
	if (r == 0)
		*ret = w;
	return r;
}
