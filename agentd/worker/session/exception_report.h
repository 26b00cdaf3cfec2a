/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SESSION_EXCEPTION_REPORT_H
#define WORKER_SESSION_EXCEPTION_REPORT_H

/**
 * @file exception_report.h
 * exception.raised: what happened, and which waves it concerns.
 *
 * To see them, queues stop for a moment, before the fault goes on to the application.  A burst of
 * faults may not stop the program for good: looks take one part in ten of the time at most.
 */

#include "agentd/worker/target/target.h"

/** Default of exception.subscribe's look_ms. */
#define EXCEPTION_REPORT_LOOK_MS 20

/** Of one session; starts zeroed. */
struct exception_report {
	uint64_t number;     /**< Exceptions announced. */
	uint64_t rest_until; /**< Monotonic; no look before. */
};

/** May a look at the waves tell more about this event, now? */
bool exception_report_may_look(const struct exception_report *r, const struct target *t,
			       const struct target_event *e);

/**
 * @param look_ms  Longest stop; 0: do not look.  The caller has armed the deadline for it.
 * @param a    Holds what @p ret points to; its limit should be TARGET_ARENA_MAX.
 * @param ret  Everything but the session.  Never fails: what is not known is in its `missing`.
 */
void exception_report_fill(struct exception_report *r, struct target *t,
			   const struct target_event *e, uint32_t look_ms, struct rpc_arena *a,
			   struct rpc_exception_raised_params *ret);

#endif /* WORKER_SESSION_EXCEPTION_REPORT_H */
