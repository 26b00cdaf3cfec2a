/* SPDX-License-Identifier: MIT */
/*
 * Instructions are those that ptxas 12.4 and 13.0 make of loops over volatile, relaxed and acquiring loads and over
 * compare-and-swap, for sm_70 to sm_121.  Bits that have not been seen to differ have to be as they were seen: they may
 * mean something else.
 */
#include "waits/sass_round.h"

#include <string.h>

/* Low 12 bits, likewise. */
enum {
	LDG = 0x981,
	LDG_REGISTER = 0x381, /* To sm_75, without a uniform register. */
	LD = 0x980,
	LDS = 0x984,
	ATOMG_CAS = 0x3a9,
	LDC = 0xb82,
	ULDC = 0xab9,
	SHFL = 0x389,
	HFMA2_MMA = 0x435,
	HFMA2 = 0x431,
	OPERATION = 0x1ff,
	ISETP = 0x00c,
	LOP3 = 0x012,
	MOV = 0x002,
	IMAD = 0x024,
};

#define ZERO	 WAITS_SASS_ZERO
#define TRUE_P	 WAITS_SASS_TRUE
#define NEVER	 15u /* !PT */
#define MEANING	 WAITS_SASS_MEANING
#define SCOPE	 (UINT64_C(15) << 13)
#define SCOPE_AT 13u
#define SIZE	 (UINT64_C(7) << 9)
#define SIZE_AT	 9u
/* The second operand is a uniform register. */
#define UNIFORM (UINT64_C(1) << 27)
/* Before sm_80: so is an address, of 64 bits. */
#define UNIFORM_WIDE (UINT64_C(3) << 26)

/* ------------------------------------------------------------------ operands ----------------- */

static struct waits_sass_operand constant(uint32_t value)
{
	return (struct waits_sass_operand){ WAITS_SASS_CONSTANT, value };
}

static struct waits_sass_operand of_register(uint64_t number)
{
	if (number == ZERO)
		return constant(0);
	return (struct waits_sass_operand){ WAITS_SASS_REGISTER, (uint32_t)number };
}

/* A place in constant bank 0.  @return false: it is another bank, or not one of words. */
static bool of_bank(uint64_t field, struct waits_sass_operand *ret)
{
	/* Number of the bank in bits 22 to 26, and words in it. */
	*ret = (struct waits_sass_operand){ WAITS_SASS_BANK, (uint32_t)waits_sass_bits(field, 8, 14) * 4 };
	return !(field & ~UINT64_C(0x3fff00));
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
		*ret = constant((uint32_t)field);
		return true;
	case 0xa00:
		return of_bank(field, ret);
	case 0xc00:
		*ret_high = UNIFORM;
		*ret = (struct waits_sass_operand){ WAITS_SASS_UNIFORM, (uint32_t)field };
		return field < WAITS_SASS_UNIFORM_REGISTERS;
	default:
		return false;
	}
}

static const struct waits_sass_value *value_of(const struct waits_sass_round *r, const struct waits_sass_operand *o)
{
	const bool is_register = o->kind == WAITS_SASS_REGISTER;
	const uint8_t at = is_register		       ? r->registers[o->value] :
			   o->kind == WAITS_SASS_UNIFORM ? r->uniforms[o->value] :
							   WAITS_SASS_KEPT;

	return at < WAITS_SASS_VALUES ? &r->values[at] : NULL;
}

/* Replace an operand by what does not change.  @return false: it does change, or is (of) the word. */
static bool resolve(const struct waits_sass_round *r, struct waits_sass_operand *o)
{
	const struct waits_sass_value *v = value_of(r, o);

	if (v && !v->is_word) {
		*o = v->is;
		return true;
	}
	if (v)
		return false;
	return (o->kind != WAITS_SASS_REGISTER || r->registers[o->value] == WAITS_SASS_KEPT) &&
	       (o->kind != WAITS_SASS_UNIFORM || r->uniforms[o->value] == WAITS_SASS_KEPT);
}

/* @return false: there is no room. */
static bool set(struct waits_sass_round *r, uint8_t *to, struct waits_sass_value v)
{
	if (r->n_values == WAITS_SASS_VALUES)
		return false;
	*to = r->n_values;
	r->values[r->n_values++] = v;
	return true;
}

/* ------------------------------------------------------------------ loads -------------------- */

static bool is_of_device(const struct waits_sass_round *r, struct waits_sass_word w)
{
	return waits_sass_bits(w.high, SCOPE_AT, 4) == (r->age < WAITS_SASS_SM_80 ? 10 : 7);
}

