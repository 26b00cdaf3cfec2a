/* SPDX-License-Identifier: MIT */
#include "values/evaluate.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "base/reader.h"

#define STACK_MAX 64u
#define STEPS_MAX 10000u
/* DWARF's numbers of AMD's registers that point at a stack. */
#define SGPR32 64u
#define SGPR33 65u

/* An item of the stack: a number, or a place. */
enum item_kind {
	ITEM_VALUE,
	ITEM_MEMORY,
	ITEM_REGISTER,
	ITEM_BYTES,
	ITEM_PIECES,
	ITEM_HOLE,
};
/* Where a number came from, as long as nothing was done to it. */
enum origin {
	ORIGIN_NONE,
	ORIGIN_REGISTER, /* The content of a register. */
	ORIGIN_ADDRESS,	 /* An address of the file. */
};

struct item {
	enum item_kind kind;
	enum origin origin;
	bool spaced;	  /* A number that an address space was given to. */
	bool framed;	  /* Memory: it lies in the stack frame. */
	uint64_t value;	  /* Number, address, or the register's. */
	uint64_t number;  /* Register of ORIGIN_REGISTER. */
	uint64_t offset;  /* Places: bits from the start. */
	enum values_space space;
	const uint8_t *bytes; /* ITEM_BYTES; NULL: those of value. */
	size_t n;	      /* Bytes, or pieces. */
	size_t first;	      /* Of the pieces. */
	enum values_state state;
	const char *reason;
};

struct evaluation {
	const struct values_scene *scene;
	struct values_place *place;
	struct reader r;
	struct item stack[STACK_MAX];
	size_t depth, base; /* Items below base are a caller's. */
	size_t open;	    /* First piece of the composite that is being made. */
	uint32_t *steps;
	bool llvm; /* AMD's dialect. */
	bool in_frame_base;
	bool failed;
	struct item hole; /* A number was asked of a hole. */
	bool has_hole;
};

static struct item hole(enum values_state state, const char *reason)
{
	return (struct item){ .kind = ITEM_HOLE, .state = state, .reason = reason };
}

static const struct item unsupported = { .kind = ITEM_HOLE, .state = VALUES_UNAVAILABLE,
					  .reason = "its place is told by an operation that is not known" };

static void push(struct evaluation *e, struct item i)
{
	if (e->depth == STACK_MAX)
		e->failed = true;
	else
		e->stack[e->depth++] = i;
}

static void push_value(struct evaluation *e, uint64_t v)
{
	push(e, (struct item){ .kind = ITEM_VALUE, .value = v });
}

static struct item pop(struct evaluation *e)
{
	if (e->depth == e->base) {
		e->failed = true;
		return unsupported;
	}
	return e->stack[--e->depth];
}

/* ------------------------------------------------------------------ places ------------------- */

static uint64_t loaded(const struct evaluation *e, const struct item *i)
{
	return i->origin == ORIGIN_ADDRESS ? i->value + e->scene->frame->load_bias : i->value;
}

/* NVIDIA's classes (enum ptxStorageKind of cudadebugger.h). */
static bool class_to_space(uint64_t class, enum values_space *ret)
{
	static const int8_t spaces[] = {
		[1] = VALUES_SPACE_CODE + 1,	 [4] = VALUES_SPACE_CONSTANT + 1,
		[5] = VALUES_SPACE_GLOBAL + 1,	 [6] = VALUES_SPACE_PRIVATE + 1,
		[7] = VALUES_SPACE_PARAMETER + 1, [8] = VALUES_SPACE_SHARED + 1,
		[12] = VALUES_SPACE_GENERIC + 1,
	};

	if (!class)
		*ret = VALUES_SPACE_GENERIC;
	else if (class < sizeof(spaces) / sizeof(spaces[0]) && spaces[class])
		*ret = (enum values_space)(spaces[class] - 1);
	else
		return false;
	return true;
}

