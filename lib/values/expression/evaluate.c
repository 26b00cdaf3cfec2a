/* SPDX-License-Identifier: MIT */
/* Parsed expressions, evaluated for a lane.  Memory is read when a value is needed, not before. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "values/expression/expression_internal.h"
#include "values/text/value_internal.h"

struct run {
	const struct values_expression *e;
	struct values_types *types;
	const struct values_names *names;
	struct values_call *call;
	struct values_error *error;
};

typedef struct values_result result;

static int eval(struct run *x, uint16_t at, result *ret);

static const struct values_term *term_of(const struct run *x, uint16_t at)
{
	return &x->e->terms[at];
}

#define FAIL(x, t, ...) values_error_set((x)->error, (t)->column, __VA_ARGS__)

void values_result_deinit(struct values_result *r)
{
	free(r->bytes);
	free(r->known);
	*r = (struct values_result){ 0 };
}

/* ------------------------------------------------------------------ bytes -------------------- */

/* The bytes of a result that are wanted: of what is large, as much as is ever shown. */
static uint64_t bytes_wanted(const result *v)
{
	struct values_type *t = values_type_strip(v->type);
	uint64_t size = values_type_size(t);

	if (v->bit_size)
		return (v->bit + v->bit_size + 7) / 8;
	if ((t->kind == VALUES_TYPE_ARRAY || t->kind == VALUES_TYPE_STRUCT || t->kind == VALUES_TYPE_UNION) &&
	    size > VALUES_BYTES_MAX / 2)
		size = VALUES_BYTES_MAX / 2;
	return size;
}

/* What a pointer out of another lane leads to is read there. */
static int read_memory(struct run *x, const result *v)
{
	uint32_t before, ignored;
	int r;

	if (v->has_lane && x->names->lane(x->names->context, v->lane, &before) < 0)
		return -ENOENT;
	r = values_call_read(x->call, v->space, v->address, v->bytes, v->size);
	if (v->has_lane)
		(void)x->names->lane(x->names->context, before, &ignored);
	return r;
}

/* Something that was made of a value out of another lane is that lane's. */
static void keep_lane(result *to, const result *from)
{
	to->has_lane = from->has_lane;
	to->lane = from->lane;
}

/* Read a result's bytes unless it has them. */
static int load(struct run *x, const struct values_term *t, result *v)
{
	uint64_t size = bytes_wanted(v);
	int r;

	if (v->bytes || !v->has_address)
		return 0;
	if (!size || size > VALUES_BYTES_MAX)
		return FAIL(x, t, size ? "the value is too large" : "the size of the value is unknown");
	v->bytes = malloc((size_t)size);
	if (!v->bytes)
		return -ENOMEM;
	v->size = (size_t)size;
	v->cut = !v->bit_size && size < values_type_size(v->type);
	r = read_memory(x, v);
	if (r == -EDQUOT)
		return FAIL(x, t, "the expression reads too much memory");
	if (r < 0)
		return FAIL(x, t, "%llu bytes at 0x%llx of %s memory cannot be read: %s", (unsigned long long)size,
			    (unsigned long long)v->address, values_space_name(v->space), strerror(-r));
	return 0;
}

static const char *state_text(enum values_state state)
{
	switch (state) {
	case VALUES_OPTIMISED_OUT:
		return "optimised out";
	case VALUES_NOT_SAVED:
		return "not saved by the function that was called";
	case VALUES_UNREADABLE:
		return "it cannot be read";
	case VALUES_INACTIVE:
		return "the lane is not active";
	case VALUES_PROLOGUE:
		return "its function has not begun";
	default:
		return "not available";
	}
}

static bool are_known(const result *v, uint64_t first, uint64_t size)
{
	if (!v->bytes || first > v->size || size > v->size - first)
		return false;
	for (uint64_t i = 0; v->known && i < size; i++)
		if (!v->known[first + i])
			return false;
	return true;
}

