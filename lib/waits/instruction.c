/* SPDX-License-Identifier: MIT */
/*
 * Fields and opcodes are those that llvm-mc of LLVM 22 encodes for gfx900, 90a, 942, 1030, 1100, 1201 and 1250;
 * tests/peers compiles loops and compares.
 */
#include "waits/instruction.h"

#include <string.h>

#include "base/reader.h"

#define INLINE_FIRST 128u /* Operands: 0 to 64, then -1 to -16. */
#define INLINE_ZERO  192u
#define INLINE_LAST  208u
#define LITERAL	     255u
#define VECTOR	     256u
#define SGPRS	     106u

/* Opcodes that differ: of gfx9, gfx10, and gfx11 with what followed. */
struct opcode {
	uint8_t by_age[3];
};

static unsigned int age_of(enum waits_family f)
{
	return f == WAITS_GFX9 ? 0 : f == WAITS_GFX10 ? 1 : 2;
}

static uint32_t bits(uint32_t word, unsigned int at, unsigned int width)
{
	return word >> at & ((UINT32_C(1) << width) - 1);
}

/* Word i of an instruction; what is not known is 0, and read() refuses what is longer than the code. */
static uint32_t word_at(const uint8_t *code, size_t size, unsigned int i)
{
	struct reader r;

	if (size < 4 * (i + 1))
		return 0;
	reader_init(&r, code + (size_t)i * 4, 4);
	return reader_u32(&r);
}

/*
 * An operand of 9 bits, or 8 without vector registers.
 * @param literal  The word behind the instruction.
 * @return false: it is one that is not known here.
 */
static bool read_operand(uint32_t code, uint8_t bytes, uint32_t literal, struct waits_step *s,
			 struct waits_operand *ret)
{
	*ret = (struct waits_operand){ 0 };
	if (code >= VECTOR) {
		ret->kind = WAITS_OPERAND_VECTOR;
		ret->reg = (uint8_t)(code - VECTOR);
	} else if (code < SGPRS || code == WAITS_VCC || code == WAITS_EXEC) {
		ret->kind = WAITS_OPERAND_SCALAR;
		ret->reg = (uint8_t)code;
	} else if (code >= INLINE_FIRST && code <= INLINE_LAST) {
		ret->kind = WAITS_OPERAND_CONSTANT;
		ret->value = code <= INLINE_ZERO ? code - INLINE_FIRST : (uint64_t)0 - (code - INLINE_ZERO);
	} else if (code == LITERAL && bytes == 4) {
		/* How one of 32 bits becomes one of 64 depends on the instruction. */
		ret->kind = WAITS_OPERAND_CONSTANT;
		ret->value = literal;
		s->size = 8;
	} else {
		return false;
	}
	if (bytes == 4)
		ret->value = (uint32_t)ret->value;
	return true;
}

/* ------------------------------------------------------------------ scalar instructions ------ */