/* Loads that others' stores are seen by: of the device or the system. */
static bool is_strong(const struct waits_sass_round *r, struct waits_sass_word w)
{
	return is_of_device(r, w) || waits_sass_bits(w.high, SCOPE_AT, 4) == (r->age < WAITS_SASS_SM_80 ? 11 : 10);
}

static uint8_t bytes_of(struct waits_sass_word w)
{
	const uint64_t size = waits_sass_bits(w.high, SIZE_AT, 3);

	return size == 4 ? 4 : size == 5 ? 8 : 0;
}

/* Of a load: smaller words than those of 32 bits fill a register, by zeros or their sign. */
static void read_size(struct waits_sass_word w, struct waits_sass_poll *p)
{
	const uint64_t size = waits_sass_bits(w.high, SIZE_AT, 3);

	p->bytes = size < 2 ? 1 : size < 4 ? 2 : bytes_of(w);
	p->extends = size == 1 || size == 3;
}

static bool has_pair(struct waits_sass_word w, struct waits_sass_poll *p)
{
	const uint64_t base = waits_sass_bits(w.low, 24, 8);

	p->base[0] = of_register(base);
	p->base[1] = of_register(base + 1);
	return base < ZERO - 1 && base % 2 == 0;
}

/* Before sm_80: [R2], [UR4] or [R2.U32+UR4]. */
static bool has_old_address(struct waits_sass_word w, uint64_t rest, struct waits_sass_poll *p)
{
	const uint64_t base = waits_sass_bits(w.low, 24, 8), second = waits_sass_bits(w.low, 32, 8);

	if (!rest && waits_sass_form(w) == LD) {
		/* An offset of 32 bits. */
		p->offset = (int32_t)waits_sass_signed_bits(w.low, 32, 32);
		return has_pair(w, p);
	}
	if (!rest)
		return has_pair(w, p) && !second;
	p->base[0] = (struct waits_sass_operand){ WAITS_SASS_UNIFORM, (uint32_t)second };
	p->base[1] = (struct waits_sass_operand){ WAITS_SASS_UNIFORM, (uint32_t)second + 1 };
	if (rest == UNIFORM && base != ZERO)
		p->base[2] = of_register(base);
	return (rest == UNIFORM || (rest == UNIFORM_WIDE && base == ZERO)) && second % 2 == 0 &&
	       second + 1 < WAITS_SASS_UNIFORM_REGISTERS;
}

/* A load of global memory, or of any. */
static bool read_far(const struct waits_sass_round *r, struct waits_sass_word w, uint64_t known,
		     struct waits_sass_poll *p)
{
	const uint64_t high = w.high & MEANING & ~(SCOPE | SIZE);

	if (!is_strong(r, w))
		return false;
	p->of_device = is_of_device(r, w);
	if (r->age < WAITS_SASS_SM_80)
		return (high & ~UNIFORM_WIDE) == known && has_old_address(w, high & UNIFORM_WIDE, p);
	/* The second register describes memory: it is no part of the address. */
	return high == (known | UNIFORM_WIDE | 0x1000) && has_pair(w, p);
}

static bool read_shared(const struct waits_sass_round *r, struct waits_sass_word w, struct waits_sass_poll *p)
{
	const uint64_t second = waits_sass_bits(w.low, 32, 8);
	uint64_t high = w.high & MEANING & ~SIZE;

	p->space = WAITS_SASS_SHARED;
	p->base[0] = of_register(waits_sass_bits(w.low, 24, 8));
	/* Before sm_80: .U. */
	if (r->age < WAITS_SASS_SM_80)
		high ^= 0x1000;
	/* [R2.X4] */
	p->shift = high == 0x4000 ? 2 : 0;
	if (high == UNIFORM)
		p->base[2] = (struct waits_sass_operand){ WAITS_SASS_UNIFORM, (uint32_t)second };
	return (high == UNIFORM && second < WAITS_SASS_UNIFORM_REGISTERS) || ((!high || high == 0x4000) && !second);
}