/* Go to a part of a result, in memory or in its bytes. */
static int narrow(struct run *x, const struct values_term *t, result *v, struct values_type *type, uint64_t bit,
		  uint32_t bit_size)
{
	uint64_t first = bit / 8, size;

	v->type = type;
	v->bit = (uint32_t)(bit % 8);
	v->bit_size = bit_size;
	size = bytes_wanted(v);
	if (v->bytes) {
		if (first > v->size)
			first = v->size;
		if (size > v->size - first)
			size = v->size - first;
		memmove(v->bytes, v->bytes + first, size);
		if (v->known)
			memmove(v->known, v->known + first, size);
		v->size = (size_t)size;
		if (!size && !v->has_address)
			return FAIL(x, t, "it lies outside of the value");
	}
	if (v->has_address) {
		/* What was read of the whole may be less than what is wanted of the part. */
		free(v->bytes);
		free(v->known);
		v->bytes = v->known = NULL;
		v->address += bit / 8;
	}
	return 0;
}

/* ------------------------------------------------------------------ numbers ------------------ */

static bool decays(result *v)
{
	return values_type_strip(v->type)->kind == VALUES_TYPE_ARRAY && v->has_address;
}

static struct values_number integer_of(const struct values_scalar *s, const uint8_t *bytes, uint32_t size)
{
	bool is_signed = s->encoding == VALUES_SIGNED || s->encoding == VALUES_SIGNED_CHAR;

	return (struct values_number){ .is_signed = is_signed, .size = (uint8_t)size,
				       .integer = values_scalar_integer(s, bytes) };
}

static int read_number(struct run *x, const struct values_term *t, result *v, struct values_number *ret)
{
	struct values_type *type = values_type_strip(v->type);
	struct values_scalar s = type->scalar;
	uint8_t field[16];
	const uint8_t *bytes;
	size_t unused;

	if (values_wrapped_number(type, &s))
		type = NULL;
	if (type && type->kind == VALUES_TYPE_ENUM)
		(void)values_type_enumerators(type, &unused), s = type->scalar;
	if ((type && type->kind != VALUES_TYPE_SCALAR && type->kind != VALUES_TYPE_ENUM &&
	     type->kind != VALUES_TYPE_POINTER) || s.encoding == VALUES_RAW || s.size > 8)
		return FAIL(x, t, "this is no number");
	if (!are_known(v, 0, v->bit_size ? (v->bit + v->bit_size + 7) / 8 : s.size))
		return FAIL(x, t, "its value is not known: %s", state_text(v->lack));
	bytes = v->bytes;
	if (v->bit_size) {
		values_bits_extract(v->bytes, v->bit, v->bit_size,
				    s.encoding == VALUES_SIGNED || s.encoding == VALUES_SIGNED_CHAR, field);
		bytes = field;
	}
	*ret = (struct values_number){ .is_real = true, .size = s.size == 8 ? 8 : 4 };
	if (!values_scalar_float(&s, bytes, &ret->real))
		*ret = integer_of(&s, bytes, s.size);
	return 0;
}

/* The value of a scalar, pointer or array, which is its address. */
static int number_of(struct run *x, const struct values_term *t, result *v, struct values_number *ret)
{
	int r;

	if (decays(v)) {
		*ret = (struct values_number){ .size = 8, .integer = v->address };
		return 0;
	}
	r = load(x, t, v);
	return r < 0 ? r : read_number(x, t, v, ret);
}

static bool is_true(const struct values_number *n)
{
	return n->is_real ? n->real != 0 : n->integer != 0;
}

static int set_bytes(result *ret, struct values_type *type, const void *bytes, size_t size)
{
	*ret = (result){ .type = type, .size = size, .bytes = malloc(size) };
	if (!ret->bytes)
		return -ENOMEM;
	memcpy(ret->bytes, bytes, size);
	return 0;
}

