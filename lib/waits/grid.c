/* SPDX-License-Identifier: MIT */
#include "waits/grid.h"

#include <errno.h>

#include "base/reader.h"
#include "waits/sass_word.h"

/* Behind the word that is polled there is another one, and then the number of workgroups. */
#define GROUPS 40u

/* ------------------------------------------------------------------ AMD's -------------------- */

bool waits_grid_is_word(const struct waits_word *w)
{
	return w->bytes == 4 && w->op == WAITS_COMPARE_NE && w->mask == 0xffff0000;
}

int waits_grid_read(const void *record, size_t size, struct waits_grid *ret)
{
	struct reader r;
	uint32_t word;

	reader_init(&r, record, size);
	reader_skip(&r, WAITS_GRID_WORD);
	word = reader_u32(&r);
	reader_skip(&r, GROUPS - WAITS_GRID_WORD - 4);
	*ret = (struct waits_grid){ .has = word & 0xffff, .expects = reader_u32(&r), .generation = word >> 16 };
	if (reader_is_bad(&r) || !ret->expects || ret->expects > WAITS_GRID_MAX || ret->has > ret->expects)
		return -EINVAL;
	return 0;
}

/* ------------------------------------------------------------------ NVIDIA's ----------------- */

/*
 * Instructions are those that ptxas 12.4 and 13.0 make of cooperative_groups' grid.sync(), for sm_70 to sm_121.
 */

/* How far in front of a loop its address is searched for. */
#define TRACE_BYTES 65536u
#define SIGN	       (UINT32_C(1) << 31)
#define MEANING	       ((UINT64_C(1) << 41) - 1)
#define ZERO	       0xffu

/* Where constant bank 0 has the address of the workspace: its lower and its upper half. */
static const uint32_t workspaces[WAITS_SASS_AGE_COUNT][2] = {
	[WAITS_SASS_SM_70] = { 0x90, 0x8c },
	[WAITS_SASS_SM_80] = { 0x90, 0x8c },
	[WAITS_SASS_SM_90] = { 0x48, 0x44 },
	[WAITS_SASS_SM_100] = { 0x258, 0x254 },
};

/* A register that is looked for in the code in front of a place. */
struct trace {
	const uint8_t *code;
	enum waits_sass_age age;
	bool is_uniform;
	uint32_t number;
};

static unsigned int operation_of(struct waits_sass_word w)
{
	return waits_sass_form(w) & 0x1ff;
}

/* The register that it writes, if any, is one of the warp. */
static bool is_uniform(unsigned int operation)
{
	switch (operation) {
	case 0x1ac: /* LDCU */
	case 0x1c2: /* R2UR */
	case 0x1c3: /* S2UR */
	case 0x1c4: /* REDUX */
		return true;
	default:
		return operation >= 0x080 && operation <= 0x0cf;
	}
}

/* How many registers it may write, from the one on that it names: none, or one at least. */
static uint32_t count_written(struct waits_sass_word w)
{
	const uint64_t size = waits_sass_bits(w.high, 9, 3);

	switch (operation_of(w)) {
	case 0x143: /* CALL, BSSY, BRA: part of the distance may be there. */
	case 0x144:
	case 0x145:
	case 0x147:
		return 0;
	case 0x025: /* IMAD.WIDE, UIMAD.WIDE */
	case 0x0a5:
		return 2;
	case 0x0b9: /* ULDC, and what loads */
	case 0x1ac:
	case 0x180:
	case 0x181:
	case 0x182:
	case 0x183:
	case 0x184:
		return size == 6 ? 4 : size == 5 ? 2 : 1;
	default:
		return 1;
	}
}

static bool writes(const struct trace *t, struct waits_sass_word w)
{
	const uint32_t to = (uint32_t)waits_sass_bits(w.low, 16, 8);

	return is_uniform(operation_of(w)) == t->is_uniform && t->number >= to && t->number - to < count_written(w);
}

