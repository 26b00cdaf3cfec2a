/* SPDX-License-Identifier: MIT */
#include "waits/poll.h"

#include <errno.h>
#include <string.h>

#include "waits/instruction.h"

/* More instructions of 4 bytes do not fit within the reach on both sides. */
#define STEPS_MAX (2 * WAITS_POLL_REACH / 4 + 1)
/* Registers that a round makes anew in front of the load. */
#define MADE_MAX 8u

/* What a register that the loop writes holds. */
enum holds { HOLDS_OTHER, HOLDS_WORD, HOLDS_HIGH, HOLDS_DONE };

/* One round of the loop, as far as it has been followed. */
struct round {
	struct waits_poll *poll;
	const uint8_t *code;
	enum waits_family family;
	uint8_t vector[256], scalar[128];	  /* enum holds */
	bool writes_vector[256], writes_scalar[128]; /* Anywhere in the loop: such a register is no operand. */
	/* Vector registers that were made in this round in front of the load, and what of. */
	struct {
		uint8_t reg;
		struct waits_operand of;
	} made[MADE_MAX];
	unsigned int n_made;
	bool has_load, has_compare;
	uint8_t word_bytes; /* Of the compared registers. */
	/* Where the compare is: a scalar register with a bit for each lane, or SCC. */
	uint8_t compare_in;
	bool in_scc;
	bool lanes_left; /* Lanes whose compare is true have been taken out of EXEC. */
	bool has_exit;	 /* A branch leads out, and `leaves_if` is what it takes. */
	bool leaves_if_true;
};

/* ------------------------------------------------------------------ the loop's bounds -------- */

static bool leads_back_over(const struct waits_step *s, size_t pc, size_t at, size_t *ret_begin)
{
	int64_t to = (int64_t)pc + 4 + (int64_t)s->branch.immediate * 4;

	if (s->does != WAITS_DOES_BRANCH || to < 0 || (size_t)to > at || at - (size_t)to > WAITS_POLL_REACH)
		return false;
	*ret_begin = (size_t)to;
	return true;
}

/* Walk on from an instruction to a branch back to it or in front of it. */
static int find_bounds(struct round *r, size_t size, size_t at)
{
	size_t pc = at, begin;

	for (unsigned int n = 0; n < STEPS_MAX && pc < size && pc - at < WAITS_POLL_REACH; n++) {
		struct waits_step s = waits_step_read(r->family, r->code + pc, size - pc);

		if (s.does == WAITS_DOES_UNKNOWN)
			return -ENOENT;
		if (leads_back_over(&s, pc, at, &begin)) {
			r->poll->begin = (uint32_t)begin;
			r->poll->end = (uint32_t)(pc + s.size);
			return 0;
		}
		/* What follows an unconditional branch is not reached from here. */
		if (s.does == WAITS_DOES_BRANCH && s.branch.op == WAITS_OP_BRANCH)
			return -ENOENT;
		pc += s.size;
	}
	return -ENOENT;
}

/* ------------------------------------------------------------------ what is written ---------- */

static void note_writes(struct round *r, const struct waits_step *s)
{
	bool *to = NULL;

	switch (s->does) {
	case WAITS_DOES_LOAD:
	case WAITS_DOES_SWAP:
	case WAITS_DOES_AND_LANES:
	case WAITS_DOES_XOR_LANES:
	case WAITS_DOES_MOVE:
		to = r->writes_vector;
		break;
	case WAITS_DOES_COMPARE_LANES:
	case WAITS_DOES_READ_LANE:
	case WAITS_DOES_AND:
	case WAITS_DOES_OR:
	case WAITS_DOES_AND_NOT:
		to = r->writes_scalar;
		break;
	default:
		return;
	}
	to[s->to] = true;
	/* A compare of lanes writes two registers, or one where waves have 32 lanes: the second is then not written. */
	if ((s->bytes == 8 || s->does == WAITS_DOES_COMPARE_LANES) && s->to < 127)
		to[s->to + 1] = true;
	else if (s->bytes == 8 && to == r->writes_vector && s->to < 255)
		to[s->to + 1] = true;
}

