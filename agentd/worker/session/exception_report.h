/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SESSION_EXCEPTION_REPORT_H
#define WORKER_SESSION_EXCEPTION_REPORT_H

/**
 * @file exception_report.h
 * exception.raised: what happened, and which waves it concerns.
 */

#include "agentd/worker/snapshot/exception_capture.h"

/** Default of exception.subscribe's look_ms. */
#define EXCEPTION_REPORT_LOOK_MS 20

/** Of one session; starts zeroed. */
struct exception_report {
	uint64_t number; /**< Exceptions that were announced. */
};

/**
 * Fill in the notification about an exception.  This never fails: what is not known is in its
 * `missing`.
 * @param seen  A capture, which may hold more than this exception concerns; NULL: no client wants a
 *              look.
 * @param a  Holds what @p ret points to; its limit should be TARGET_ARENA_MAX.
 * @param ret  Filled in but for the session.
 */
void exception_report_fill(struct exception_report *r, struct target *t,
			   const struct target_event *e, const struct exception_capture *seen,
			   struct rpc_arena *a, struct rpc_exception_raised_params *ret);

#endif /* WORKER_SESSION_EXCEPTION_REPORT_H */