/* @return whether it loads this constant of bank 0. */
static bool is_constant(struct waits_sass_word w, uint32_t offset)
{
	const uint64_t high = w.high & MEANING, first = waits_sass_bits(w.low, 24, 8);
	const uint64_t field = waits_sass_bits(w.low, 32, 32);

	switch (waits_sass_form(w)) {
	case 0xa02: /* MOV */
		return field == (uint64_t)offset << 6 && !first && high == 0xf00;
	case 0x624: /* IMAD.MOV.U32 */
		return field == (uint64_t)offset << 6 && first == ZERO && high == 0x078e00ff;
	case 0xab9: /* ULDC */
		return field == (uint64_t)offset << 6 && !first && high == 0x800;
	case 0xb82: /* LDC */
		return field == (uint64_t)offset << 6 && first == ZERO && high == 0x800;
	case 0x7ac:
		/* LDCU, from a place that depends on what shares the device: of all of them, the same constant. */
		return field == (uint64_t)offset << 5 && first != ZERO && high == 0x08000800;
	default:
		return false;
	}
}

/* @return whether it moves a register of the warp to one of each lane. */
static bool is_move(struct waits_sass_word w, uint32_t *ret)
{
	const uint64_t high = w.high & MEANING, first = waits_sass_bits(w.low, 24, 8);

	*ret = (uint32_t)waits_sass_bits(w.low, 32, 32);
	return (waits_sass_form(w) == 0xc02 && high == 0x08000f00 && !first) ||
	       (waits_sass_form(w) == 0xe24 && high == 0x0f8e00ff && first == ZERO);
}

/*
 * Does a register hold this half of the workspace's address?  The last instruction in front of the place that writes it
 * decides.
 */
static bool is_workspace(struct trace t, size_t at, unsigned int half)
{
	const size_t least = at > TRACE_BYTES ? at - TRACE_BYTES : 0;

	while (at >= least + WAITS_SASS_BYTES) {
		struct waits_sass_word w;

		at -= WAITS_SASS_BYTES;
		w = waits_sass_word_at(t.code, at);
		if (!writes(&t, w))
			continue;
		if (!waits_sass_is_always(w))
			return false;
		if (is_constant(w, workspaces[t.age][half]))
			return true;
		if (t.is_uniform || !is_move(w, &t.number))
			return false;
		t.is_uniform = true;
	}
	return false;
}

/* Is this half of the workspace's address in an operand at a place? */
static bool is_half(const uint8_t *code, enum waits_sass_age age, size_t at, const struct waits_sass_operand *o,
		    unsigned int half)
{
	const struct trace t = { .code = code, .age = age, .number = o->value,
				 .is_uniform = o->kind == WAITS_SASS_UNIFORM };

	/* The loop loads it anew in each round. */
	if (o->kind == WAITS_SASS_BANK)
		return o->value == workspaces[age][half];
	return (o->kind == WAITS_SASS_REGISTER || t.is_uniform) && is_workspace(t, at, half);
}

static bool is_base(const uint8_t *code, enum waits_sass_age age, size_t at, const struct waits_sass_operand base[2])
{
	return is_half(code, age, at, &base[0], 0) && is_half(code, age, at, &base[1], 1);
}

/*
 * ATOM.E.ADD.STRONG.GPU of 32 bits, at the word's place behind a base.
 * @param ret_base  Gets the two registers of that.
 */
static bool is_add(struct waits_sass_word w, enum waits_sass_age age, struct waits_sass_operand ret_base[2])
{
	const uint64_t high = w.high & MEANING;
	uint64_t number = waits_sass_bits(w.low, 24, 8);
	bool is_uniform = false;

	if (waits_sass_bits(w.low, 40, 23) != WAITS_GRID_WORKSPACE_WORD)
		return false;
	if (age >= WAITS_SASS_SM_80) {
		/* Which registers describe memory differs, and on some devices the place's highest bit says so too. */
		if (waits_sass_form(w) != 0x98a || (high & ~UINT64_C(0x11ff)) != 0x081ee000)
			return false;
	} else if (waits_sass_form(w) == 0x98a) {
		is_uniform = number == ZERO && (high & ~UINT64_C(0x3f)) == 0x081f4140;
		number = high & 0x3f;
		if (!is_uniform)
			return false;
	} else if (waits_sass_form(w) != 0x38a || high != 0x001f41ff) {
		return false;
	}
	for (uint32_t i = 0; i < 2; i++)
		ret_base[i] = (struct waits_sass_operand){ is_uniform ? WAITS_SASS_UNIFORM : WAITS_SASS_REGISTER,
							   (uint32_t)number + i };
	return true;
}