static void place_number(const struct evaluation *e, const struct item *i, struct values_piece *p)
{
	p->kind = VALUES_PIECE_MEMORY;
	p->number = loaded(e, i);
	p->space = VALUES_SPACE_GLOBAL;
	if (e->scene->frame->is_cuda) {
		if (class_to_space(e->scene->address_class, &p->space))
			return;
		p->reason = "its memory is of a kind that is not known";
	} else if (i->origin == ORIGIN_ADDRESS || (e->llvm && !i->spaced && i->origin == ORIGIN_NONE)) {
		/* Without LLVM's operations, a number is a value whose DW_OP_stack_value was left out. */
		return;
	} else if (i->spaced && i->origin == ORIGIN_REGISTER) {
		p->kind = VALUES_PIECE_REGISTER;
		p->number = i->number;
		return;
	} else {
		p->reason = "its expression is not clear about what it means";
	}
	p->kind = VALUES_PIECE_HOLE;
	p->state = VALUES_UNAVAILABLE;
}

/* Make one piece of an item that is not a list of them. */
static struct values_piece piece_of(const struct evaluation *e, const struct item *i, uint64_t bits)
{
	struct values_piece p = { .bits = bits, .offset = i->offset, .number = i->value };

	switch (i->kind) {
	case ITEM_VALUE:
		place_number(e, i, &p);
		break;
	case ITEM_MEMORY:
		p.kind = VALUES_PIECE_MEMORY;
		p.space = i->space;
		if (i->space == VALUES_SPACE_PRIVATE || i->space == VALUES_SPACE_SHARED)
			p.number = (uint32_t)p.number;
		break;
	case ITEM_REGISTER:
		p.kind = VALUES_PIECE_REGISTER;
		break;
	case ITEM_BYTES:
		p.kind = VALUES_PIECE_BYTES;
		p.bytes = i->bytes;
		p.n_bytes = i->n;
		break;
	default:
		p.kind = VALUES_PIECE_HOLE;
		p.state = i->state;
		p.reason = i->reason;
	}
	return p;
}

static void add_piece(struct evaluation *e, struct values_piece p)
{
	struct values_place *place = e->place;

	if (place->used == VALUES_PIECES_MAX)
		e->failed = true;
	else
		place->pieces[place->used++] = p;
}

/* Add so many bits of a list of pieces. */
static void add_pieces(struct evaluation *e, const struct item *i, uint64_t bits)
{
	uint64_t skip = i->offset;

	for (size_t k = i->first; k < i->first + i->n && bits && !e->failed; k++) {
		struct values_piece p = e->place->pieces[k];

		if (p.bits != VALUES_REST && p.bits <= skip) {
			skip -= p.bits;
			continue;
		}
		p.offset += skip;
		if (p.bits != VALUES_REST)
			p.bits -= skip;
		skip = 0;
		if (p.bits > bits)
			p.bits = bits;
		if (bits != VALUES_REST)
			bits -= p.bits;
		add_piece(e, p);
	}
	if (bits && bits != VALUES_REST) {
		struct item rest = hole(VALUES_UNAVAILABLE, "its place is shorter than it");

		add_piece(e, piece_of(e, &rest, bits));
	}
}

static void add_item(struct evaluation *e, const struct item *i, uint64_t bits)
{
	if (i->kind == ITEM_PIECES) {
		add_pieces(e, i, bits);
		return;
	}
	if (i->kind == ITEM_MEMORY && i->framed)
		e->place->uses_frame = true;
	add_piece(e, piece_of(e, i, bits));
}

/* ------------------------------------------------------------------ numbers ------------------ */

/* Take a number.  A place in memory gives its address; a hole makes the result one. */
static uint64_t number_of(struct evaluation *e, const struct item *i)
{
	if (i->kind == ITEM_VALUE)
		return loaded(e, i);
	if (i->kind == ITEM_MEMORY)
		return i->value + i->offset / 8;
	if (i->kind == ITEM_BYTES && !i->bytes && !i->offset)
		return i->value;
	if (i->kind == ITEM_HOLE && !e->has_hole)
		e->hole = *i;
	else if (!e->has_hole)
		e->hole = unsupported;
	e->has_hole = true;
	return 0;
}

static uint64_t pop_number(struct evaluation *e)
{
	struct item i = pop(e);

	return number_of(e, &i);
}