static bool writes_lanes(enum waits_does does)
{
	return does == WAITS_DOES_LOAD || does == WAITS_DOES_SWAP || does == WAITS_DOES_AND_LANES ||
	       does == WAITS_DOES_XOR_LANES || does == WAITS_DOES_MOVE;
}

/* Is the instruction that was asked about one of those of the loop, and is all of it known? */
static int look_through(struct round *r, size_t at)
{
	bool meets = false;

	for (size_t pc = r->poll->begin, size; pc < r->poll->end; pc += size) {
		struct waits_step s = waits_step_read(r->family, r->code + pc, r->poll->end - pc);

		size = s.size;
		if (s.does == WAITS_DOES_UNKNOWN || (s.to > 127 && !writes_lanes(s.does)))
			return -ENOENT;
		note_writes(r, &s);
		meets = meets || pc == at;
	}
	return meets ? 0 : -ENOENT;
}

static bool is_constant(const struct round *r, const struct waits_operand *o, uint8_t bytes)
{
	const bool *writes = o->kind == WAITS_OPERAND_VECTOR ? r->writes_vector : r->writes_scalar;
	unsigned int last = o->reg + (bytes == 8 ? 1u : 0u);

	if (o->kind == WAITS_OPERAND_CONSTANT)
		return true;
	if (last > (o->kind == WAITS_OPERAND_VECTOR ? 255u : 127u))
		return false;
	/* What lanes are active, and VCC, change when others than the loop say so as well. */
	return !writes[o->reg] && !writes[last] &&
	       (o->kind == WAITS_OPERAND_VECTOR || (o->reg != WAITS_VCC && o->reg != WAITS_EXEC));
}

/* ------------------------------------------------------------------ one instruction ---------- */

static uint8_t *held(struct round *r, const struct waits_operand *o)
{
	return o->kind == WAITS_OPERAND_VECTOR ? &r->vector[o->reg] : o->kind == WAITS_OPERAND_SCALAR ?
						 &r->scalar[o->reg] : NULL;
}

/* @return which of the operands holds the word, and the other does not change; -1: neither. */
static int word_among(struct round *r, const struct waits_step *s)
{
	for (int i = 0; i < 2; i++) {
		const uint8_t *holds = held(r, &s->from[i]);
		bool all = holds && *holds == HOLDS_WORD && r->poll->bytes == s->bytes &&
			   (s->bytes == 4 || (s->from[i].reg < 255 && holds[1] == HOLDS_HIGH));

		if (all && is_constant(r, &s->from[!i], s->bytes))
			return i;
	}
	return -1;
}

static bool is_made(const struct round *r, unsigned int reg)
{
	for (unsigned int k = 0; k < r->n_made; k++)
		if (r->made[k].reg == reg)
			return true;
	return false;
}

/*
 * clang 14 makes the address of a flat load anew in each round, and at -O1 what a swap writes and compares, which the
 * word that it returns overwrites.  That is the same in each round if the loop leaves alone what it is made of.  Of a
 * register that two moves write this is not looked at.
 */
static bool do_move(struct round *r, const struct waits_step *s)
{
	for (unsigned int i = 0; i < s->bytes / 4u; i++) {
		uint8_t reg = (uint8_t)(s->to + i);

		if (!is_constant(r, &s->from[i], 4))
			return false;
		/* The word is lost there, if it was. */
		r->vector[reg] = HOLDS_OTHER;
		if (r->has_load)
			continue;
		if (r->n_made == MADE_MAX || is_made(r, reg))
			return false;
		r->made[r->n_made].reg = reg;
		r->made[r->n_made++].of = s->from[i];
	}
	return true;
}

