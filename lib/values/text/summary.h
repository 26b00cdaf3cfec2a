/* SPDX-License-Identifier: MIT */
#ifndef VALUES_SUMMARY_H
#define VALUES_SUMMARY_H

/**
 * @file summary.h
 * One text for a value that each lane has its own of: `{x = 0..31, y = 3, z = 0}`.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/out.h"
#include "values/text/value.h"

/** Lanes that one summary may have. */
#define VALUES_SUMMARY_LANES_MAX 64u

/**
 * Append a summary of the values that a variable has in several lanes, in the order of the lanes:
 * the value, if all have the same; `4..64 step 4` (`4..7` where the step is 1), if each is the one
 * before and a constant, in three lanes or more; otherwise the least and the greatest,
 * `-3..90 (17 different)`.  Structs and arrays are summarised member by member.  Lanes in which it
 * is unknown are counted: `0..15, <unavailable> in 16 lanes`.
 * @param lanes  1 to VALUES_SUMMARY_LANES_MAX values of the same type.
 * @return whether all are the same.
 */
bool values_summary_print(const struct values_node *const *lanes, size_t n, struct out *o);

#endif /* VALUES_SUMMARY_H */