static int set_number(struct run *x, const struct values_number *n, result *ret)
{
	static const struct {
		const char *name;
		bool is_real, is_signed;
		uint8_t size;
	} types[] = { { "float", true, false, 4 }, { "double", true, false, 8 },
		      { "int", false, true, 4 },   { "unsigned int", false, false, 4 },
		      { "long", false, true, 8 },  { "unsigned long", false, false, 8 },
		      { "char", false, true, 1 } };
	size_t i = 0;
	float single = (float)n->real;

	while (i + 1 < sizeof(types) / sizeof(types[0]) &&
	       (types[i].is_real != n->is_real || types[i].size != n->size ||
		(!n->is_real && types[i].is_signed != n->is_signed)))
		i++;
	if (n->is_real)
		return set_bytes(ret, values_type_named(x->types, types[i].name),
				 n->size == 4 ? (const void *)&single : (const void *)&n->real, n->size);
	return set_bytes(ret, values_type_named(x->types, types[i].name), &n->integer, n->size);
}

static int set_truth(struct run *x, bool value, result *ret)
{
	uint8_t byte = value;

	return set_bytes(ret, values_type_named(x->types, "bool"), &byte, 1);
}

static int set_pointer(struct run *x, struct values_type *target, enum values_space space, uint64_t address,
		       result *ret)
{
	return set_bytes(ret, values_type_pointer(x->types, target, space), &address, sizeof(address));
}

/* A pointer, or an array that becomes one. */
struct pointer {
	struct values_type *target;
	enum values_space space;
	uint64_t address;
};

static bool is_pointer(result *v)
{
	return values_type_strip(v->type)->kind == VALUES_TYPE_POINTER || decays(v);
}

static int pointer_of(struct run *x, const struct values_term *t, result *v, struct pointer *ret)
{
	struct values_type *type = values_type_strip(v->type);
	struct values_number n;
	int r;

	if (!is_pointer(v))
		return FAIL(x, t, "this is no pointer");
	r = number_of(x, t, v, &n);
	*ret = (struct pointer){ values_type_target(type), decays(v) ? v->space : type->space, n.integer };
	return r;
}

static int step_of(struct run *x, const struct values_term *t, const struct pointer *p, uint64_t *ret)
{
	*ret = values_type_size(p->target);
	if (!*ret && values_type_strip(p->target)->kind == VALUES_TYPE_VOID)
		*ret = 1; /* As GNU C has it. */
	return *ret ? 0 : FAIL(x, t, "the size of what it points to is unknown");
}

/* What a reference leads to takes its place. */
static int follow_reference(struct run *x, const struct values_term *t, result *v)
{
	struct values_type *type = values_type_strip(v->type);
	const result from = *v;
	uint64_t address;
	int r;

	if (type->kind != VALUES_TYPE_REFERENCE && type->kind != VALUES_TYPE_RVALUE_REFERENCE)
		return 0;
	r = load(x, t, v);
	if (r < 0)
		return r;
	if (!are_known(v, 0, type->scalar.size))
		return FAIL(x, t, "its value is not known: %s", state_text(v->lack));
	address = values_scalar_integer(&type->scalar, v->bytes);
	values_result_deinit(v);
	*v = (result){ .type = values_type_target(type), .has_address = true, .space = type->space,
		       .address = address };
	keep_lane(v, &from);
	return 0;
}

/* ------------------------------------------------------------------ names -------------------- */

static int eval_name(struct run *x, const struct values_term *t, result *ret)
{
	int r = x->names->variable ? x->names->variable(x->names->context, t->name, ret) : -ENOENT;

	if (r == -ENOENT)
		return FAIL(x, t, "there is no %.64s here", t->name);
	if (r == -ENOTUNIQ)
		return FAIL(x, t, "several compile units have a %.64s, and this function's has none", t->name);
	if (r == -EDQUOT)
		return FAIL(x, t, "the expression reads too much memory");
	if (r < 0)
		return r == -ENOMEM ? r : FAIL(x, t, "%.64s cannot be had: %s", t->name, strerror(-r));
	return follow_reference(x, t, ret);
}