/* @return whether code in front of a place adds to the word: the last that adds to any such one. */
static bool has_added(const uint8_t *code, enum waits_sass_age age, size_t at)
{
	const size_t least = at > TRACE_BYTES ? at - TRACE_BYTES : 0;

	while (at >= least + WAITS_SASS_BYTES) {
		struct waits_sass_operand base[2];

		at -= WAITS_SASS_BYTES;
		if (is_add(waits_sass_word_at(code, at), age, base))
			return is_base(code, age, at, base);
	}
	return false;
}

/* Does the loop end when the highest bit of (word ^ register) is set? */
static bool awaits_change(const struct waits_sass_poll *p)
{
	const struct waits_sass_operand *with = &p->with[0];

	if (p->bytes != 4 || !p->is_signed || p->mask.kind != WAITS_SASS_NONE ||
	    p->toggle.kind != WAITS_SASS_REGISTER || with->kind != WAITS_SASS_CONSTANT)
		return false;
	return (p->op == WAITS_COMPARE_LE && with->value == UINT32_MAX) || (p->op == WAITS_COMPARE_LT && !with->value);
}

bool waits_grid_may_be_loop(const struct waits_sass_poll *p)
{
	return p->space == WAITS_SASS_GENERIC && !p->is_lock && p->offset == WAITS_GRID_WORKSPACE_WORD &&
	       p->base[2].kind == WAITS_SASS_NONE && awaits_change(p);
}

bool waits_grid_is_loop(const char *arch, const void *code, size_t size, const struct waits_sass_poll *p)
{
	const enum waits_sass_age age = waits_sass_age_of(arch);

	if (age >= WAITS_SASS_AGE_COUNT || p->end > size || p->begin > p->end ||
	    p->begin % WAITS_SASS_BYTES || !waits_grid_may_be_loop(p))
		return false;
	return is_base(code, age, p->begin, p->base) && has_added(code, age, p->begin);
}

int waits_grid_count(uint32_t word, uint64_t blocks, struct waits_grid_blocks *ret)
{
	const uint32_t low = word & ~SIGN;
	/* What the word has when block (0,0,0) is the only one that has come. */
	const uint32_t first = blocks ? SIGN - (uint32_t)(blocks - 1) : 0;

	if (!blocks || blocks > WAITS_GRID_BLOCKS_MAX)
		return -EINVAL;
	if (low < blocks)
		*ret = (struct waits_grid_blocks){ .has = low };
	else if (low >= first)
		*ret = (struct waits_grid_blocks){ .has = low - first + 1, .has_first = true };
	else
		return -EINVAL;
	return 0;
}

/* ------------------------------------------------------------------ a program's own ---------- */

/* Flags lie in a row, and each lane polls that of one block. */
static bool is_flags(const struct waits_grid_poll *p)
{
	const uint64_t length = p->last - p->word.address;

	if (!p->has_value || !p->is_one_block || !p->is_numbered || p->lanes < 2 || p->lanes != p->absent)
		return false;
	if (!p->apart || p->last <= p->word.address || length % p->apart)
		return false;
	return length / p->apart >= p->word.bytes && length / p->apart % p->word.bytes == 0;
}

/* All blocks come to it, or all but the one that waits for the others; as often as it was used. */
static bool is_count(const struct waits_grid_poll *p)
{
	const struct waits_word *w = &p->word;
	const uint64_t all = w->bytes >= 8 ? UINT64_MAX : (UINT64_C(1) << 8 * w->bytes) - 1;
	const uint64_t wanted = w->with + (w->op == WAITS_COMPARE_GT);

	if (w->op != WAITS_COMPARE_EQ && w->op != WAITS_COMPARE_GE && w->op != WAITS_COMPARE_GT)
		return false;
	if (!p->has_value || (w->mask & all) != all || wanted > all >> 1 || p->value >= wanted ||
	    wanted - p->value != p->absent)
		return false;
	/* A flag that counts rounds lacks one as well. */
	if (p->absent == 1)
		return wanted == p->blocks && p->blocks > 2;
	return (wanted % p->blocks == 0 && p->absent < p->blocks) ||
	       (wanted % (p->blocks - 1) == 0 && p->absent < p->blocks - 1);
}

enum waits_grid_barrier waits_grid_barrier_of(const struct waits_grid_poll *p)
{
	if (!p->absent || p->absent >= p->blocks)
		return WAITS_GRID_NO_BARRIER;
	if (is_flags(p))
		return WAITS_GRID_FLAGS;
	return is_count(p) ? WAITS_GRID_COUNT : WAITS_GRID_NO_BARRIER;
}
