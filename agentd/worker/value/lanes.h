/* SPDX-License-Identifier: MIT */
#ifndef WORKER_VALUE_LANES_H
#define WORKER_VALUE_LANES_H

/** @file lanes.h  The frame that a request names, in other lanes of the wave. */

#include "agentd/worker/value/frame.h"

#define VALUE_LANES_MAX 64u

struct value_lane;
struct value_lane_place;

/** The frames of lanes, as far as they were asked for. */
struct value_lanes {
	struct value_frame *reference; /**< That of the lane that is looked at. */
	uint64_t there; /**< Lanes in which something runs. */
	uint64_t addresses[VALUE_LANES_MAX];
	struct value_lane *lanes; /**< NULL: none was asked for yet. */
	struct value_lane_place *places;
	size_t n;
};

/** Begin. */
void value_lanes_init(struct value_lanes *l, struct value_frame *reference);
/** Release; a zeroed one is accepted. */
void value_lanes_deinit(struct value_lanes *l);

/** Places that lanes are at have numbers below this one. */
#define VALUE_PLACES_MAX (VALUE_LANES_MAX + 1)
/** Why a variable of the request's function is not known in a lane, static. */
#define VALUE_ELSEWHERE "the lane is in another function"
/**
 * Find the frame of a lane; where that is in another function, there are registers and no variables.
 * @param ret_place   Which of the places it is at; all lanes at one have the same variables.
 * @param ret_reason  Why there is none, static.
 * @return NULL: there is none.  Good as long as the lanes.
 */
struct value_frame *value_lanes_frame(struct value_lanes *l, uint32_t lane, size_t *ret_place,
				      const char **ret_reason);
/** @return the variable of a frame that one of the reference is there; NULL: it cannot be seen from there. */
const struct values_variable *value_lanes_variable(const struct value_frame *f, const struct values_variable *v);

#endif /* WORKER_VALUE_LANES_H */