static int eval_register(struct run *x, const struct values_term *t, int64_t lane, result *ret)
{
	int r = x->names->reg ? x->names->reg(x->names->context, t->name, lane, ret) : -ENOENT;

	if (r == -ENOENT)
		return FAIL(x, t, "there is no register %.64s here", t->name);
	return r < 0 && r != -ENOMEM ? FAIL(x, t, "%.64s cannot be read: %s", t->name, strerror(-r)) : r;
}

static int eval_lane(struct run *x, const struct values_term *t, result *ret)
{
	struct values_number n;
	result which = { 0 };
	uint32_t before, ignored;
	int r = eval(x, t->a, &which);

	if (r == 0)
		r = number_of(x, t, &which, &n);
	values_result_deinit(&which);
	if (r < 0)
		return r;
	if (n.is_real || !x->names->lane || x->names->lane(x->names->context, n.integer, &before) < 0)
		return FAIL(x, t, "there is no such lane");
	r = eval(x, t->b, ret);
	if (r == 0)
		r = load(x, t, ret);
	/* Its address means something else in this lane. */
	ret->has_address = false;
	if (!ret->has_lane) {
		ret->has_lane = true;
		ret->lane = (uint32_t)n.integer;
	}
	(void)x->names->lane(x->names->context, before, &ignored);
	return r;
}

/* Find the type that a cast names. */
static int type_of(struct run *x, const struct values_term *t, struct values_type **ret)
{
	struct values_type *type = !strcmp(t->name, "void") ? values_type_void(x->types) :
							      values_type_named(x->types, t->name);

	if (!type && x->names->type)
		type = x->names->type(x->names->context, t->name);
	if (!type)
		return FAIL(x, t, "there is no type %.64s here", t->name);
	for (unsigned i = 0; i < t->stars; i++)
		type = values_type_pointer(x->types, type, i == 0 && t->has_space ? t->space : VALUES_SPACE_GENERIC);
	*ret = type;
	return 0;
}

/* ------------------------------------------------------------------ parts -------------------- */

static int take_member(struct run *x, const struct values_term *t, result *v)
{
	struct values_type *type = values_type_strip(v->type);
	static const char parts[] = "xyzw";
	struct values_member m;
	int r;

	if (type->kind == VALUES_TYPE_ARRAY && type->is_vector && t->name[0] && !t->name[1] &&
	    strchr(parts, t->name[0]) && (uint64_t)(strchr(parts, t->name[0]) - parts) < type->count)
		return narrow(x, t, v, values_type_target(type),
			      8 * values_type_stride(type) * (uint64_t)(strchr(parts, t->name[0]) - parts), 0);
	if (type->kind == VALUES_TYPE_POINTER)
		return FAIL(x, t, "this is a pointer: use ->");
	if (type->kind != VALUES_TYPE_STRUCT && type->kind != VALUES_TYPE_UNION)
		return FAIL(x, t, "this has no members");
	if (!values_member_find(type, t->name, &m))
		return FAIL(x, t, "there is no member %.64s", t->name);
	r = narrow(x, t, v, m.type, m.bit_offset, m.bit_size);
	return r < 0 ? r : follow_reference(x, t, v);
}

static int eval_part(struct run *x, const struct values_term *t, result *v)
{
	const struct values_member *m;
	struct values_type *type;
	int r = eval(x, t->a, v);
	size_t n;

	if (r < 0)
		return r;
	type = values_type_strip(v->type);
	if (type->kind != VALUES_TYPE_STRUCT && type->kind != VALUES_TYPE_UNION)
		return FAIL(x, t, "this has no members");
	m = values_type_members(type, &n);
	if (t->number >= n || !m[t->number].has_place)
		return FAIL(x, t, "there is no such member");
	r = narrow(x, t, v, m[t->number].type, m[t->number].bit_offset, m[t->number].bit_size);
	return r < 0 ? r : follow_reference(x, t, v);
}