/* Read up to 8 bytes of a place as a number. */
static void push_content(struct evaluation *e, const struct item *i, uint64_t size)
{
	uint8_t data[8] = { 0 }, known[8];
	struct values_bytes b;
	uint64_t v = 0;
	struct values_place one = { 0 };

	if (!size || size > sizeof(data) || i->kind == ITEM_PIECES) {
		push(e, unsupported);
		return;
	}
	one.n = 1;
	one.rows = e->llvm;
	one.pieces[0] = piece_of(e, i, size * 8);
	values_place_read(&one, e->scene->frame, size, data, known, &b);
	if (b.state != VALUES_OK) {
		push(e, hole(b.state == VALUES_PARTIAL ? VALUES_UNAVAILABLE : b.state, b.reason));
		return;
	}
	for (size_t k = sizeof(data); k--;)
		v = v << 8 | data[k];
	push_value(e, v);
}

typedef void operation_fn(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b);

static void run_constant(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	push_value(e, a);
}

static void run_literal(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	push_value(e, op - DW_OP_lit0);
}

static void run_address(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	push(e, (struct item){ .kind = ITEM_VALUE, .value = a, .origin = ORIGIN_ADDRESS });
}

static void run_indexed_address(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	const struct values_scene *s = e->scene;
	struct reader r;

	if (a >= s->n_addresses) {
		push(e, hole(VALUES_UNAVAILABLE, "its address is not in the file"));
		return;
	}
	reader_init(&r, s->addresses + a * 8, 8);
	a = reader_u64(&r);
	if (op == DW_OP_constx)
		push_value(e, a);
	else
		run_address(e, op, a, 0);
}

static void run_register(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	if (op != DW_OP_regx)
		a = op - DW_OP_reg0;
	push(e, (struct item){ .kind = ITEM_REGISTER, .value = a });
}

static void run_based(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	struct item i = { .kind = ITEM_REGISTER };

	if (op != DW_OP_bregx) {
		b = a;
		a = op - DW_OP_breg0;
	}
	i.value = a;
	push_content(e, &i, 4);
	if (e->failed || e->stack[e->depth - 1].kind != ITEM_VALUE)
		return;
	e->stack[e->depth - 1].value += b;
	/* A stack pointer's content is no value of the program, whatever follows. */
	if (!b && a != SGPR32 && a != SGPR33) {
		e->stack[e->depth - 1].origin = ORIGIN_REGISTER;
		e->stack[e->depth - 1].number = a;
	}
}

static void run_dup(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	size_t back = op == DW_OP_dup ? 0 : op == DW_OP_over ? 1 : a;

	if (back >= e->depth - e->base)
		e->failed = true;
	else
		push(e, e->stack[e->depth - 1 - back]);
}

static void run_drop(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	(void)pop(e);
}

static void run_swap(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	struct item x = pop(e), y = pop(e);

	push(e, x);
	push(e, y);
}

static void run_rot(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	struct item x = pop(e), y = pop(e), z = pop(e);

	push(e, x);
	push(e, z);
	push(e, y);
}

static void run_unary(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	uint64_t v = pop_number(e);

	if (op == DW_OP_abs)
		push_value(e, (int64_t)v < 0 ? -v : v);
	else
		push_value(e, op == DW_OP_neg ? -v : ~v);
}

static uint64_t shift(uint8_t op, uint64_t v, uint64_t by)
{
	bool negative = op == DW_OP_shra && (int64_t)v < 0;

	if (by > 63)
		return negative ? UINT64_MAX : 0;
	if (op == DW_OP_shl)
		return v << by;
	v >>= by;
	return negative && by ? v | UINT64_MAX << (64 - by) : v;
}

/* Division with sign, that of the least number by -1 included. */
static uint64_t divide(uint64_t x, uint64_t y)
{
	return y == UINT64_MAX ? -x : (uint64_t)((int64_t)x / (int64_t)y);
}