/* What an instruction loads, of those that are known.  @return false: it is none of them. */
static bool read_load(const struct waits_sass_round *r, struct waits_sass_word w, struct waits_sass_poll *p)
{
	const bool is_old = r->age < WAITS_SASS_SM_80;

	p->offset = (int32_t)waits_sass_signed_bits(w.low, 40, 24);
	read_size(w, p);
	switch (waits_sass_form(w)) {
	case LDG_REGISTER:
		p->space = WAITS_SASS_GLOBAL;
		return is_old && !(w.high & UNIFORM_WIDE) && read_far(r, w, 0x001e0100, p);
	case LDG:
		p->space = WAITS_SASS_GLOBAL;
		return (!is_old || (w.high & UNIFORM_WIDE)) && read_far(r, w, 0x001e0100, p);
	case LD:
		p->space = WAITS_SASS_GENERIC;
		return read_far(r, w, 0x00100100, p);
	case ATOMG_CAS:
		p->is_lock = true;
		p->bytes = 4;
		p->extends = false;
		return (w.high & MEANING & ~(SCOPE | 0xff)) == 0x001e0100 && is_strong(r, w) && has_pair(w, p);
	case LDS:
		return read_shared(r, w, p);
	default:
		return false;
	}
}

static bool do_load(struct waits_sass_round *r, struct waits_sass_word w, uint32_t at)
{
	struct waits_sass_poll *p = &r->loads[r->n_loads];
	const uint32_t to = (uint32_t)waits_sass_bits(w.low, 16, 8);
	const uint8_t load = r->n_loads;

	if (r->n_loads == WAITS_SASS_LOADS)
		return false;
	*p = (struct waits_sass_poll){ .load = at };
	if (!waits_sass_is_always(w) || !read_load(r, w, p) || !p->bytes || to >= ZERO - 1)
		return false;
	/* What swaps stores, too. */
	if (load && (p->is_lock || r->loads[0].is_lock))
		return false;
	for (unsigned int i = 0; i < 3; i++)
		if (!resolve(r, &p->base[i]))
			return false;
	r->n_loads++;
	return set(r, &r->registers[to], (struct waits_sass_value){ .is_word = true, .load = load }) &&
	       (p->bytes != 8 || set(r, &r->registers[to + 1],
				     (struct waits_sass_value){ .is_word = true, .is_upper = true, .load = load }));
}

/* ------------------------------------------------------------------ compares ----------------- */

/* In the order of the encoding, from 1 on. */
static const enum waits_compare compares[] = {
	[1] = WAITS_COMPARE_LT, [2] = WAITS_COMPARE_EQ, [3] = WAITS_COMPARE_LE,
	[4] = WAITS_COMPARE_GT, [5] = WAITS_COMPARE_NE, [6] = WAITS_COMPARE_GE,
};

/*
 * Which of the two operands is (half of) the word, and what is the other one?
 * @param ret_word  Gets the former.
 * @return 0, 1; -1: neither, or the other one changes.
 */
static int word_among(const struct waits_sass_round *r, struct waits_sass_word w, struct waits_sass_operand second,
		      const struct waits_sass_value **ret_word, struct waits_sass_operand *ret)
{
	const struct waits_sass_operand first = of_register(waits_sass_bits(w.low, 24, 8));
	const struct waits_sass_value *v = value_of(r, &first);
	const bool is_first = v && v->is_word;

	if (!is_first)
		v = value_of(r, &second);
	if (!v || !v->is_word)
		return -1;
	*ret_word = v;
	*ret = is_first ? second : first;
	return resolve(r, ret) ? !is_first : -1;
}

/* It is the word of this load that the loop polls. */
static void choose(struct waits_sass_round *r, const struct waits_sass_value *v)
{
	const struct waits_sass_poll *of = &r->loads[v->load];
	struct waits_sass_poll *p = r->poll;

	p->load = of->load;
	p->is_lock = of->is_lock;
	p->space = of->space;
	p->of_device = of->of_device;
	p->bytes = of->bytes;
	p->extends = of->extends;
	memcpy(p->base, of->base, sizeof(p->base));
	p->offset = of->offset;
	p->shift = of->shift;
	p->mask = v->mask;
	p->toggle = v->toggle;
}

/* Upper halves: the same compare, on top of that of the lower ones. */
static bool do_upper(struct waits_sass_round *r, enum waits_compare op, unsigned int number)
{
	if (!r->has_low || op != r->poll->op || number != r->predicate)
		return false;
	r->is_done = true;
	return true;
}