/* Go where a pointer leads. */
static int dereference(struct run *x, const struct values_term *t, result *v, uint64_t index)
{
	const result from = *v;
	struct pointer p;
	uint64_t step = 0;
	int r = pointer_of(x, t, v, &p);

	if (r == 0 && values_type_strip(p.target)->kind == VALUES_TYPE_VOID)
		return FAIL(x, t, "a pointer to void leads to nothing that has a type");
	if (r == 0 && index)
		r = step_of(x, t, &p, &step);
	values_result_deinit(v);
	if (r < 0)
		return r;
	*v = (result){ .type = p.target, .has_address = true, .space = p.space, .address = p.address + index * step };
	keep_lane(v, &from);
	return follow_reference(x, t, v);
}

/* An element of an array that lies in no memory. */
static int take_element(struct run *x, const struct values_term *t, result *v, const struct values_number *n)
{
	struct values_type *type = values_type_strip(v->type);

	if (n->integer >= type->count || n->integer > VALUES_BYTES_MAX)
		return FAIL(x, t, "the array has %llu elements", (unsigned long long)type->count);
	return narrow(x, t, v, values_type_target(type), 8 * values_type_stride(type) * n->integer, 0);
}

static int eval_index(struct run *x, const struct values_term *t, result *ret)
{
	const struct values_term *whole = term_of(x, t->a);
	struct values_number n;
	result index = { 0 };
	int r = eval(x, t->b, &index);

	if (r == 0)
		r = number_of(x, t, &index, &n);
	values_result_deinit(&index);
	if (r < 0)
		return r;
	if (n.is_real)
		return FAIL(x, t, "an index is an integer");
	if (whole->op == OP_REGISTER)
		return n.integer > UINT32_MAX ? FAIL(x, t, "there is no such lane") :
						eval_register(x, whole, (int64_t)n.integer, ret);
	r = eval(x, t->a, ret);
	if (r < 0)
		return r;
	if (values_type_strip(ret->type)->kind == VALUES_TYPE_ARRAY && !ret->has_address)
		return take_element(x, t, ret, &n);
	return dereference(x, t, ret, n.integer);
}

static int eval_repeat(struct run *x, const struct values_term *t, result *ret)
{
	struct values_number n = { 0 };
	result count = { 0 };
	uint64_t size;
	int r = eval(x, t->b, &count);

	if (r == 0)
		r = number_of(x, t, &count, &n);
	values_result_deinit(&count);
	if (r == 0)
		r = eval(x, t->a, ret);
	if (r < 0)
		return r;
	size = values_type_size(ret->type);
	if (!ret->has_address || ret->bit_size)
		return FAIL(x, t, "what is in front of @ lies in no memory");
	if (n.is_real || !n.integer || !size || n.integer > VALUES_BYTES_MAX / size)
		return FAIL(x, t, "the number behind @ is not from 1 to %llu",
			    (unsigned long long)(size ? VALUES_BYTES_MAX / size : 0));
	free(ret->bytes);
	free(ret->known);
	ret->bytes = ret->known = NULL;
	ret->type = values_type_array(x->types, ret->type, n.integer);
	return 0;
}

/* ------------------------------------------------------------------ one operand -------------- */

static int take_address(struct run *x, const struct values_term *t, result *v)
{
	result where = *v;
	int r;

	if (!v->has_address || v->bit_size)
		return FAIL(x, t, v->bit_size ? "a bit field has no address" : "this lies in no memory");
	r = set_pointer(x, v->type, v->space, v->address, v);
	keep_lane(v, &where);
	values_result_deinit(&where);
	return r;
}

