/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SESSION_READERS_H
#define WORKER_SESSION_READERS_H

/**
 * @file readers.h
 * For how long clients that may only look may have queues of the target stopped.
 *
 * They share one bucket of time for each target, whoever they are and however often they attach.  Each
 * stop takes from it what it lasted, also where that is more than there was, and it fills again at a
 * fixed rate.  The frontend keeps it from one session on a target to the next.
 */

#include <stdint.h>

#include "agentd/ipc/frontend_worker.h"

struct agent_err;
struct session;

struct readers {
	uint32_t most_ms; /**< What a full bucket has; 0: these clients may stop nothing. */
	uint32_t rate_ms; /**< What comes in each second. */
	int64_t left_ns;
	uint64_t at_ns; /**< When it was so full. */
	uint64_t stop_ns; /**< When the stop that is under way for such a client began; 0: none is. */
};

/** Begin with a full bucket.  All times are CLOCK_MONOTONIC. */
void readers_init(struct readers *b, uint32_t most_ms, uint32_t rate_ms, uint64_t now_ns);
/**
 * Ask for a stop.
 * @param ms  How long it may have to be.
 * @param ret_retry_ms  Where none is granted: after this time one is; 0: never.
 * @return how long it may be; 0: there may be none now.  A stop too short to see much is not granted.
 */
uint32_t readers_grant(struct readers *b, uint32_t ms, uint64_t now_ns, uint32_t *ret_retry_ms);
/** Take what a stop lasted. */
void readers_charge(struct readers *b, uint64_t ns, uint64_t now_ns);
/** Go on with what an earlier session left. */
void readers_go_on(struct readers *b, const struct ipc_readers *m, uint64_t now_ns);

/**
 * Bound the stop for the call being served; of a client that may control the target it is not.
 * @param ret_retry_ms  As readers_grant().
 * @return how long it may be at most @p ms; 0: nothing may be stopped.
 */
uint32_t readers_stop_begin(struct session *s, uint32_t ms, uint32_t *ret_retry_ms);
/** Does the call that is served come from a client that may only look?  A core file has none. */
bool readers_is_one(const struct session *s);
/**
 * End what readers_stop_begin() has allowed, and tell the frontend what is left.
 * @param stopped_us  What it lasted; negative: that is not known, and the time since counts.
 */
void readers_stop_end(struct session *s, int64_t stopped_us);
/** Fail a call that cannot be answered without a stop.  @return negative, with @p err. */
int readers_refuse(uint32_t retry_ms, struct agent_err *err);
/** A message of the frontend: what an earlier session left. */
void readers_take(struct session *s, const struct ipc_message *m);

#endif /* WORKER_SESSION_READERS_H */
