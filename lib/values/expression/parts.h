/* SPDX-License-Identifier: MIT */
#ifndef VALUES_PARTS_H
#define VALUES_PARTS_H

/**
 * @file parts.h
 * Parts of what an expression means: members and base classes of a struct or union, elements of an
 * array, and what a pointer to one of these leads to; with an expression for each.
 */

#include "base/out.h"
#include "values/expression/expression.h"

/** @return how many parts a value of a type has; of a reference, those of what it leads to. */
uint64_t values_parts_count(struct values_type *t);
/** @return the type of a part; a reference is that of what it leads to. */
struct values_type *values_part_type(struct values_type *t, uint64_t index);
/**
 * Append the name of a part: `x`, `[3]`, `<Base>`, `*p`; nothing for what has no name.
 * @param whole  What the whole is the value of.
 */
void values_part_print_name(const struct values_expression *whole, struct values_type *t, uint64_t index,
			    struct out *o);
/**
 * Append an expression that means a part, in the format that the whole is asked for in.
 * @return false when there is none: it has no place, as a virtual base, or nothing so long or so
 *         deeply nested is parsed.
 */
bool values_part_print_expression(const struct values_expression *whole, struct values_type *t, uint64_t index,
				  struct out *o);

#endif /* VALUES_PARTS_H */