static bool calculate(uint8_t op, uint64_t x, uint64_t y, uint64_t *ret)
{
	int64_t l = (int64_t)x, r = (int64_t)y;

	switch (op) {
	case DW_OP_and: *ret = x & y; break;
	case DW_OP_or: *ret = x | y; break;
	case DW_OP_xor: *ret = x ^ y; break;
	case DW_OP_plus: *ret = x + y; break;
	case DW_OP_minus: *ret = x - y; break;
	case DW_OP_mul: *ret = x * y; break;
	case DW_OP_shl: case DW_OP_shr: case DW_OP_shra: *ret = shift(op, x, y); break;
	case DW_OP_eq: *ret = x == y; break;
	case DW_OP_ne: *ret = x != y; break;
	case DW_OP_ge: *ret = l >= r; break;
	case DW_OP_gt: *ret = l > r; break;
	case DW_OP_le: *ret = l <= r; break;
	case DW_OP_lt: *ret = l < r; break;
	case DW_OP_div: *ret = y ? divide(x, y) : 0; return y;
	default: *ret = y ? x % y : 0; return y;
	}
	return true;
}

static void run_binary(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	struct item y = pop(e), x = pop(e);
	bool sum = op == DW_OP_plus || op == DW_OP_minus;
	uint64_t v;

	if (sum && x.kind == ITEM_MEMORY && y.kind == ITEM_VALUE) {
		x.value = op == DW_OP_plus ? x.value + y.value : x.value - y.value;
		push(e, x);
		return;
	}
	if (op == DW_OP_plus && y.kind == ITEM_MEMORY && x.kind == ITEM_VALUE) {
		y.value += x.value;
		push(e, y);
		return;
	}
	if (calculate(op, number_of(e, &x), number_of(e, &y), &v))
		push_value(e, v);
	else
		push(e, hole(VALUES_UNAVAILABLE, "its place is told by a division by zero"));
	e->stack[e->depth - 1].spaced = x.spaced;
}

static void run_plus_constant(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	struct item *i = &e->stack[e->depth - 1];

	if (i->kind == ITEM_MEMORY || i->kind == ITEM_VALUE) {
		i->value += a;
		if (a && i->origin == ORIGIN_REGISTER)
			i->origin = ORIGIN_NONE;
	} else {
		push_value(e, pop_number(e) + a);
	}
}

static void jump(struct evaluation *e, uint64_t by)
{
	int64_t to = (int64_t)e->r.pos + (int16_t)by;

	if (to < 0)
		e->failed = true;
	else
		reader_seek(&e->r, (size_t)to);
}

static void run_jump(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	if (op == DW_OP_skip || pop_number(e))
		jump(e, a);
	if (e->has_hole)
		e->failed = true;
}

static void run_deref(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	struct item i = pop(e);

	/* A register's content that is used as an address is one of generic memory. */
	if (i.kind == ITEM_VALUE && !i.spaced)
		i = (struct item){ .kind = ITEM_MEMORY, .value = loaded(e, &i),
				   .space = VALUES_SPACE_GENERIC };
	push_content(e, &i, op == DW_OP_deref ? 8 : a);
}

static void run_convert(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	uint64_t v = pop_number(e);
	struct values_base_type t;

	if (!a) {
		push_value(e, v);
		return;
	}
	if (!e->scene->find_type || e->scene->find_type(e->scene->context, a, &t) < 0 || !t.size ||
	    t.size > 8) {
		push(e, unsupported);
		return;
	}
	v = shift(DW_OP_shl, v, 64 - t.size * 8);
	push_value(e, shift(t.is_signed ? DW_OP_shra : DW_OP_shr, v, 64 - t.size * 8));
}

/* ------------------------------------------------------------------ places ------------------- */

static void push_frame_base(struct evaluation *e);

static void run_frame_based(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	struct item *i;

	if (e->in_frame_base) {
		e->failed = true;
		return;
	}
	push_frame_base(e);
	if (e->failed)
		return;
	i = &e->stack[e->depth - 1];
	if (i->kind == ITEM_MEMORY)
		i->value += a;
}

static void run_cfa(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	const struct values_frame *f = e->scene->frame;

	if (!f->is_cuda || !f->has_cfa)
		push(e, hole(VALUES_UNAVAILABLE, "where its stack frame lies is not known"));
	else
		push(e, (struct item){ .kind = ITEM_MEMORY, .space = VALUES_SPACE_PRIVATE,
				       .value = f->cfa });
}

