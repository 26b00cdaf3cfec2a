/* SPDX-License-Identifier: MIT */
/* C's arithmetic, where what C leaves undefined is an error or wraps around. */
#include <errno.h>
#include <math.h>

#include "values/expression/expression_internal.h"

static double real_of(const struct values_number *n)
{
	if (n->is_real)
		return n->real;
	return n->is_signed ? (double)(int64_t)n->integer : (double)n->integer;
}

static struct values_number truth(bool is_true)
{
	return (struct values_number){ .is_signed = true, .size = 1, .integer = is_true };
}

static int calculate_real(enum values_op op, struct values_number a, struct values_number b,
			  struct values_number *ret, unsigned column, struct values_error *ret_error)
{
	double x = real_of(&a), y = real_of(&b);

	*ret = (struct values_number){ .is_real = true, .size = 8 };
	/* float with float is float; an integer takes the type of the other. */
	if ((!a.is_real || a.size == 4) && (!b.is_real || b.size == 4))
		ret->size = 4;
	switch (op) {
	case OP_ADD:
		ret->real = x + y;
		break;
	case OP_SUBTRACT:
		ret->real = x - y;
		break;
	case OP_MULTIPLY:
		ret->real = x * y;
		break;
	case OP_DIVIDE:
		if (y == 0)
			return values_error_set(ret_error, column, "division by zero");
		ret->real = x / y;
		break;
	default:
		return values_error_set(ret_error, column, "this works on integers only");
	}
	if (ret->size == 4)
		ret->real = (double)(float)ret->real;
	return 0;
}

/* Cut a number to its size. */
static void wrap(struct values_number *n)
{
	if (n->size == 4)
		n->integer = n->is_signed ? (uint64_t)(int64_t)(int32_t)n->integer : (uint32_t)n->integer;
}

/* Numbers of less than an int become one; then both have the type of the larger, or the unsigned. */
static void convert(struct values_number *a, struct values_number *b)
{
	uint8_t size = a->size == 8 || b->size == 8 ? 8 : 4;
	bool is_signed;

	a->is_signed = a->is_signed || a->size < 4;
	b->is_signed = b->is_signed || b->size < 4;
	is_signed = (a->is_signed || a->size < size) && (b->is_signed || b->size < size);
	a->size = b->size = size;
	a->is_signed = b->is_signed = is_signed;
	wrap(a);
	wrap(b);
}

static int shift(enum values_op op, struct values_number a, struct values_number b,
		 struct values_number *ret, unsigned column, struct values_error *ret_error)
{
	struct values_number zero = { .is_signed = true, .size = 4 };

	convert(&a, &zero); /* The right operand has no influence on the type. */
	if ((b.is_signed && (int64_t)b.integer < 0) || b.integer >= 8u * a.size)
		return values_error_set(ret_error, column, "a shift of %u bits by %lld", 8u * a.size,
					(long long)b.integer);
	*ret = a;
	if (op == OP_SHIFT_LEFT)
		ret->integer = a.integer << b.integer;
	else
		ret->integer = a.is_signed ? (uint64_t)((int64_t)a.integer >> b.integer) : a.integer >> b.integer;
	wrap(ret);
	return 0;
}

static int divide(enum values_op op, const struct values_number *a, const struct values_number *b,
		  struct values_number *ret, unsigned column, struct values_error *ret_error)
{
	if (!b->integer)
		return values_error_set(ret_error, column, "division by zero");
	if (!a->is_signed)
		ret->integer = op == OP_DIVIDE ? a->integer / b->integer : a->integer % b->integer;
	else if ((int64_t)b->integer == -1) /* The processor traps when the smallest number is divided by it. */
		ret->integer = op == OP_DIVIDE ? 0 - a->integer : 0;
	else
		ret->integer = (uint64_t)(op == OP_DIVIDE ? (int64_t)a->integer / (int64_t)b->integer :
							    (int64_t)a->integer % (int64_t)b->integer);
	return 0;
}

static bool compare(enum values_op op, bool is_less, bool is_equal)
{
	switch (op) {
	case OP_EQUAL:
		return is_equal;
	case OP_NOT_EQUAL:
		return !is_equal;
	case OP_LESS:
		return is_less;
	case OP_LESS_EQUAL:
		return is_less || is_equal;
	case OP_GREATER:
		return !is_less && !is_equal;
	default:
		return !is_less;
	}
}

static bool compare_real(enum values_op op, double a, double b)
{
	if (isnan(a) || isnan(b))
		return op == OP_NOT_EQUAL;
	return compare(op, a < b, a == b);
}

static int calculate_integer(enum values_op op, const struct values_number *a, const struct values_number *b,
			     struct values_number *ret, unsigned column, struct values_error *ret_error)
{
	int r = 0;

	*ret = *a;
	switch (op) {
	case OP_ADD:
		ret->integer = a->integer + b->integer;
		break;
	case OP_SUBTRACT:
		ret->integer = a->integer - b->integer;
		break;
	case OP_MULTIPLY:
		ret->integer = a->integer * b->integer;
		break;
	case OP_DIVIDE:
	case OP_REMAINDER:
		r = divide(op, a, b, ret, column, ret_error);
		break;
	case OP_AND:
		ret->integer = a->integer & b->integer;
		break;
	case OP_OR:
		ret->integer = a->integer | b->integer;
		break;
	default:
		ret->integer = a->integer ^ b->integer;
	}
	wrap(ret);
	return r;
}

int values_calculate(enum values_op op, struct values_number a, struct values_number b,
		     struct values_number *ret, unsigned column, struct values_error *ret_error)
{
	bool is_comparison = op >= OP_EQUAL && op <= OP_GREATER_EQUAL;
	bool is_less;

	if (a.is_real || b.is_real) {
		if (!is_comparison)
			return calculate_real(op, a, b, ret, column, ret_error);
		*ret = truth(compare_real(op, real_of(&a), real_of(&b)));
		return 0;
	}
	if (op == OP_SHIFT_LEFT || op == OP_SHIFT_RIGHT)
		return shift(op, a, b, ret, column, ret_error);
	convert(&a, &b);
	if (!is_comparison)
		return calculate_integer(op, &a, &b, ret, column, ret_error);
	is_less = a.is_signed ? (int64_t)a.integer < (int64_t)b.integer : a.integer < b.integer;
	*ret = truth(compare(op, is_less, a.integer == b.integer));
	return 0;
}
