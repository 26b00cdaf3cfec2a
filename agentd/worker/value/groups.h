/* SPDX-License-Identifier: MIT */
#ifndef WORKER_VALUE_GROUPS_H
#define WORKER_VALUE_GROUPS_H

/**
 * @file groups.h
 * Values of one thing in many lanes: lanes whose values are equal to the last byte are one group.  Texts
 * say nothing of that: that of a large value is cut.
 */

#include "agentd/worker/value/frame.h"
#include "values/expression/expression.h"

/** What one lane has. */
struct value_reading {
	struct values_result result; /**< Its type and bytes, if any are known. */
	enum rpc_value_state state;
	const char *reason; /**< NULL: none.  In the arena, or static. */
	bool has_address; /**< Of memory that could not be read. */
	uint64_t address;
	bool cut; /**< There are more bytes: nothing is equal to it. */
};

/**
 * Make the text of what a lane has.
 * @param r    Of a large one, the state becomes partial where something is shown that was not read.
 * @param ret  In the arena; NULL: nothing is known.
 * @return 0, -ENOMEM.
 */
int value_reading_print(struct value_request *k, uint32_t lane, enum values_format format,
			struct value_reading *r, const char **ret);

struct value_group;

struct value_groups {
	struct value_request *request;
	enum values_format format;
	struct values_type *checked; /**< The type that needs_memory is about. */
	bool needs_memory;
	struct value_group *list;
	size_t n, last; /**< The group that the last lane came into. */
};

/** Begin. */
void value_groups_init(struct value_groups *g, struct value_request *k, enum values_format format);
void value_groups_deinit(struct value_groups *g);
/**
 * Add what a lane has.
 * @param r  Its bytes are taken over.
 * @return 0, -ENOMEM.
 */
int value_groups_add(struct value_groups *g, uint32_t lane, struct value_reading *r);
/**
 * Add a lane that has what the last one has, as both read it from the same place.
 * @return false: it was not added, as its text leads to memory that each lane has its own of.
 */
bool value_groups_repeat(struct value_groups *g, uint32_t lane);
/** Add lanes whose value is not known. @return 0, -ENOMEM. */
int value_groups_add_unknown(struct value_groups *g, uint64_t lanes, const char *reason);
/** Make what a client is told, in the arena. @return 0, -ENOMEM. */
int value_groups_tell(struct value_groups *g, struct rpc_lane_value **ret, size_t *ret_n);

/** Add what a lane has, with value_groups_add() or another of these.  @return 0, -ENOMEM. */
typedef int value_read_lane(void *context, uint32_t lane, struct value_groups *g);
/**
 * Make what a client is told of all lanes that the request wants, as far as there is time.  Where lanes lack
 * generic memory, what all of them lack is fetched in one stop, and they are read again.
 * @return 0, -ENOMEM.
 */
int value_groups_read(struct value_request *k, enum values_format format, value_read_lane *read, void *context,
		      struct rpc_lane_value **ret, size_t *ret_n);

#endif /* WORKER_VALUE_GROUPS_H */