/* Convert a number to a scalar type. */
static int convert(struct run *x, const struct values_term *t, struct values_type *type,
		   const struct values_number *n, result *ret)
{
	struct values_type *to = values_type_strip(type);
	struct values_scalar s = to->scalar;
	double real = n->is_real ? n->real : n->is_signed ? (double)(int64_t)n->integer : (double)n->integer;
	float single = (float)real;
	uint64_t integer = n->integer;
	uint8_t truth = is_true(n);

	if (n->is_real)
		integer = fabs(real) < 0x1p63 ? (uint64_t)(int64_t)real : 0;
	if (to->kind != VALUES_TYPE_SCALAR && to->kind != VALUES_TYPE_ENUM && to->kind != VALUES_TYPE_POINTER)
		return FAIL(x, t, "a number cannot be cast to this type");
	if (s.encoding == VALUES_BOOL && s.size == 1)
		return set_bytes(ret, type, &truth, 1);
	if (s.encoding == VALUES_FLOAT && s.size == 4)
		return set_bytes(ret, type, &single, sizeof(single));
	if (s.encoding == VALUES_FLOAT && s.size == 8)
		return set_bytes(ret, type, &real, sizeof(real));
	if (s.encoding == VALUES_FLOAT || s.encoding == VALUES_BFLOAT || s.encoding == VALUES_RAW || s.size > 8 ||
	    !s.size)
		return FAIL(x, t, "a number cannot be cast to this type");
	return set_bytes(ret, type, &integer, s.size);
}

/* A pointer keeps its space when the cast names none. */
static struct values_type *keep_space(struct run *x, const struct values_term *t, struct values_type *type,
				      result *from)
{
	struct values_type *to = values_type_strip(type);
	enum values_space space;

	if (to->kind != VALUES_TYPE_POINTER || t->has_space || t->stars != 1 || !is_pointer(from))
		return type;
	space = decays(from) ? from->space : values_type_strip(from->type)->space;
	return values_type_pointer(x->types, values_type_target(to), space);
}

static int eval_cast(struct run *x, const struct values_term *t, result *ret)
{
	struct values_number n;
	struct values_type *type;
	result v = { 0 };
	int r = type_of(x, t, &type);

	if (r == 0)
		r = eval(x, t->a, &v);
	if (r == 0)
		r = number_of(x, t, &v, &n);
	if (r == 0)
		r = convert(x, t, keep_space(x, t, type, &v), &n, ret);
	keep_lane(ret, &v);
	values_result_deinit(&v);
	return r;
}

static int eval_at_address(struct run *x, const struct values_term *t, result *ret)
{
	struct values_number n;
	struct values_type *type;
	enum values_space space = t->has_space ? t->space : VALUES_SPACE_GENERIC;
	result v = { 0 };
	int r = type_of(x, t, &type);

	if (r == 0)
		r = eval(x, t->a, &v);
	if (r == 0)
		r = number_of(x, t, &v, &n);
	if (r == 0 && n.is_real)
		r = FAIL(x, t, "an address is an integer");
	if (r == 0 && is_pointer(&v) && !t->has_space)
		space = decays(&v) ? v.space : values_type_strip(v.type)->space;
	if (r == 0)
		*ret = (result){ .type = type, .has_address = true, .space = space, .address = n.integer };
	keep_lane(ret, &v);
	values_result_deinit(&v);
	return r;
}

/* A name behind sizeof may be that of a type, if it is not that of a variable. */
static int eval_sizeof(struct run *x, const struct values_term *t, result *ret)
{
	const struct values_term *of = t->op == OP_SIZEOF_TYPE ? t : term_of(x, t->a);
	struct values_number n = { .size = 8 };
	struct values_type *type = NULL;
	struct values_error ignored;
	result v = { 0 };
	int r = of == t ? -EINVAL : eval(x, t->a, &v);

	if (r == -EINVAL && (of == t || of->op == OP_NAME)) {
		struct run as_type = *x;

		as_type.error = of == t ? x->error : &ignored;
		if (type_of(&as_type, of, &type) == 0)
			r = 0;
	}
	if (r == 0)
		n.integer = values_type_size(type ? type : v.type);
	values_result_deinit(&v);
	return r < 0 ? r : set_number(x, &n, ret);
}