static bool do_compare(struct waits_sass_round *r, struct waits_sass_word w)
{
	struct waits_sass_poll *p = r->poll;
	const uint64_t op = waits_sass_bits(w.high, 12, 3), high = w.high & MEANING & ~UINT64_C(0xe7200);
	const unsigned int predicate = (unsigned int)waits_sass_bits(w.high, 17, 3);
	const bool is_upper = waits_sass_bits(w.high, 8, 1), is_signed = waits_sass_bits(w.high, 9, 1);
	struct waits_sass_operand second, with;
	const struct waits_sass_value *v;
	enum waits_compare compare;
	uint64_t of_second;
	int word;

	if (!waits_sass_is_always(w) || waits_sass_bits(w.low, 16, 8) || !op || op == 7 || predicate == TRUE_P ||
	    r->is_done || is_upper != r->has_low || !second_operand(w, &second, &of_second))
		return false;
	if (high != (is_upper ? (0x03f00100 | of_second | (uint64_t)predicate << 4) : (0x03f00070 | of_second)))
		return false;
	word = word_among(r, w, second, &v, &with);
	if (word < 0 || v->is_upper != is_upper || (is_upper && r->loads[v->load].load != p->load))
		return false;
	if (!is_upper)
		choose(r, v);
	compare = word ? waits_compare_swapped(compares[op]) : compares[op];
	p->with[is_upper] = with;
	p->is_signed = is_signed && compare != WAITS_COMPARE_EQ && compare != WAITS_COMPARE_NE;
	if (is_upper)
		return do_upper(r, compare, predicate);
	r->predicate = predicate;
	p->op = compare;
	r->has_low = p->bytes == 8;
	r->is_done = p->bytes != 8;
	/* Lower halves have no sign. */
	return p->bytes != 8 || !is_signed;
}

/* And, xor of the word with something that does not change; the answer may be whether anything is left. */
static bool do_logic(struct waits_sass_round *r, struct waits_sass_word w)
{
	const uint64_t table = waits_sass_bits(w.high, 8, 8), to = waits_sass_bits(w.low, 16, 8);
	const unsigned int predicate = (unsigned int)waits_sass_bits(w.high, 17, 3);
	struct waits_sass_poll *p = r->poll;
	struct waits_sass_operand second, other, *of;
	const struct waits_sass_value *v;
	struct waits_sass_value made;
	uint64_t of_second;

	if (!waits_sass_is_always(w) || r->is_done || r->has_low || (table != 0xc0 && table != 0x3c) ||
	    !second_operand(w, &second, &of_second))
		return false;
	if ((w.high & MEANING & ~UINT64_C(0xeff00)) != (0x078000ff | of_second) ||
	    word_among(r, w, second, &v, &other) < 0 || r->loads[v->load].bytes == 8 || r->loads[v->load].extends)
		return false;
	made = *v;
	of = table == 0x3c ? &made.toggle : &made.mask;
	/* A mask behind a toggle is not what struct waits_sass_poll has. */
	if (of->kind != WAITS_SASS_NONE || made.toggle.kind != WAITS_SASS_NONE ||
	    (table == 0x3c && r->loads[v->load].bytes != 4))
		return false;
	*of = other;
	if (predicate == TRUE_P)
		return to != ZERO && set(r, &r->registers[to], made);
	r->predicate = predicate;
	r->is_done = true;
	choose(r, &made);
	p->op = WAITS_COMPARE_NE;
	p->with[0] = constant(0);
	return to == ZERO;
}

/* ------------------------------------------------------------------ the rest ----------------- */

/* It neither writes a register nor stores, and no lane waits there. */
static bool does_nothing(struct waits_sass_word w)
{
	switch (waits_sass_form(w)) {
	case 0x918: /* NOP */
	case WAITS_SASS_YIELD:
	case 0x95d: /* NANOSLEEP */
	case 0x35d:
	case 0x98f: /* CCTL */
	case 0x992: /* MEMBAR */
	case 0x9ab: /* ERRBAR */
		return true;
	case SHFL: /* Before sm_80 there are some of these that no lane executes. */
	case LDC:
		return waits_sass_bits(w.low, 12, 4) == NEVER;
	default:
		return false;
	}
}

/* IMAD with a first factor of 0 moves its last operand.  @return false: it is none of these. */
static bool read_sum(struct waits_sass_word w, struct waits_sass_operand *ret)
{
	const uint64_t high = w.high & MEANING, field = waits_sass_bits(w.low, 32, 32);

	if (waits_sass_bits(w.low, 24, 8) != ZERO)
		return false;
	switch (waits_sass_form(w) & ~(unsigned int)OPERATION) {
	case 0x200:
		*ret = of_register(high & 0xff);
		return (high & ~UINT64_C(0xff)) == 0x078e0000 && field <= ZERO;
	case 0x400:
		*ret = constant((uint32_t)field);
		return high == 0x078e00ff;
	case 0x600:
		return high == 0x078e00ff && of_bank(field, ret);
	case 0xe00:
		*ret = (struct waits_sass_operand){ WAITS_SASS_UNIFORM, (uint32_t)field };
		return high == 0x0f8e00ff && field < WAITS_SASS_UNIFORM_REGISTERS;
	default:
		return false;
	}
}

