/* SPDX-License-Identifier: MIT */
#ifndef WORKER_VALUE_REQUEST_H
#define WORKER_VALUE_REQUEST_H

/**
 * @file request.h
 * What one request about values of a wave has found so far, and what it may still do.
 */

#include "agentd/worker/target/target.h"
#include "agentd/worker/value/memory.h"

/** Largest reply. */
#define VALUE_REPLY_MAX ((size_t)8 << 20)
/** For everything about one request: debug information may be made to take long. */
#define VALUE_REQUEST_MS 3000
/** Text of values of lanes in one reply. */
#define VALUE_TEXT_MAX (2u << 20)
/** Names that are compared to tell which variables are hidden: a hostile function may have many. */
#define VALUE_NAMES_MAX (1u << 20)

/** How queues may be stopped; the session knows. */
struct value_stops {
	void *context;
	/** @return milliseconds that a stop may take, at most @p ms; 0: none now, but after ret_retry_ms. */
	uint32_t (*begin)(void *context, uint32_t ms, uint32_t *ret_retry_ms);
	/** @param stopped_us  What it lasted; negative: that is not known. */
	void (*end)(void *context, int64_t stopped_us);
	/** Fail a call that cannot be answered without a stop.  @return negative, with @p err. */
	int (*refuse)(uint32_t retry_ms, struct agent_err *err);
};

/** What is known to be missing from values, and how much of them may still be told. */
struct value_told {
	bool unreadable; /**< Something is in memory that could not be read. */
	bool cut;	 /**< A value leads to more memory than is read for one. */
	bool too_large;	 /**< A value was read only in part. */
	bool out_of_text;
	uint32_t text_left; /**< Bytes of values of lanes. */
};

struct value_request {
	/* These are set before value_request_begin(). */
	struct target *target;
	struct rpc_arena *arena;
	struct value_stops stops;
	struct target_waves_from from; /**< With the queue of the wave. */
	const struct rpc_wave_name *wave;
	uint32_t max_stop_ms, frame;
	bool has_lane;
	bool no_values; /**< Registers but the special ones are not wanted. */
	uint32_t lane; /**< Afterwards the one that is looked at, asked for or not. */

	uint64_t lanes; /**< Those that are wanted beside it; 0: none. */
	struct rpc_wave_registers registers;
	struct value_memory memory;
	uint64_t deadline_ns, stopped_us;
	bool active; /**< The lane executes. */
	bool out_of_time;
	struct value_told told;
	uint32_t names_left; /**< Names that may still be compared. */

	/* Of the frame, once it is found. */
	uint64_t pc;
	const char *function;

	const char **missing; /**< Sentences, in the arena. */
	size_t n_missing;
};

/**
 * Copy the registers of the wave in one stop, and choose the lane.
 * @return 0, or negative with @p err.  Release with value_request_deinit() in any case.
 */
int value_request_begin(struct value_request *k, struct agent_err *err);
/**
 * Choose lanes whose values are wanted beside those of one.
 * @param text  A list, `all`, `active` or `part`; NULL: none.
 * @return 0, or negative with @p err.
 */
int value_request_choose_lanes(struct value_request *k, const char *text, struct agent_err *err);
/** Why the value of a lane is not known. */
#define VALUE_NO_TIME "there was no time left to read it"
/** Say what is missing, at the end. */
void value_request_end(struct value_request *k);
void value_request_deinit(struct value_request *k);

/** Has the time passed?  It stays so: whatever is left is left out. */
bool value_request_is_late(struct value_request *k);
/** @return lanes with a work-item or thread; all of the wave, where that is not known. */
uint64_t value_request_lanes_there(const struct value_request *k);
/** @return the part that the lane is in, of those of the wave; NULL: all lanes are at one place. */
const struct rpc_wave_part *value_request_part(const struct value_request *k, uint32_t lane);
/** Add a sentence about what is missing; it is not copied. */
void value_request_miss(struct value_request *k, const char *what);
/** @return where the lane is, or will return to by so many calls. */
uint64_t value_request_address(const struct value_request *k, uint32_t lane, uint32_t calls);
/** Ask for a stop. @return whether there may be one; it ends with value_request_stop_end(). */
bool value_request_stop_begin(struct value_request *k, uint32_t *ret_retry_ms);
void value_request_stop_end(struct value_request *k, int64_t stopped_us);

#endif /* WORKER_VALUE_REQUEST_H */