/* Numbers of LLVM for AMD: 1 and 2 in plain DWARF, 3 and 5 in AMD's dialect. */
static bool number_to_space(bool llvm, uint64_t n, enum values_space *ret)
{
	switch (n) {
	case 0: *ret = VALUES_SPACE_GLOBAL; return llvm;
	case 1: *ret = llvm ? VALUES_SPACE_GENERIC : VALUES_SPACE_PRIVATE; return true;
	case 2: *ret = VALUES_SPACE_SHARED; return !llvm;
	case 3: *ret = VALUES_SPACE_SHARED; return true;
	case 5: *ret = VALUES_SPACE_PRIVATE; return true;
	default: return false;
	}
}

static void run_xderef(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	struct item i = pop(e);
	uint64_t n = pop_number(e);
	enum values_space space;

	if (i.kind == ITEM_HOLE) {
		push(e, i);
	} else if (e->scene->frame->is_cuda || !number_to_space(e->llvm, n, &space)) {
		push(e, unsupported);
	} else if (i.kind == ITEM_MEMORY && i.space == space) {
		push(e, i);
	} else if (i.kind == ITEM_VALUE && i.origin == ORIGIN_ADDRESS) {
		push(e, (struct item){ .kind = ITEM_MEMORY, .value = i.value, .space = space });
	} else if (i.kind == ITEM_VALUE && space == VALUES_SPACE_PRIVATE) {
		i.spaced = true;
		push(e, i);
	} else {
		push(e, hole(VALUES_UNAVAILABLE, "its expression is not clear about what it means"));
	}
}

static void run_stack_value(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	struct item i = pop(e);

	if (i.kind == ITEM_VALUE && i.origin == ORIGIN_REGISTER) {
		/* No more of its bytes are known than the register has. */
		push(e, (struct item){ .kind = ITEM_REGISTER, .value = i.number });
	} else if (i.kind == ITEM_VALUE) {
		push(e, (struct item){ .kind = ITEM_BYTES, .value = loaded(e, &i), .n = 8 });
	} else if (i.kind == ITEM_MEMORY) {
		/* An address behind a tail of a vanished slot could be meant, or its content. */
		push(e, hole(VALUES_UNAVAILABLE, "its expression is not clear about what it means"));
	} else {
		push(e, i);
	}
}

static void run_implicit(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	const uint8_t *bytes = reader_bytes(&e->r, a);

	push(e, (struct item){ .kind = ITEM_BYTES, .bytes = bytes, .n = bytes ? a : 0 });
}

static void run_piece(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	struct item i = e->depth > e->base ? pop(e) : hole(VALUES_OPTIMISED_OUT, "parts of it are optimised out");
	uint64_t bits = a;

	if (op == DW_OP_piece && __builtin_mul_overflow(a, 8, &bits))
		e->failed = true;
	else if (op == DW_OP_bit_piece && __builtin_add_overflow(i.offset, b, &i.offset))
		e->failed = true;
	else
		add_item(e, &i, bits);
}

/* ------------------------------------------------------------------ AMD's -------------------- */

static void run_llvm_form_address(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	uint64_t n = pop_number(e), address = pop_number(e);
	enum values_space space;

	if (number_to_space(true, n, &space))
		push(e, (struct item){ .kind = ITEM_MEMORY, .value = address, .space = space,
				       .framed = space == VALUES_SPACE_PRIVATE });
	else
		push(e, unsupported);
}

static void run_llvm_lane(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	push_value(e, e->scene->frame->lane);
}

static void move_place(struct evaluation *e, struct item i, uint64_t bits)
{
	if (i.kind == ITEM_VALUE) /* An address is a place in global memory. */
		i = (struct item){ .kind = ITEM_MEMORY, .value = loaded(e, &i),
				   .space = VALUES_SPACE_GLOBAL };
	if (i.kind == ITEM_MEMORY) {
		i.value += (uint64_t)((int64_t)bits >> 3);
		bits &= 7;
	}
	i.offset += bits;
	if (i.offset > UINT32_MAX && i.kind != ITEM_HOLE)
		i = unsupported;
	push(e, i);
}

static void run_llvm_offset(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	uint64_t by = a;

	if (op == 4 || op == 6)
		by = pop_number(e);
	move_place(e, pop(e), op == 6 ? by : by * 8);
}