/* The vector registers of an address: each either does not change, or is made in front of the load. */
static bool find_lane_part(const struct round *r, struct waits_place *place)
{
	unsigned int n = place->has_base ? 1 : 2;

	for (unsigned int i = 0; i < n && place->lane + i <= 255; i++) {
		const struct waits_operand lane = { .kind = WAITS_OPERAND_VECTOR, .reg = (uint8_t)(place->lane + i) };

		for (unsigned int k = 0; k < r->n_made; k++)
			if (r->made[k].reg == lane.reg)
				place->made_of[i] = r->made[k].of;
		if (place->made_of[i].kind == WAITS_OPERAND_NONE && !is_constant(r, &lane, 4))
			return false;
	}
	return place->lane + n <= 256;
}

static bool do_load(struct round *r, const struct waits_step *s, size_t pc)
{
	struct waits_poll *p = r->poll;
	const struct waits_operand base = { .kind = WAITS_OPERAND_SCALAR, .reg = s->place.base };
	struct waits_place place = s->place;

	if (r->has_load || !find_lane_part(r, &place) || (place.has_base && !is_constant(r, &base, 8)))
		return false;
	r->has_load = true;
	p->load = (uint32_t)pc;
	p->is_lock = s->does == WAITS_DOES_SWAP;
	p->bytes = s->bytes;
	p->place = place;
	r->vector[s->to] = HOLDS_WORD;
	if (s->bytes == 8 && s->to < 255)
		r->vector[s->to + 1] = HOLDS_HIGH;
	return true;
}

/* And, xor of the word with something that does not change. */
static bool do_logic(struct round *r, const struct waits_step *s)
{
	bool is_xor = s->does == WAITS_DOES_XOR_LANES;
	struct waits_operand *to = is_xor ? &r->poll->toggle : &r->poll->mask;
	int word = word_among(r, s);

	/* A mask behind a toggle is not what waits_word has. */
	if (word < 0 || to->kind != WAITS_OPERAND_NONE || (!is_xor && r->poll->toggle.kind != WAITS_OPERAND_NONE))
		return false;
	*to = s->from[!word];
	/* What it was is not the word that is compared any more. */
	*held(r, &s->from[word]) = HOLDS_OTHER;
	*(s->does == WAITS_DOES_AND ? &r->scalar[s->to] : &r->vector[s->to]) = HOLDS_WORD;
	return true;
}

enum waits_compare waits_compare_swapped(enum waits_compare op)
{
	static const enum waits_compare table[] = {
		[WAITS_COMPARE_LT] = WAITS_COMPARE_GT, [WAITS_COMPARE_EQ] = WAITS_COMPARE_EQ,
		[WAITS_COMPARE_LE] = WAITS_COMPARE_GE, [WAITS_COMPARE_GT] = WAITS_COMPARE_LT,
		[WAITS_COMPARE_NE] = WAITS_COMPARE_NE, [WAITS_COMPARE_GE] = WAITS_COMPARE_LE,
	};

	return table[op];
}

enum waits_compare waits_compare_negated(enum waits_compare op)
{
	static const enum waits_compare table[] = {
		[WAITS_COMPARE_LT] = WAITS_COMPARE_GE, [WAITS_COMPARE_EQ] = WAITS_COMPARE_NE,
		[WAITS_COMPARE_LE] = WAITS_COMPARE_GT, [WAITS_COMPARE_GT] = WAITS_COMPARE_LE,
		[WAITS_COMPARE_NE] = WAITS_COMPARE_EQ, [WAITS_COMPARE_GE] = WAITS_COMPARE_LT,
	};

	return table[op];
}

static bool do_compare(struct round *r, const struct waits_step *s)
{
	int word = word_among(r, s);

	if (word < 0 || r->has_compare)
		return false;
	r->has_compare = true;
	r->in_scc = s->does == WAITS_DOES_COMPARE;
	r->compare_in = s->to;
	r->poll->op = word ? waits_compare_swapped(s->op) : s->op;
	r->poll->is_signed = s->is_signed;
	r->poll->with = s->from[!word];
	return true;
}

static bool is_scalar(const struct waits_operand *o, unsigned int reg)
{
	return o->kind == WAITS_OPERAND_SCALAR && o->reg == reg;
}

static bool is_compare(const struct round *r, const struct waits_operand *o)
{
	return r->has_compare && !r->in_scc && is_scalar(o, r->compare_in);
}

