/* SPDX-License-Identifier: MIT */
#include "hoststack/native/expression.h"

#include <dwarf.h>
#include <errno.h>

#include "base/reader.h"

#define STACK_MAX 64
/* Branches may lead backwards. */
#define STEPS_MAX 1024

struct machine {
	struct reader code;
	const struct native_registers *registers;
	struct native_stack_copy *memory;
	uint64_t stack[STACK_MAX];
	size_t n;
	unsigned missing;
	int error;
};

static void fail(struct machine *m, int error)
{
	if (!m->error)
		m->error = error;
}

static void push(struct machine *m, uint64_t v)
{
	if (m->n < STACK_MAX)
		m->stack[m->n++] = v;
	else
		fail(m, -EBADMSG);
}

static uint64_t pop(struct machine *m)
{
	if (m->n)
		return m->stack[--m->n];
	fail(m, -EBADMSG);
	return 0;
}

static uint64_t peek(struct machine *m, size_t depth)
{
	if (depth < m->n)
		return m->stack[m->n - 1 - depth];
	fail(m, -EBADMSG);
	return 0;
}

static void push_register(struct machine *m, uint64_t number, int64_t offset)
{
	if (native_registers_has(m->registers, number)) {
		push(m, m->registers->values[number] + (uint64_t)offset);
		return;
	}
	m->missing = number < NATIVE_REGISTERS ? (unsigned)number : NATIVE_REGISTERS;
	fail(m, -ENODATA);
}

static void dereference(struct machine *m, size_t size)
{
	const uint64_t address = pop(m);
	uint64_t v = 0;
	int r;

	if (m->error)
		return;
	if (!size || size > sizeof(v)) {
		fail(m, -EBADMSG);
		return;
	}
	r = native_stack_copy_read(m->memory, address, &v, size);
	if (r < 0)
		fail(m, r);
	else
		push(m, v);
}

/* @return whether it was one of these operations. */
static bool push_constant(struct machine *m, uint8_t op)
{
	struct reader *r = &m->code;

	if (op >= DW_OP_lit0 && op <= DW_OP_lit31) {
		push(m, op - DW_OP_lit0);
		return true;
	}
	switch (op) {
	case DW_OP_const1u: push(m, reader_u8(r)); return true;
	case DW_OP_const1s: push(m, (uint64_t)(int64_t)(int8_t)reader_u8(r)); return true;
	case DW_OP_const2u: push(m, reader_u16(r)); return true;
	case DW_OP_const2s: push(m, (uint64_t)(int64_t)(int16_t)reader_u16(r)); return true;
	case DW_OP_const4u: push(m, reader_u32(r)); return true;
	case DW_OP_const4s: push(m, (uint64_t)(int64_t)(int32_t)reader_u32(r)); return true;
	case DW_OP_addr:
	case DW_OP_const8u:
	case DW_OP_const8s: push(m, reader_u64(r)); return true;
	case DW_OP_constu: push(m, reader_uleb(r)); return true;
	case DW_OP_consts: push(m, (uint64_t)reader_sleb(r)); return true;
	default: return false;
	}
}

/* What changes the order.  @return whether it was one of these operations. */
static bool shuffle(struct machine *m, uint8_t op)
{
	uint64_t a, b;

	switch (op) {
	case DW_OP_nop: return true;
	case DW_OP_dup: push(m, peek(m, 0)); return true;
	case DW_OP_over: push(m, peek(m, 1)); return true;
	case DW_OP_pick: push(m, peek(m, reader_u8(&m->code))); return true;
	case DW_OP_drop: pop(m); return true;
	case DW_OP_swap:
		a = pop(m);
		b = pop(m);
		push(m, a);
		push(m, b);
		return true;
	default: return false;
	}
}

/* Two operands.  @param b  The upper one.  @return whether it is one of these operations. */
static bool combine(uint8_t op, uint64_t a, uint64_t b, uint64_t *ret)
{
	const int64_t x = (int64_t)a, y = (int64_t)b;

	switch (op) {
	case DW_OP_and: *ret = a & b; return true;
	case DW_OP_or: *ret = a | b; return true;
	case DW_OP_xor: *ret = a ^ b; return true;
	case DW_OP_plus: *ret = a + b; return true;
	case DW_OP_minus: *ret = a - b; return true;
	case DW_OP_mul: *ret = a * b; return true;
	case DW_OP_shl: *ret = b < 64 ? a << b : 0; return true;
	case DW_OP_shr: *ret = b < 64 ? a >> b : 0; return true;
	case DW_OP_shra: *ret = (uint64_t)(x >> (b < 64 ? b : 63)); return true;
	case DW_OP_eq: *ret = x == y; return true;
	case DW_OP_ne: *ret = x != y; return true;
	case DW_OP_ge: *ret = x >= y; return true;
	case DW_OP_gt: *ret = x > y; return true;
	case DW_OP_le: *ret = x <= y; return true;
	case DW_OP_lt: *ret = x < y; return true;
	default: return false;
	}
}

static void branch(struct machine *m, bool is_taken)
{
	const int16_t distance = (int16_t)reader_u16(&m->code);

	if (!is_taken)
		return;
	if (distance < 0 && (size_t)-distance > m->code.pos)
		fail(m, -EBADMSG);
	else
		reader_seek(&m->code, m->code.pos + (size_t)(ptrdiff_t)distance);
}

static void execute(struct machine *m, uint8_t op)
{
	uint64_t a, b, v;

	if (push_constant(m, op) || shuffle(m, op))
		return;
	if (op >= DW_OP_breg0 && op <= DW_OP_breg31) {
		push_register(m, op - DW_OP_breg0, reader_sleb(&m->code));
		return;
	}
	switch (op) {
	case DW_OP_bregx:
		a = reader_uleb(&m->code);
		push_register(m, a, reader_sleb(&m->code));
		break;
	case DW_OP_deref: dereference(m, sizeof(uint64_t)); break;
	case DW_OP_deref_size: dereference(m, reader_u8(&m->code)); break;
	case DW_OP_plus_uconst: push(m, pop(m) + reader_uleb(&m->code)); break;
	case DW_OP_neg: push(m, -pop(m)); break;
	case DW_OP_not: push(m, ~pop(m)); break;
	case DW_OP_skip: branch(m, true); break;
	case DW_OP_bra: branch(m, pop(m) != 0); break;
	default:
		b = pop(m);
		a = pop(m);
		if (combine(op, a, b, &v))
			push(m, v);
		else
			fail(m, -EBADMSG);
	}
}

int native_expression(const uint8_t *bytes, size_t size, const struct native_registers *registers,
		      struct native_stack_copy *stack, const uint64_t *begin, uint64_t *ret, unsigned *ret_missing)
{
	struct machine m = { .registers = registers, .memory = stack };

	reader_init(&m.code, bytes, size);
	if (begin)
		push(&m, *begin);
	for (size_t i = 0; reader_left(&m.code) && !m.error; i++) {
		if (i == STEPS_MAX)
			return -EBADMSG;
		execute(&m, reader_u8(&m.code));
	}
	if (reader_is_bad(&m.code))
		fail(&m, -EBADMSG);
	*ret = pop(&m);
	*ret_missing = m.missing;
	return m.error;
}