static void run_llvm_undefined(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	push(e, hole(VALUES_OPTIMISED_OUT, NULL));
}

static void run_llvm_entry_register(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	push(e, hole(VALUES_NOT_SAVED, "it is where its caller had a register"));
}

static void run_llvm_based(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	uint64_t n = pop_number(e);
	struct item i = { .kind = ITEM_REGISTER, .value = a };
	uint64_t base;

	push_content(e, &i, 4);
	if (e->failed)
		return;
	base = pop_number(e);
	push_value(e, base + b);
	push_value(e, n);
	run_llvm_form_address(e, op, 0, 0);
}

static void close_pieces(struct evaluation *e)
{
	push(e, (struct item){ .kind = ITEM_PIECES, .first = e->open,
			       .n = e->place->used - e->open });
	e->open = e->place->used;
}

static void run_llvm_piece_end(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	close_pieces(e);
}

static void run_llvm_extend(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	struct item i = pop(e);

	/* Pieces of a composite that has not ended; pieces without bytes, of which any number would fit. */
	if (e->place->used != e->open || !a || b > VALUES_PIECES_MAX || (i.kind == ITEM_PIECES && !i.n))
		e->failed = true;
	for (uint64_t k = 0; k < b && !e->failed; k++)
		add_item(e, &i, a);
	close_pieces(e);
}

static void run_llvm_select(struct evaluation *e, uint8_t op, uint64_t a, uint64_t b)
{
	uint64_t mask = pop_number(e);
	struct item one = pop(e), zero = pop(e);

	if (e->place->used != e->open || b > 64 || a > UINT16_MAX)
		e->failed = true;
	for (uint64_t k = 0; k < b && !e->failed; k++) {
		struct item i = mask >> k & 1 ? one : zero;

		i.offset += k * a;
		add_item(e, &i, a);
	}
	close_pieces(e);
}

/* ------------------------------------------------------------------ table -------------------- */

enum operand { NONE, U1, S1, U2, S2, U4, S4, U8, ULEB, SLEB };

struct operation {
	operation_fn *run;
	uint8_t operands[2];
	uint8_t pops; /* So many items must be there. */
};

static const struct operation llvm_operations[] = {
	[1] = { NULL, { NONE }, 0 },
	[2] = { run_llvm_form_address, { NONE }, 2 },
	[3] = { run_llvm_lane, { NONE }, 0 },
	[4] = { run_llvm_offset, { NONE }, 2 },
	[5] = { run_llvm_offset, { ULEB }, 1 },
	[6] = { run_llvm_offset, { NONE }, 2 },
	[7] = { run_llvm_entry_register, { ULEB }, 0 },
	[8] = { run_llvm_undefined, { NONE }, 0 },
	[9] = { run_llvm_based, { ULEB, SLEB }, 1 },
	[10] = { run_llvm_piece_end, { NONE }, 0 },
	[11] = { run_llvm_extend, { ULEB, ULEB }, 1 },
	[12] = { run_llvm_select, { ULEB, ULEB }, 3 },
};
#define LLVM_OPERATIONS (sizeof(llvm_operations) / sizeof(llvm_operations[0]))
#define LLVM_USER	0xe9
/* Numbers before there was DW_OP_LLVM_user, from 0xe1 on. */
static const uint8_t llvm_old_numbers[] = { 2, 3, 4, 5, 6, 7, 8, 9, 0, 10, 11, 12 };