/*
 * Does it overwrite where the compare is?  An or of it is as wide as it is; of other instructions that is not known,
 * and a compare may be of two registers.
 */
static bool loses_compare(const struct round *r, const struct waits_step *s)
{
	unsigned int first = r->compare_in, last = first + (s->does == WAITS_DOES_OR && s->bytes == 4 ? 0u : 1u);

	if (r->in_scc)
		return s->does != WAITS_DOES_READ_LANE;
	return r->has_compare && s->to <= last && s->to + (s->bytes == 8 ? 1u : 0u) >= first;
}

/* VCC = EXEC & compare: the same bits; an inactive lane's are not set. */
static bool do_and(struct round *r, const struct waits_step *s)
{
	for (int i = 0; i < 2; i++)
		if (is_compare(r, &s->from[i]) && is_scalar(&s->from[!i], WAITS_EXEC)) {
			r->compare_in = s->to;
			return true;
		}
	return !loses_compare(r, s) && do_logic(r, s);
}

/* Lanes that are done are collected: done = compare | done. */
static bool do_or(struct round *r, const struct waits_step *s)
{
	for (int i = 0; i < 2; i++)
		if (is_compare(r, &s->from[i]) && is_scalar(&s->from[!i], s->to)) {
			r->scalar[s->to] = HOLDS_DONE;
			return !loses_compare(r, s);
		}
	return false;
}

/* EXEC = EXEC & ~done. */
static bool do_and_not(struct round *r, const struct waits_step *s)
{
	const struct waits_operand *done = &s->from[1];

	if (s->to != WAITS_EXEC || !is_scalar(&s->from[0], WAITS_EXEC) ||
	    loses_compare(r, s) ||
	    !(is_compare(r, done) || (done->kind == WAITS_OPERAND_SCALAR && r->scalar[done->reg] == HOLDS_DONE)))
		return false;
	r->lanes_left = true;
	return true;
}

/*
 * What a branch says about the compare: 1: taken if it is true, 0: if it is false, -1: it depends on something else.
 * A compare of lanes of which some are true and others not is of a word that they share: all are alike.
 */
static int taken_if(const struct round *r, enum waits_op op)
{
	bool in_vcc = r->has_compare && !r->in_scc && r->compare_in == WAITS_VCC && !r->lanes_left;

	switch (op) {
	case WAITS_OP_BRANCH_SCC1:
	case WAITS_OP_BRANCH_SCC0:
		return r->in_scc && r->has_compare ? op == WAITS_OP_BRANCH_SCC1 : -1;
	case WAITS_OP_BRANCH_VCCNZ:
	case WAITS_OP_BRANCH_VCCZ:
		return in_vcc ? op == WAITS_OP_BRANCH_VCCNZ : -1;
	/* Lanes whose compare was false are left. */
	case WAITS_OP_BRANCH_EXECNZ:
	case WAITS_OP_BRANCH_EXECZ:
		return r->lanes_left ? op == WAITS_OP_BRANCH_EXECZ : -1;
	default:
		return -1;
	}
}

/* @return false: it leads somewhere else within the loop, or it is not known when. */
static bool do_branch(struct round *r, const struct waits_step *s, size_t pc)
{
	int64_t to = (int64_t)pc + 4 + (int64_t)s->branch.immediate * 4;
	bool is_last = pc + s->size == r->poll->end, leads_out = to < r->poll->begin || to >= r->poll->end;
	int when = taken_if(r, s->branch.op);

	if (is_last && s->branch.op == WAITS_OP_BRANCH)
		return r->has_exit;
	if (when < 0 || r->has_exit || is_last == leads_out)
		return false;
	r->has_exit = true;
	r->leaves_if_true = when == leads_out;
	return true;
}

