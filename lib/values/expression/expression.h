/* SPDX-License-Identifier: MIT */
#ifndef VALUES_EXPRESSION_H
#define VALUES_EXPRESSION_H

/**
 * @file expression.h
 * Expressions of C over a lane's variables, for watches and `print`.  One is parsed once, and
 * evaluated for as many lanes as are wanted.
 *
 *	expr   := [/FORMAT] cond [@ cond] [, [/]FORMAT]		FORMAT: x d f c
 *	cond   := binary [? expr : cond]			C's operators, without assignment
 *	unary  := [- + ! ~ * &] unary | (TYPE) unary | sizeof unary | sizeof (TYPE) | post
 *	post   := primary { [cond] | .PART | ->PART }		PART: NAME, or <NUMBER>
 *	primary := NUMBER | 'c' | NAME{::NAME} | $REGISTER | $lane | $lane(cond, cond)
 *		 | (cond) | {TYPE} unary
 *	TYPE   := [@]SPACE NAME * ...				SPACE: shared local global generic ...
 *
 * `x @ n` is an array of n elements that begins with x.  `$v0[3]` is lane 3's part of a register,
 * `$lane` the number of the lane itself, and `$lane(3, x)` is x in lane 3.  `d.<0>` is the first of the
 * members of d, for those that no name means, such as a class that it is derived from.  Calls,
 * assignments, strings and templates are refused.  Arithmetic is C's: on integers of 32 and 64 bits with
 * their signs, otherwise on doubles.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "values/text/value.h"

/** Limits: bytes of text, nesting, elements of `@`, bytes of a value. */
#define VALUES_EXPRESSION_MAX 4096u
#define VALUES_EXPRESSION_DEPTH_MAX 64u
#define VALUES_EXPRESSION_CHAIN_MAX 256u /**< Operators in a row, as in a+b+c. */

/** What is wrong with an expression. */
struct values_error {
	unsigned column; /**< Of the text, from 1; 0: it has nothing to do with a place. */
	char text[192];
};

/** A parsed expression. */
struct values_expression;
/**
 * Parse an expression.
 * @param ret  Release with values_expression_destroy().
 * @return 0, -EINVAL (@p ret_error says why), -ENOMEM.
 */
int values_expression_parse(const char *text, struct values_expression **ret, struct values_error *ret_error);
/** Release; NULL is allowed. */
void values_expression_destroy(struct values_expression *e);
/** Is a text a single name, which an expression may be? */
bool values_expression_is_name(const char *text);

/** What an expression or a part of it is. */
struct values_result {
	struct values_type *type;
	bool has_address; /**< It lies in memory. */
	enum values_space space;
	uint64_t address;
	/** Its bytes, if they were read; allocated, as @p known is (NULL: all are known). */
	uint8_t *bytes;
	uint8_t *known;
	size_t size;
	enum values_state lack; /**< What the unknown bytes are. */
	bool cut; /**< It is larger than what is read of it: the rest counts as unknown. */
	/** A bit field: it begins at that bit of the bytes or the memory. */
	uint32_t bit, bit_size;
	/** It is out of `$lane(n, x)`: its pointers are those of that lane. */
	bool has_lane;
	uint32_t lane;
};
/** Release what belongs to a result.  A zeroed one is accepted. */
void values_result_deinit(struct values_result *r);

/** What names mean for a lane.  Each function may be NULL. */
struct values_names {
	void *context;
	/**
	 * Find a variable, or its copy in another lane than the one that is looked at.
	 * @param name  As `idx` or `ns::table`; `file.cu::x` too.
	 * @param ret   A type, and bytes or an address; zeroed before the call.
	 * @return 0, -ENOENT, -ENOTUNIQ (several, none of which is meant), or another negative errno.
	 */
	int (*variable)(void *context, const char *name, struct values_result *ret);
	/**
	 * Read a register.
	 * @param name  Without its dollar.
	 * @param lane  Whose; -1: that of the lane itself.
	 * @return 0, -ENOENT, or a negative errno.
	 */
	int (*reg)(void *context, const char *name, int64_t lane, struct values_result *ret);
	/** Find a type that is neither a scalar nor a vector.  @return NULL: there is none. */
	struct values_type *(*type)(void *context, const char *name);
	/** Look at another lane.  @return 0 and the lane looked at before, -ENOENT. */
	int (*lane)(void *context, uint64_t lane, uint32_t *ret_before);
};

/**
 * Evaluate an expression.
 * @param types  Where types are made; all of one image.
 * @param call   Pays for what is read.
 * @param ret    The result with its bytes; release with values_result_deinit().
 * @return 0, -EINVAL (@p ret_error says why), -ENOMEM.
 */
int values_expression_evaluate(const struct values_expression *e, struct values_types *types,
			       const struct values_names *names, struct values_call *call,
			       struct values_result *ret, struct values_error *ret_error);
/** @return the format that an expression asks for. */
enum values_format values_expression_format(const struct values_expression *e);
/**
 * Make a tree of a result.
 * @param ret  Release with values_node_deinit().
 * @return 0, -ENOMEM.
 */
int values_result_node(enum values_format format, const struct values_result *r, struct values_call *call,
		       struct values_node *ret);

#endif /* VALUES_EXPRESSION_H */