static const struct operation operations[256] = {
	[DW_OP_addr] = { run_address, { U8 }, 0 },
	[DW_OP_deref] = { run_deref, { NONE }, 1 },
	[DW_OP_const1u] = { run_constant, { U1 }, 0 },
	[DW_OP_const1s] = { run_constant, { S1 }, 0 },
	[DW_OP_const2u] = { run_constant, { U2 }, 0 },
	[DW_OP_const2s] = { run_constant, { S2 }, 0 },
	[DW_OP_const4u] = { run_constant, { U4 }, 0 },
	[DW_OP_const4s] = { run_constant, { S4 }, 0 },
	[DW_OP_const8u] = { run_constant, { U8 }, 0 },
	[DW_OP_const8s] = { run_constant, { U8 }, 0 },
	[DW_OP_constu] = { run_constant, { ULEB }, 0 },
	[DW_OP_consts] = { run_constant, { SLEB }, 0 },
	[DW_OP_dup] = { run_dup, { NONE }, 1 },
	[DW_OP_drop] = { run_drop, { NONE }, 1 },
	[DW_OP_over] = { run_dup, { NONE }, 2 },
	[DW_OP_pick] = { run_dup, { U1 }, 1 },
	[DW_OP_swap] = { run_swap, { NONE }, 2 },
	[DW_OP_rot] = { run_rot, { NONE }, 3 },
	[DW_OP_xderef] = { run_xderef, { NONE }, 2 },
	[DW_OP_abs] = { run_unary, { NONE }, 1 },
	[DW_OP_and ... DW_OP_mul] = { run_binary, { NONE }, 2 },
	[DW_OP_neg ... DW_OP_not] = { run_unary, { NONE }, 1 },
	[DW_OP_or ... DW_OP_plus] = { run_binary, { NONE }, 2 },
	[DW_OP_plus_uconst] = { run_plus_constant, { ULEB }, 1 },
	[DW_OP_shl ... DW_OP_xor] = { run_binary, { NONE }, 2 },
	[DW_OP_bra] = { run_jump, { S2 }, 1 },
	[DW_OP_eq ... DW_OP_ne] = { run_binary, { NONE }, 2 },
	[DW_OP_skip] = { run_jump, { S2 }, 0 },
	[DW_OP_lit0 ... DW_OP_lit31] = { run_literal, { NONE }, 0 },
	[DW_OP_reg0 ... DW_OP_reg31] = { run_register, { NONE }, 0 },
	[DW_OP_breg0 ... DW_OP_breg31] = { run_based, { SLEB }, 0 },
	[DW_OP_regx] = { run_register, { ULEB }, 0 },
	[DW_OP_fbreg] = { run_frame_based, { SLEB }, 0 },
	[DW_OP_bregx] = { run_based, { ULEB, SLEB }, 0 },
	[DW_OP_piece] = { run_piece, { ULEB }, 0 },
	[DW_OP_deref_size] = { run_deref, { U1 }, 1 },
	[DW_OP_call_frame_cfa] = { run_cfa, { NONE }, 0 },
	[DW_OP_bit_piece] = { run_piece, { ULEB, ULEB }, 0 },
	[DW_OP_implicit_value] = { run_implicit, { ULEB }, 0 },
	[DW_OP_stack_value] = { run_stack_value, { NONE }, 1 },
	[DW_OP_addrx] = { run_indexed_address, { ULEB }, 0 },
	[DW_OP_constx] = { run_indexed_address, { ULEB }, 0 },
	[DW_OP_convert] = { run_convert, { ULEB }, 1 },
};

static uint64_t read_operand(struct reader *r, uint8_t kind)
{
	switch (kind) {
	case U1: return reader_u8(r);
	case S1: return (uint64_t)(int8_t)reader_u8(r);
	case U2: return reader_u16(r);
	case S2: return (uint64_t)(int16_t)reader_u16(r);
	case U4: return reader_u32(r);
	case S4: return (uint64_t)(int32_t)reader_u32(r);
	case U8: return reader_u64(r);
	case ULEB: return reader_uleb(r);
	case SLEB: return (uint64_t)reader_sleb(r);
	default: return 0;
	}
}

/* @return the next operation; NULL when it is not known. */
static const struct operation *next_operation(struct evaluation *e, uint8_t *ret_op)
{
	uint8_t op = reader_u8(&e->r);
	uint64_t user = 0;

	if (op == LLVM_USER) {
		user = reader_uleb(&e->r);
		e->llvm = true;
	} else if (e->llvm && op >= 0xe1 && op < 0xe1 + sizeof(llvm_old_numbers)) {
		user = llvm_old_numbers[op - 0xe1];
	} else {
		*ret_op = op;
		return operations[op].run || op == DW_OP_nop ? &operations[op] : NULL;
	}
	*ret_op = (uint8_t)user;
	return user && user < LLVM_OPERATIONS && !e->scene->frame->is_cuda ? &llvm_operations[user] :
									     NULL;
}