static bool follow(struct round *r, const struct waits_step *s, size_t pc)
{
	uint8_t *holds;

	switch (s->does) {
	case WAITS_DOES_NOTHING:
		return true;
	case WAITS_DOES_SLEEP:
		r->poll->sleeps = true;
		return true;
	case WAITS_DOES_LOAD:
	case WAITS_DOES_SWAP:
		return do_load(r, s, pc);
	case WAITS_DOES_AND_LANES:
	case WAITS_DOES_XOR_LANES:
		return do_logic(r, s);
	case WAITS_DOES_COMPARE_LANES:
	case WAITS_DOES_COMPARE:
		return do_compare(r, s);
	case WAITS_DOES_MOVE:
		return do_move(r, s);
	case WAITS_DOES_READ_LANE:
		holds = held(r, &s->from[0]);
		r->scalar[s->to] = *holds;
		*holds = HOLDS_OTHER;
		return r->scalar[s->to] != HOLDS_OTHER && !loses_compare(r, s);
	case WAITS_DOES_AND:
		return do_and(r, s);
	case WAITS_DOES_OR:
		return do_or(r, s);
	case WAITS_DOES_AND_NOT:
		return do_and_not(r, s);
	case WAITS_DOES_BRANCH:
		return do_branch(r, s, pc);
	case WAITS_DOES_UNKNOWN:
		break;
	}
	return false;
}

int waits_poll_find(enum waits_family f, const uint8_t *code, size_t size, size_t at, struct waits_poll *ret)
{
	struct waits_poll poll = { 0 };
	struct round r = { .poll = &poll, .code = code, .family = f };
	int result;

	if (f >= WAITS_FAMILY_COUNT)
		return -ENOTSUP;
	result = at < size && at % 4 == 0 ? find_bounds(&r, size, at) : -ENOENT;
	if (result == 0)
		result = look_through(&r, at);
	if (result < 0)
		return result;
	for (size_t pc = poll.begin, step; pc < poll.end; pc += step) {
		struct waits_step s = waits_step_read(f, code + pc, poll.end - pc);

		step = s.size;
		if (!follow(&r, &s, pc))
			return -ENOENT;
	}
	if (!r.has_load || !r.has_exit)
		return -ENOENT;
	if (!r.leaves_if_true)
		poll.op = waits_compare_negated(poll.op);
	poll.each_lane = r.lanes_left;
	*ret = poll;
	return 0;
}

/* ------------------------------------------------------------------ registers ---------------- */

static int operand(const struct waits_operand *o, uint8_t bytes, waits_register_fn *get, void *ctx, unsigned int lane,
		   uint64_t *ret)
{
	uint32_t low, high = 0;

	if (o->kind == WAITS_OPERAND_CONSTANT) {
		*ret = o->value;
		return 0;
	}
	if (!get(ctx, o->kind == WAITS_OPERAND_VECTOR, o->reg, lane, &low) ||
	    (bytes == 8 && !get(ctx, o->kind == WAITS_OPERAND_VECTOR, o->reg + 1u, lane, &high)))
		return -ENODATA;
	*ret = (uint64_t)high << 32 | low;
	return 0;
}

static int address(const struct waits_place *p, waits_register_fn *get, void *ctx, unsigned int lane, uint64_t *ret)
{
	const struct waits_operand base = { .kind = WAITS_OPERAND_SCALAR, .reg = p->base };
	uint64_t from = 0, half[2] = { 0 };
	int r = p->has_base ? operand(&base, 8, get, ctx, lane, &from) : 0;

	for (unsigned int i = 0; r == 0 && i < (p->has_base ? 1u : 2u); i++) {
		const struct waits_operand reg = { .kind = WAITS_OPERAND_VECTOR, .reg = (uint8_t)(p->lane + i) };

		r = operand(p->made_of[i].kind == WAITS_OPERAND_NONE ? &reg : &p->made_of[i], 4, get, ctx, lane,
			    &half[i]);
	}
	if (r == 0)
		*ret = from + (half[1] << 32 | half[0]) + (uint64_t)(int64_t)p->offset;
	return r;
}

/*
 * Compares of (word ^ toggle): of equality with some bits, or of whether bits above some have changed, as when
 * workgroups of a grid wait for a new generation: (word ^ old) > 0xffff.
 */
