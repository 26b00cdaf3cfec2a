/* SPDX-License-Identifier: MIT */
#ifndef VALUES_EXPRESSION_INTERNAL_H
#define VALUES_EXPRESSION_INTERNAL_H

/** @file expression_internal.h  Parsed expressions, and arithmetic on their values; internal. */

#include <stdarg.h>

#include "values/expression/expression.h"

enum values_op {
	OP_NUMBER,
	OP_REAL,
	OP_NAME,
	OP_REGISTER,
	OP_LANE, /* $lane(a, b) */
	OP_INDEX,
	OP_MEMBER,
	OP_ARROW,
	OP_PART, /* a.<number> */
	OP_NEGATE,
	OP_PLUS,
	OP_NOT,
	OP_COMPLEMENT,
	OP_DEREFERENCE,
	OP_ADDRESS,
	OP_CAST,
	OP_SIZEOF,
	OP_SIZEOF_TYPE,
	OP_AT_ADDRESS, /* {type} a */
	OP_REPEAT, /* a @ b */
	OP_CONDITIONAL,
	OP_LOGICAL_OR, /* From here on: two operands. */
	OP_LOGICAL_AND,
	OP_OR,
	OP_XOR,
	OP_AND,
	OP_EQUAL,
	OP_NOT_EQUAL,
	OP_LESS,
	OP_GREATER,
	OP_LESS_EQUAL,
	OP_GREATER_EQUAL,
	OP_SHIFT_LEFT,
	OP_SHIFT_RIGHT,
	OP_ADD,
	OP_SUBTRACT,
	OP_MULTIPLY,
	OP_DIVIDE,
	OP_REMAINDER,
};

/** A number, or an operator and its operands. */
struct values_term {
	enum values_op op;
	uint16_t a, b, c; /**< Operands: positions in the list of terms. */
	uint16_t depth; /**< Terms below it, with itself. */
	uint16_t column;
	/** Numbers: their type. */
	enum values_encoding encoding;
	uint8_t size;
	uint64_t number;
	double real;
	const char *name; /**< Of a variable, register, member or type; NULL: none. */
	uint8_t stars; /**< Of a type. */
	bool has_space;
	enum values_space space;
};

struct values_expression {
	enum values_format format;
	uint16_t root;
	struct values_term *terms;
	size_t n, capacity;
	char *names; /**< What terms name, each with its NUL. */
	size_t names_used;
	char *body; /* The text, without a format and what is behind `@`. */
};

/**
 * Find the member that a name means, also in members without a name and in base classes.
 * @param ret  Its place in the whole.
 */
bool values_member_find(struct values_type *t, const char *name, struct values_member *ret);

/** Set an error's text. @return -EINVAL. */
int values_error_set(struct values_error *e, unsigned column, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/**
 * Calculate as C does.
 * @return 0, -EINVAL.
 */
int values_calculate(enum values_op op, struct values_number a, struct values_number b,
		     struct values_number *ret, unsigned column, struct values_error *ret_error);

#endif /* VALUES_EXPRESSION_INTERNAL_H */
