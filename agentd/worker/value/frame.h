/* SPDX-License-Identifier: MIT */
#ifndef WORKER_VALUE_FRAME_H
#define WORKER_VALUE_FRAME_H

/** @file frame.h  The frame that a request names: by calls, and by what is inlined in them. */

#include "agentd/worker/value/request.h"
#include "symbols/image.h"
#include "values/scope.h"
#include "values/type/type.h"

/** A frame, with what its code object says of it.  All of it is gone after the call that gets it. */
struct value_frame {
	struct value_request *request;
	struct values_machine machine;
	struct values_image *image; /**< NULL: there is no debug information. */
	struct values_types *types;
	const struct values_scope *scope; /**< Empty without debug information. */
	const struct values_frame *frame;
	uint64_t address; /**< Where it is, or will return to. */
	size_t place; /**< lanes.h: which of the places of lanes that is. */
	bool is_elsewhere; /**< It is another function than that of the request: its variables are not seen. */
	struct value_globals *globals; /**< Names outside of functions that were looked for; shared by lanes. */
};

/** @return the variable that a name means; others of the name are hidden by it.  NULL: none. */
const struct values_variable *value_frame_pick(const struct value_frame *f, const char *name);
/**
 * Find a variable that lies outside of functions.
 * @return 0, -ENOENT, -ENOTUNIQ (several, none of which is meant).
 */
int value_frame_find_global(struct value_frame *f, const char *name, struct values_variable *ret);
/** Is the name of a variable an expression that means it?  False also when there are too many to tell. */
bool value_frame_is_named(struct value_frame *f, const struct values_variable *v);
/** Does the lane execute? */
bool value_frame_is_active(const struct value_frame *f);

/** What is done in a frame.  @return 0, -ENOMEM. */
typedef int value_use_frame(void *context, struct value_frame *f);

/**
 * Find the frame that the request names.
 * @param use     Called once, when it is found.
 * @param ret_unknown  No debug information names variables of this code: @p use was not called.
 * @return 0, or negative with @p err.
 */
int value_frame_find(struct value_request *k, uint32_t look_up_ms, value_use_frame *use, void *context,
		     bool *ret_unknown, struct agent_err *err);
/** Make a frame in which no variable is known, for what needs none.  @return 0, -ENOMEM. */
int value_frame_make(struct value_request *k, value_use_frame *use, void *context);

#endif /* WORKER_VALUE_FRAME_H */