static int without_toggle(struct waits_word *w, uint64_t toggle)
{
	uint64_t low = w->op == WAITS_COMPARE_GT ? w->with : w->with - 1;

	if (w->op == WAITS_COMPARE_EQ || w->op == WAITS_COMPARE_NE) {
		w->with ^= toggle;
		return 0;
	}
	/* Every word is at least 0: whoever loops on that waits for nothing. */
	if (w->is_signed || (w->op != WAITS_COMPARE_GT && (w->op != WAITS_COMPARE_GE || !w->with)) || low & (low + 1) ||
	    w->mask != (w->bytes == 8 ? UINT64_MAX : UINT32_MAX))
		return -ENOTSUP;
	w->mask &= ~low;
	w->with = toggle & w->mask;
	w->op = WAITS_COMPARE_NE;
	return 0;
}

int waits_poll_word(const struct waits_poll *p, waits_register_fn *get, void *ctx, unsigned int lane,
		    struct waits_word *ret)
{
	struct waits_word w = { .bytes = p->bytes, .op = p->op, .is_signed = p->is_signed, .mask = UINT64_MAX };
	uint64_t toggle = 0;
	int r = address(&p->place, get, ctx, lane, &w.address);

	if (p->bytes == 4)
		w.mask = UINT32_MAX;
	if (r == 0)
		r = operand(&p->with, p->bytes, get, ctx, lane, &w.with);
	if (r == 0 && p->mask.kind != WAITS_OPERAND_NONE)
		r = operand(&p->mask, p->bytes, get, ctx, lane, &w.mask);
	if (r == 0 && p->toggle.kind != WAITS_OPERAND_NONE)
		r = operand(&p->toggle, p->bytes, get, ctx, lane, &toggle);
	if (r == 0 && p->toggle.kind != WAITS_OPERAND_NONE)
		r = without_toggle(&w, toggle);
	if (r == 0)
		*ret = w;
	return r;
}

bool waits_word_holds(const struct waits_word *w, uint64_t memory)
{
	uint64_t sign = UINT64_C(1) << (8 * w->bytes - 1);
	uint64_t a = memory & w->mask & (sign | (sign - 1)), b = w->with & (sign | (sign - 1));

	if (w->is_signed) {
		/* Order of signed numbers: that of unsigned ones, with the sign turned over. */
		a ^= sign;
		b ^= sign;
	}
	switch (w->op) {
	case WAITS_COMPARE_LT:
		return a < b;
	case WAITS_COMPARE_EQ:
		return a == b;
	case WAITS_COMPARE_LE:
		return a <= b;
	case WAITS_COMPARE_GT:
		return a > b;
	case WAITS_COMPARE_NE:
		return a != b;
	case WAITS_COMPARE_GE:
		return a >= b;
	case WAITS_COMPARE_COUNT:
		break;
	}
	return false;
}

bool waits_word_always_holds(const struct waits_word *w)
{
	uint64_t sign = UINT64_C(1) << (8 * w->bytes - 1), all = sign | (sign - 1);
	uint64_t mask = w->mask & all, with = w->with & all;

	/* What a mask leaves of numbers with a sign is not told; whether words are equal does not depend on it. */
	if (w->is_signed && mask != all && w->op != WAITS_COMPARE_NE && w->op != WAITS_COMPARE_EQ)
		return false;
	switch (w->op) {
	case WAITS_COMPARE_GE:
		return with == (w->is_signed ? sign : 0);
	case WAITS_COMPARE_LE:
		return w->is_signed ? with == sign - 1 : with >= mask;
	case WAITS_COMPARE_LT:
		return !w->is_signed && with > mask;
	case WAITS_COMPARE_NE:
		return with & ~mask;
	case WAITS_COMPARE_EQ:
		return !mask && !with;
	case WAITS_COMPARE_GT:
	case WAITS_COMPARE_COUNT:
		break;
	}
	return false;
}

const char *waits_compare_name(enum waits_compare op)
{
	static const char *const names[] = { "lt", "eq", "lte", "gt", "ne", "gte" };

	return op < WAITS_COMPARE_COUNT ? names[op] : "?";
}