static void run(struct evaluation *e)
{
	while (reader_left(&e->r) && !e->failed) {
		const struct operation *o;
		uint64_t a, b;
		uint8_t op;

		o = next_operation(e, &op);
		if (++*e->steps > STEPS_MAX || reader_is_bad(&e->r)) {
			e->failed = true;
			return;
		}
		if (!o) { /* What follows it is anybody's guess. */
			e->place->used = e->open = 0;
			e->depth = e->base;
			push(e, unsupported);
			return;
		}
		a = read_operand(&e->r, o->operands[0]);
		b = read_operand(&e->r, o->operands[1]);
		if (e->depth - e->base < o->pops || reader_is_bad(&e->r))
			e->failed = true;
		else if (o->run)
			o->run(e, op, a, b);
		if (e->has_hole && e->depth > e->base)
			e->stack[e->depth - 1] = e->hole;
		e->has_hole = false;
	}
	e->failed |= reader_is_bad(&e->r);
}

/* What a frame base names is the start of the frame in private memory. */
static struct item to_frame(struct evaluation *e, struct item i)
{
	const struct values_machine *m = e->scene->frame->machine;
	struct item frame = { .kind = ITEM_MEMORY, .space = VALUES_SPACE_PRIVATE, .framed = true };

	if (i.kind == ITEM_MEMORY) {
		i.framed = true;
		return i;
	}
	if (i.kind == ITEM_REGISTER && !e->scene->frame->is_cuda &&
	    (i.value == SGPR32 || i.value == SGPR33)) {
		push_content(e, &i, 4);
		i = pop(e);
		frame.value = m->stack_counts_waves ? i.value / m->lanes : i.value;
		return i.kind == ITEM_VALUE ? frame : i;
	}
	return i.kind == ITEM_HOLE ? i : unsupported;
}

static void push_frame_base(struct evaluation *e)
{
	struct evaluation inner = { .scene = e->scene, .place = e->place, .steps = e->steps,
				    .open = e->place->used, .llvm = e->llvm,
				    .in_frame_base = true };
	size_t used = e->place->used;

	reader_init(&inner.r, e->scene->frame_base.data, e->scene->frame_base.size);
	if (!e->scene->frame_base.size) {
		push(e, hole(VALUES_UNAVAILABLE, "where its stack frame lies is not known"));
		return;
	}
	run(&inner);
	e->place->used = used;
	if (inner.failed || !inner.depth)
		push(e, unsupported);
	else
		push(e, to_frame(e, pop(&inner)));
}

void values_evaluate(const struct values_scene *scene, struct values_operations x,
		     struct values_place *ret)
{
	uint32_t steps = 0;
	struct evaluation e = { .scene = scene, .place = ret, .steps = &steps,
				.llvm = scene->is_marked };

	ret->first = ret->n = ret->used = 0;
	ret->uses_frame = false;
	if (!x.size) {
		values_place_set_hole(ret, VALUES_OPTIMISED_OUT, NULL);
		return;
	}
	reader_init(&e.r, x.data, x.size);
	run(&e);
	if (!e.failed && ret->used == e.open && e.depth) {
		e.open = ret->used;
		add_item(&e, &e.stack[e.depth - 1], VALUES_REST);
	}
	ret->rows = e.llvm;
	ret->first = e.open;
	ret->n = ret->used - e.open;
	if (e.failed || !ret->n)
		values_place_set_hole(ret, VALUES_UNAVAILABLE, "its expression is broken");
}

bool values_expression_is_static(struct values_operations x, uint64_t address_class,
				 bool *ret_shared)
{
	enum values_space space = VALUES_SPACE_GLOBAL;
	struct reader r;
	uint8_t op;

	reader_init(&r, x.data, x.size);
	op = reader_u8(&r);
	if (op == DW_OP_addr)
		(void)reader_u64(&r);
	else if (op == DW_OP_addrx)
		(void)reader_uleb(&r);
	else
		return false;
	(void)class_to_space(address_class, &space);
	/* On AMD, an address space follows. */
	*ret_shared = space == VALUES_SPACE_SHARED || reader_left(&r);
	return !reader_is_bad(&r);
}