static int eval_sign(struct run *x, const struct values_term *t, result *ret)
{
	struct values_number n, zero = { .is_signed = true, .size = 4 };
	result v = { 0 };
	int r = eval(x, t->a, &v);

	if (r == 0)
		r = number_of(x, t, &v, &n);
	values_result_deinit(&v);
	if (r < 0)
		return r;
	if (t->op == OP_NOT)
		return set_truth(x, !is_true(&n), ret);
	if (n.is_real && t->op == OP_COMPLEMENT)
		return FAIL(x, t, "this works on integers only");
	if (n.is_real) {
		n.real = t->op == OP_NEGATE ? -n.real : n.real;
		return set_number(x, &n, ret);
	}
	if (t->op == OP_COMPLEMENT) {
		struct values_number ones = { .is_signed = true, .size = 4, .integer = UINT64_MAX };

		r = values_calculate(OP_XOR, n, ones, &n, t->column, x->error);
	} else {
		r = values_calculate(t->op == OP_NEGATE ? OP_SUBTRACT : OP_ADD, zero, n, &n, t->column, x->error);
	}
	return r < 0 ? r : set_number(x, &n, ret);
}

/* ------------------------------------------------------------------ two operands ------------- */

static int eval_truth(struct run *x, uint16_t at, bool *ret)
{
	struct values_number n;
	result v = { 0 };
	int r = eval(x, at, &v);

	if (r == 0)
		r = number_of(x, term_of(x, at), &v, &n);
	values_result_deinit(&v);
	if (r == 0)
		*ret = is_true(&n);
	return r;
}

static int eval_logical(struct run *x, const struct values_term *t, result *ret)
{
	bool value;
	int r = eval_truth(x, t->a, &value);

	if (r == 0 && value == (t->op == OP_LOGICAL_AND))
		r = eval_truth(x, t->b, &value);
	return r < 0 ? r : set_truth(x, value, ret);
}

/* Pointer and integer, or two pointers.  @return 1 when it is neither. */
static int eval_pointers(struct run *x, const struct values_term *t, result *a, result *b, result *ret)
{
	bool is_a = is_pointer(a), is_b = is_pointer(b);
	struct pointer p, q;
	struct values_number n;
	uint64_t step;
	int r;

	if ((t->op != OP_ADD && t->op != OP_SUBTRACT) || !(is_a || is_b))
		return 1;
	if ((is_a && is_b && t->op == OP_ADD) || (!is_a && t->op == OP_SUBTRACT))
		return FAIL(x, t, "pointers cannot be combined so");
	r = pointer_of(x, t, is_a ? a : b, &p);
	if (r == 0)
		r = step_of(x, t, &p, &step);
	if (r < 0)
		return r;
	/* A hostile type may be of any size. */
	if (step > INT64_MAX)
		return FAIL(x, t, "what it points to is too large");
	if (is_a && is_b) {
		r = pointer_of(x, t, b, &q);
		n = (struct values_number){ .is_signed = true, .size = 8,
					    .integer = (uint64_t)((int64_t)(p.address - q.address) / (int64_t)step) };
		return r < 0 ? r : set_number(x, &n, ret);
	}
	r = number_of(x, t, is_a ? b : a, &n);
	if (r < 0)
		return r;
	if (n.is_real)
		return FAIL(x, t, "a pointer and a number that is no integer");
	r = set_pointer(x, p.target, p.space,
			t->op == OP_ADD ? p.address + n.integer * step : p.address - n.integer * step, ret);
	keep_lane(ret, is_a ? a : b);
	return r;
}

static int eval_binary(struct run *x, const struct values_term *t, result *ret)
{
	struct values_number n, m;
	result a = { 0 }, b = { 0 };
	int r = eval(x, t->a, &a);

	if (r == 0)
		r = eval(x, t->b, &b);
	if (r == 0)
		r = eval_pointers(x, t, &a, &b, ret);
	if (r == 1) {
		r = number_of(x, term_of(x, t->a), &a, &n);
		if (r == 0)
			r = number_of(x, term_of(x, t->b), &b, &m);
		if (r == 0)
			r = values_calculate(t->op, n, m, &n, t->column, x->error);
		if (r == 0)
			r = n.size == 1 ? set_truth(x, n.integer, ret) : set_number(x, &n, ret);
	}
	values_result_deinit(&a);
	values_result_deinit(&b);
	return r;
}

