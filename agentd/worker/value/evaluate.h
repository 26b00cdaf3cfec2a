/* SPDX-License-Identifier: MIT */
#ifndef WORKER_VALUE_EVALUATE_H
#define WORKER_VALUE_EVALUATE_H

/** @file evaluate.h  Expressions in a frame, and the parts of what they mean. */

#include "agentd/worker/value/groups.h"
#include "agentd/worker/value/lanes.h"
#include "values/expression/expression.h"

/** What is known of a value.  Texts are in the request's arena. */
struct value_outcome {
	const char *type; /**< Empty when unknown. */
	struct values_type *of; /**< NULL when unknown; good as long as the frame. */
	enum rpc_value_state state;
	const char *reason, *value, *location; /**< NULL: none. */
	bool has_address; /**< Of memory that could not be read. */
	uint64_t address;
	bool invalid; /**< The expression is wrong: @p error says why, and nothing else is set. */
	struct values_error error;
};

/**
 * Evaluate an expression in a frame.
 * @param lanes  Where `$lane(n, x)` finds other lanes.
 * @param text   What was parsed.
 * @return 0, -ENOMEM.
 */
int value_evaluate(struct value_frame *f, struct value_lanes *lanes, const struct values_expression *parsed,
		   const char *text, struct value_outcome *ret);

/**
 * Evaluate an expression in each lane that the request wants.
 * @param ret  What a client is told, in the arena.
 * @return 0, -ENOMEM.
 */
int value_evaluate_lanes(struct value_lanes *lanes, const struct values_expression *parsed, const char *text,
			 struct rpc_lane_value **ret, size_t *ret_n);

/** Which members or elements of a value are wanted. */
struct value_members_wanted {
	uint64_t first;
	uint32_t max;
};
/** @return how many members or elements values of a type have. */
uint32_t value_members_count(struct values_type *t);
/**
 * List members of what an expression means, as far as there is time.
 * @param t    Its type.
 * @param ret  In the arena.
 * @return 0, -ENOMEM.
 */
int value_members_list(struct value_frame *f, struct value_lanes *lanes, const struct values_expression *whole,
		       struct values_type *t, const struct value_members_wanted *what, struct rpc_value_member **ret,
		       size_t *ret_n);

#endif /* WORKER_VALUE_EVALUATE_H */