/* What an instruction moves to one register of each lane.  @return false: it moves nothing. */
static bool read_move(struct waits_sass_word w, struct waits_sass_operand *ret)
{
	uint64_t of_second;

	switch (waits_sass_form(w) & OPERATION) {
	case MOV:
		return second_operand(w, ret, &of_second) && (w.high & MEANING) == (0xf00 | of_second) &&
		       !waits_sass_bits(w.low, 24, 8);
	case IMAD:
		return read_sum(w, ret);
	default:
		return false;
	}
}

/* Constants that are made anew in each round.  @return false: it does something else. */
static bool do_move(struct waits_sass_round *r, struct waits_sass_word w)
{
	const uint64_t to = waits_sass_bits(w.low, 16, 8);
	struct waits_sass_operand o;

	if (!waits_sass_is_always(w))
		return false;
	/* Two halves of a constant that is not looked at. */
	if (waits_sass_form(w) == HFMA2_MMA || waits_sass_form(w) == HFMA2) {
		r->registers[to] = WAITS_SASS_UNKNOWN;
		return (w.high & MEANING) == 0x1ff && waits_sass_bits(w.low, 24, 8) == ZERO;
	}
	return to != ZERO && read_move(w, &o) && resolve(r, &o) &&
	       set(r, &r->registers[to], (struct waits_sass_value){ .is = o });
}

/* Loads of 32 or 64 bits of what the driver passes to a launch.  @return false: it does something else. */
static bool do_constant(struct waits_sass_round *r, struct waits_sass_word w)
{
	const bool is_uniform = waits_sass_form(w) == ULDC, is_wide = bytes_of(w) == 8;
	const uint64_t to = waits_sass_bits(w.low, 16, 8);
	const uint64_t most = is_uniform ? WAITS_SASS_UNIFORM_REGISTERS : ZERO;
	uint8_t *const registers = is_uniform ? r->uniforms : r->registers;
	struct waits_sass_operand o;

	if (!waits_sass_is_always(w) || (waits_sass_form(w) != LDC && !is_uniform) || to + is_wide >= most ||
	    waits_sass_bits(w.low, 24, 8) != (is_uniform ? 0 : ZERO) || !bytes_of(w) ||
	    (w.high & MEANING & ~SIZE) || !of_bank(waits_sass_bits(w.low, 32, 32), &o) ||
	    !set(r, &registers[to], (struct waits_sass_value){ .is = o }))
		return false;
	o.value += 4;
	return !is_wide || set(r, &registers[to + 1], (struct waits_sass_value){ .is = o });
}

bool waits_sass_round_follow(struct waits_sass_round *r, struct waits_sass_word w, uint32_t at)
{
	if (does_nothing(w)) {
		r->sleeps |= waits_sass_bits(w.low, 0, 8) == 0x5d;
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
	return do_move(r, w) || do_constant(r, w) || do_load(r, w, at);
}

/* Registers that an instruction writes, of those that are known: bits for the size of a load mean none in others. */
static void note_writes(struct waits_sass_round *r, struct waits_sass_word w)
{
	const bool is_uniform = waits_sass_form(w) == ULDC || waits_sass_form(w) == WAITS_SASS_VOTEU;
	const uint64_t to = waits_sass_bits(w.low, 16, 8);
	uint8_t *const registers = is_uniform ? r->uniforms : r->registers;

	if (does_nothing(w) || (waits_sass_form(w) & OPERATION) == ISETP || waits_sass_form(w) == WAITS_SASS_BRANCH ||
	    waits_sass_form(w) == WAITS_SASS_EXIT)
		return;
	registers[to] = WAITS_SASS_UNKNOWN;
	if (bytes_of(w) == 8 && to < ZERO - 1)
		registers[to + 1] = WAITS_SASS_UNKNOWN;
}

void waits_sass_round_begin(struct waits_sass_round *r, const uint8_t *code, size_t begin, size_t branch)
{
	r->n_values = r->n_loads = 0;
	r->is_done = r->has_low = r->sleeps = false;
	memset(r->registers, WAITS_SASS_KEPT, sizeof(r->registers));
	memset(r->uniforms, WAITS_SASS_KEPT, sizeof(r->uniforms));
	for (size_t at = begin; at < branch; at += WAITS_SASS_BYTES)
		note_writes(r, waits_sass_word_at(code, at));
}

void waits_sass_round_next(struct waits_sass_round *r, struct waits_sass_poll *poll)
{
	r->poll = poll;
	r->is_done = r->has_low = false;
}