static int eval_literal(struct run *x, const struct values_term *t, result *ret)
{
	struct values_number n = { .is_real = t->op == OP_REAL, .is_signed = t->encoding != VALUES_UNSIGNED,
				   .size = t->size, .integer = t->number, .real = t->real };

	return set_number(x, &n, ret);
}

static int eval_member(struct run *x, const struct values_term *t, result *ret)
{
	int r = eval(x, t->a, ret);

	if (r == 0 && t->op == OP_ARROW)
		r = dereference(x, t, ret, 0);
	return r < 0 ? r : take_member(x, t, ret);
}

static int eval(struct run *x, uint16_t at, result *ret)
{
	const struct values_term *t = term_of(x, at);
	bool value;
	int r;

	switch (t->op) {
	case OP_NUMBER:
	case OP_REAL:
		return eval_literal(x, t, ret);
	case OP_NAME:
		return eval_name(x, t, ret);
	case OP_REGISTER:
		return eval_register(x, t, -1, ret);
	case OP_LANE:
		return eval_lane(x, t, ret);
	case OP_INDEX:
		return eval_index(x, t, ret);
	case OP_MEMBER:
	case OP_ARROW:
		return eval_member(x, t, ret);
	case OP_PART:
		return eval_part(x, t, ret);
	case OP_DEREFERENCE:
		r = eval(x, t->a, ret);
		return r < 0 ? r : dereference(x, t, ret, 0);
	case OP_ADDRESS:
		r = eval(x, t->a, ret);
		return r < 0 ? r : take_address(x, t, ret);
	case OP_CAST:
		return eval_cast(x, t, ret);
	case OP_SIZEOF:
	case OP_SIZEOF_TYPE:
		return eval_sizeof(x, t, ret);
	case OP_AT_ADDRESS:
		return eval_at_address(x, t, ret);
	case OP_REPEAT:
		return eval_repeat(x, t, ret);
	case OP_CONDITIONAL:
		r = eval_truth(x, t->a, &value);
		return r < 0 ? r : eval(x, value ? t->b : t->c, ret);
	case OP_LOGICAL_AND:
	case OP_LOGICAL_OR:
		return eval_logical(x, t, ret);
	case OP_NEGATE:
	case OP_PLUS:
	case OP_NOT:
	case OP_COMPLEMENT:
		return eval_sign(x, t, ret);
	default:
		return eval_binary(x, t, ret);
	}
}

int values_expression_evaluate(const struct values_expression *e, struct values_types *types,
			       const struct values_names *names, struct values_call *call,
			       struct values_result *ret, struct values_error *ret_error)
{
	struct run x = { e, types, names, call, ret_error };
	int r;

	*ret = (struct values_result){ 0 };
	*ret_error = (struct values_error){ 0 };
	r = eval(&x, e->root, ret);
	if (r == 0 && values_type_strip(ret->type)->kind != VALUES_TYPE_FUNCTION)
		r = load(&x, term_of(&x, e->root), ret);
	if (r < 0)
		values_result_deinit(ret);
	return r;
}

enum values_format values_expression_format(const struct values_expression *e)
{
	return e->format;
}

int values_result_node(enum values_format format, const struct values_result *v, struct values_call *call,
		       struct values_node *ret)
{
	const struct values_data data = { v->bytes, v->known, v->size, v->lack };

	call->format = format;
	return v->bit_size ? values_node_init_field(ret, NULL, v->type, &data, v->bit, v->bit_size, call) :
			     values_node_init(ret, NULL, v->type, &data, call);
}