static bool is_pause(enum waits_family f, uint32_t word)
{
	static const struct {
		uint32_t word, families;
	} rows[] = {
#define F(f) (UINT32_C(1) << (f))
#define FROM10	(FROM11 | F(WAITS_GFX10))
#define FROM11	(F(WAITS_GFX11) | FROM12)
#define FROM12	(F(WAITS_GFX12) | F(WAITS_GFX12_5))
#define BEFORE11 (F(WAITS_GFX9) | F(WAITS_GFX10))
		{ 0xbf80, BEFORE11 | FROM11 }, /* s_nop */
		{ 0xbf8f, BEFORE11 },	       /* s_setprio */
		{ 0xbfb5, FROM11 },
		{ 0xbf83, BEFORE11 },	       /* s_wakeup */
		{ 0xbfb4, FROM11 },
		{ 0xbfa0, F(WAITS_GFX10) },    /* s_inst_prefetch */
		{ 0xbf84, F(WAITS_GFX11) },    /* s_set_inst_prefetch_distance */
		{ 0xbfa1, F(WAITS_GFX10) },    /* s_clause */
		{ 0xbf85, FROM11 },
		{ 0xbfa2, F(WAITS_GFX10) },    /* s_waitcnt_idle, later s_wait_idle */
		{ 0xbf8a, FROM11 },
		{ 0xbfa3, F(WAITS_GFX10) },    /* s_waitcnt_depctr, later s_wait_alu */
		{ 0xbf88, FROM11 },
		{ 0xbf87, FROM11 },	       /* s_delay_alu */
		{ 0xbfc4, F(WAITS_GFX12) },    /* s_wait_expcnt */
		{ 0xbfc5, F(WAITS_GFX12_5) },  /* s_wait_xcnt */
#undef F
#undef FROM10
#undef FROM11
#undef FROM12
#undef BEFORE11
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (word >> 16 == rows[i].word && rows[i].families >> f & 1)
			return true;
	return false;
}

/* Those without operands, and branches. */
static bool read_control(enum waits_family f, uint32_t word, struct waits_step *s)
{
	uint8_t bytes[4];

	memcpy(bytes, &word, sizeof(bytes));
	if (waits_instruction_read(f, bytes, sizeof(bytes), &s->branch) < 0)
		return false;
	if (waits_op_branches(s->branch.op))
		s->does = WAITS_DOES_BRANCH;
	else if (s->branch.op == WAITS_OP_SLEEP)
		s->does = WAITS_DOES_SLEEP;
	else if (s->branch.op == WAITS_OP_WAIT_MEMORY || (s->branch.op == WAITS_OP_OTHER && is_pause(f, word)))
		s->does = WAITS_DOES_NOTHING;
	return s->does != WAITS_DOES_UNKNOWN;
}

/* SOPC: two operands, compared. */
static bool read_scalar_compare(enum waits_family f, const uint32_t *w, struct waits_step *s)
{
	static const enum waits_compare ops[] = { WAITS_COMPARE_EQ, WAITS_COMPARE_NE, WAITS_COMPARE_GT,
						  WAITS_COMPARE_GE, WAITS_COMPARE_LT, WAITS_COMPARE_LE };
	uint32_t op = bits(w[0], 16, 7), wide = age_of(f) < 2 ? 0x12 : 0x10;

	if (w[0] >> 23 != 0x17e)
		return false;
	s->bytes = 4;
	if (op < 12) {
		s->op = ops[op % 6];
		s->is_signed = op < 6;
	} else if (op == wide || op == wide + 1) {
		s->op = op == wide ? WAITS_COMPARE_EQ : WAITS_COMPARE_NE;
		s->bytes = 8;
	} else {
		return false;
	}
	s->does = WAITS_DOES_COMPARE;
	return read_operand(w[0] & 0xff, s->bytes, w[1], s, &s->from[0]) &&
	       read_operand(w[0] >> 8 & 0xff, s->bytes, w[1], s, &s->from[1]);
}

/* SOP2: and, or, and-not, of 32 and of 64 bits. */
static bool read_scalar_logic(enum waits_family f, const uint32_t *w, struct waits_step *s)
{
	static const struct {
		struct opcode op;
		enum waits_does does;
	} rows[] = { { { { 0x0c, 0x0e, 0x16 } }, WAITS_DOES_AND },
		     { { { 0x0e, 0x10, 0x18 } }, WAITS_DOES_OR },
		     { { { 0x12, 0x14, 0x22 } }, WAITS_DOES_AND_NOT } };
	uint32_t op = bits(w[0], 23, 7);

	if (w[0] >> 30 != 2)
		return false;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if ((op & ~1u) == rows[i].op.by_age[age_of(f)])
			s->does = rows[i].does;
	s->bytes = op & 1 ? 8 : 4;
	s->to = (uint8_t)bits(w[0], 16, 7);
	return s->does != WAITS_DOES_UNKNOWN && read_operand(w[0] & 0xff, s->bytes, w[1], s, &s->from[0]) &&
	       read_operand(w[0] >> 8 & 0xff, s->bytes, w[1], s, &s->from[1]);
}

/* ------------------------------------------------------------------ vector instructions ------ */

/* Which comparison an opcode of VOPC is. */
static bool read_compare_op(enum waits_family f, uint32_t op, struct waits_step *s)
{
	static const struct {
		struct opcode first;
		uint8_t bytes;
		bool is_signed;
	} rows[] = { { { { 0xc1, 0x81, 0x41 } }, 4, true },
		     { { { 0xc9, 0xc1, 0x49 } }, 4, false },
		     { { { 0xe1, 0xa1, 0x51 } }, 8, true },
		     { { { 0xe9, 0xe1, 0x59 } }, 8, false } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t which = op - rows[i].first.by_age[age_of(f)];

		if (which >= WAITS_COMPARE_COUNT)
			continue;
		s->does = WAITS_DOES_COMPARE_LANES;
		s->op = (enum waits_compare)which;
		s->bytes = rows[i].bytes;
		s->is_signed = rows[i].is_signed;
		return true;
	}
	return false;
}

/* VOPC: to VCC; the second operand is a vector register. */
static bool read_compare(enum waits_family f, const uint32_t *w, struct waits_step *s)
{
	if (w[0] >> 25 != 0x3e || !read_compare_op(f, bits(w[0], 17, 8), s))
		return false;
	s->to = WAITS_VCC;
	return read_operand(bits(w[0], 0, 9), s->bytes, w[1], s, &s->from[0]) &&
	       read_operand(VECTOR + bits(w[0], 9, 8), s->bytes, w[1], s, &s->from[1]);
}

/* The same as VOP3: to any scalar register, of any operands, without modifiers. */
static bool read_compare_long(enum waits_family f, const uint32_t *w, struct waits_step *s)
{
	uint32_t op = bits(w[0], 16, 10);

	if (w[0] >> 26 != (age_of(f) ? 0x35 : 0x34) || op > 0xff || bits(w[0], 8, 8) || w[1] >> 18 ||
	    !read_compare_op(f, op, s) || bits(w[1], 0, 9) == LITERAL || bits(w[1], 9, 9) == LITERAL)
		return false;
	s->to = (uint8_t)w[0];
	s->size = 8;
	return read_operand(bits(w[1], 0, 9), s->bytes, 0, s, &s->from[0]) &&
	       read_operand(bits(w[1], 9, 9), s->bytes, 0, s, &s->from[1]);
}

static bool read_vector_logic(enum waits_family f, const uint32_t *w, struct waits_step *s)
{
	static const struct opcode and = { { 0x13, 0x1b, 0x1b } }, xor = { { 0x15, 0x1d, 0x1d } };
	uint32_t op = bits(w[0], 25, 6);

	if (w[0] >> 31)
		return false;
	s->bytes = 4;
	if (op == 0x3f && bits(w[0], 9, 8) == 2) { /* VOP1: v_readfirstlane_b32 */
		s->does = WAITS_DOES_READ_LANE;
		s->to = (uint8_t)bits(w[0], 17, 8);
		return s->to < SGPRS && bits(w[0], 0, 9) >= VECTOR &&
		       read_operand(bits(w[0], 0, 9), 4, 0, s, &s->from[0]);
	}
	if (op == and.by_age[age_of(f)])
		s->does = WAITS_DOES_AND_LANES;
	else if (op == xor.by_age[age_of(f)])
		s->does = WAITS_DOES_XOR_LANES;
	else
		return false;
	s->to = (uint8_t)bits(w[0], 17, 8);
	return read_operand(bits(w[0], 0, 9), 4, w[1], s, &s->from[0]) &&
	       read_operand(VECTOR + bits(w[0], 9, 8), 4, w[1], s, &s->from[1]);
}

/* v_mov_b32, as VOP1. */
static bool read_move(enum waits_family f, const uint32_t *w, struct waits_step *s)
{
	(void)f;
	if (w[0] >> 25 != 0x3f || bits(w[0], 9, 8) != 1)
		return false;
	s->does = WAITS_DOES_MOVE;
	s->bytes = 4;
	s->to = (uint8_t)bits(w[0], 17, 8);
	return read_operand(bits(w[0], 0, 9), 4, w[1], s, &s->from[0]);
}

/* One register of a pair, scalar or vector. */
static bool read_half(uint32_t code, bool is_second, struct waits_step *s, struct waits_operand *ret)
{
	return (code + 1 < SGPRS || (code >= VECTOR && code < VECTOR + 255)) &&
	       read_operand(code + is_second, 4, 0, s, ret);
}

/* v_pk_mov_b32 of gfx90a and later: op_sel says which register of each source is moved. */
static bool read_move_pair(enum waits_family f, const uint32_t *w, struct waits_step *s)
{
	/* All modifiers but op_sel are those of the assembler, and the third source, which is none, is 0. */
	if (f != WAITS_GFX9 || (w[0] & 0xffffe700) != 0xd3b34000 || (w[1] & 0xfffc0000) != 0x18000000)
		return false;
	s->does = WAITS_DOES_MOVE;
	s->bytes = 8;
	s->size = 8;
	s->to = (uint8_t)w[0];
	return s->to < 255 && read_half(bits(w[1], 0, 9), bits(w[0], 11, 1), s, &s->from[0]) &&
	       read_half(bits(w[1], 9, 9), bits(w[0], 12, 1), s, &s->from[1]);
}

/* ------------------------------------------------------------------ memory ------------------- */

static int32_t sign_extend(uint32_t value, unsigned int width)
{
	uint32_t sign = UINT32_C(1) << (width - 1);

	return (int32_t)((value ^ sign) - sign);
}

/* Which of the opcodes a load or a swap has. */
static bool read_memory_op(enum waits_family f, uint32_t op, struct waits_step *s)
{
	static const struct {
		struct opcode op;
		uint8_t bytes;
		enum waits_does does;
	} rows[] = { { { { 0x14, 0x0c, 0x14 } }, 4, WAITS_DOES_LOAD },
		     { { { 0x15, 0x0d, 0x15 } }, 8, WAITS_DOES_LOAD },
		     { { { 0x41, 0x31, 0x34 } }, 4, WAITS_DOES_SWAP },
		     { { { 0x61, 0x51, 0x42 } }, 8, WAITS_DOES_SWAP } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (op == rows[i].op.by_age[age_of(f)]) {
			s->does = rows[i].does;
			s->bytes = rows[i].bytes;
			return true;
		}
	return false;
}

static bool read_memory_old(enum waits_family f, const uint32_t *w, struct waits_step *s)
{
	static const struct opcode no_base = { { 0x7f, 0x7d, 0x7c } };
	bool is11 = f == WAITS_GFX11;
	uint32_t segment = bits(w[0], is11 ? 16 : 14, 2);
	bool is_global = segment == 2, returns = bits(w[0], is11 ? 14 : 16, 1);
	unsigned int width = f == WAITS_GFX10 ? 12 : 13;

	if (w[0] >> 26 != 0x37 || (segment && !is_global) || !read_memory_op(f, bits(w[0], 18, 7), s) ||
	    /* A load into the LDS before gfx11, and into an accumulation register. */
	    (!is11 && bits(w[0], 13, 1)) || (w[1] >> 23 & 1) ||
	    (s->does == WAITS_DOES_SWAP && !returns))
		return false;
	s->size = 8;
	s->to = (uint8_t)bits(w[1], 24, 8);
	s->place.lane = (uint8_t)w[1];
	s->place.data = (uint8_t)bits(w[1], 8, 8);
	s->place.base = (uint8_t)bits(w[1], 16, 7);
	s->place.has_base = is_global && s->place.base != no_base.by_age[age_of(f)];
	s->place.offset = is_global ? sign_extend(bits(w[0], 0, width), width) : (int32_t)bits(w[0], 0, 12);
	return !s->place.has_base || s->place.base < SGPRS;
}

static bool read_memory_new(const uint32_t *w, struct waits_step *s)
{
	enum { NO_BASE = 0x7c, FLAT = 0xec, GLOBAL = 0xee, INVALIDATE = 0x2b, WRITE_BACK = 0x2c };
	uint32_t op = bits(w[0], 14, 8);

	if (w[0] >> 24 != GLOBAL && w[0] >> 24 != FLAT)
		return false;
	s->size = 12;
	if (w[0] >> 24 == GLOBAL && (op == INVALIDATE || op == WRITE_BACK)) {
		s->does = WAITS_DOES_NOTHING;
		return true;
	}
	/* What gfx12 reserves is a scale of the offset from gfx12.5 on. */
	if (bits(w[1], 8, 10) || !read_memory_op(WAITS_GFX12, op, s) ||
	    (s->does == WAITS_DOES_SWAP && !bits(w[1], 20, 1)))
		return false;
	s->to = (uint8_t)w[1];
	s->place.lane = (uint8_t)w[2];
	s->place.data = (uint8_t)bits(w[1], 23, 8);
	s->place.base = (uint8_t)bits(w[0], 0, 7);
	s->place.has_base = s->place.base != NO_BASE;
	s->place.offset = sign_extend(w[2] >> 8, 24);
	return !s->place.has_base || s->place.base < SGPRS;
}

/* Caches are dropped or written back: that belongs to an acquire. */
static bool is_cache_control(enum waits_family f, const uint32_t *w)
{
	static const struct {
		enum waits_family family;
		uint32_t mask, word;
	} rows[] = {
		{ WAITS_GFX9, 0xffffffff, 0xe0fc0000 },	 /* buffer_wbinvl1_vol */
		{ WAITS_GFX9, 0xffffffff, 0xe0f80000 },	 /* buffer_wbinvl1 */
		{ WAITS_GFX9, 0xffff3fff, 0xe0a40000 },	 /* buffer_invl2, buffer_inv */
		{ WAITS_GFX9, 0xffff3fff, 0xe0a00000 },	 /* buffer_wbl2 */
		{ WAITS_GFX10, 0xffffffff, 0xe1c40000 }, /* buffer_gl0_inv */
		{ WAITS_GFX10, 0xffffffff, 0xe1c80000 }, /* buffer_gl1_inv */
		{ WAITS_GFX11, 0xffffffff, 0xe0ac0000 },
		{ WAITS_GFX11, 0xffffffff, 0xe0b00000 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].family == f && (w[0] & rows[i].mask) == rows[i].word && !w[1])
			return true;
	return false;
}

static bool read_memory(enum waits_family f, const uint32_t *w, struct waits_step *s)
{
	if (f >= WAITS_GFX12)
		return read_memory_new(w, s);
	if (is_cache_control(f, w)) {
		s->does = WAITS_DOES_NOTHING;
		s->size = 8;
		return true;
	}
	return read_memory_old(f, w, s);
}

struct waits_step waits_step_read(enum waits_family f, const uint8_t *code, size_t size)
{
	typedef bool reader_fn(enum waits_family f, const uint32_t *w, struct waits_step *s);
	static reader_fn *const readers[] = { read_scalar_compare, read_scalar_logic, read_compare,
					      read_compare_long,   read_vector_logic, read_move,
					      read_move_pair,	   read_memory };
	const uint32_t w[3] = { word_at(code, size, 0), word_at(code, size, 1), word_at(code, size, 2) };
	struct waits_step s = { .size = 4 };
	bool known = f < WAITS_FAMILY_COUNT && read_control(f, w[0], &s);

	if (size < 4 || f >= WAITS_FAMILY_COUNT)
		return (struct waits_step){ 0 };
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]) && !known; i++) {
		s = (struct waits_step){ .size = 4 };
		known = readers[i](f, w, &s);
	}
	return known && s.size <= size ? s : (struct waits_step){ 0 };
}
