/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SESSION_SUSPENSION_H
#define WORKER_SESSION_SUSPENSION_H

/**
 * @file suspension.h
 * How often, how long and until when clients have queues of the target suspended; the frontend is told each
 * time that this changes, and answers for it.
 */

#include <stddef.h>
#include <stdint.h>

#include "rpc_gen.h"

struct session;

struct suspension {
	uint64_t count;
	uint64_t total_ns; /**< Time of the suspensions that are over. */
	uint64_t since_ns; /**< Monotonic; 0: nothing is suspended. */
	/* As the frontend was told: */
	size_t n;
	uint64_t lease_end_ns;
};

/**
 * Start or move the suspend lease of the client whose call is served.
 * @return what is granted: less than @p ms where the longest stop ends before.
 */
uint32_t suspension_lease(struct session *s, uint32_t ms);
/**
 * Bound a lease by the longest stop.
 * @param since_ns  When the queues were suspended.
 * @param max_ms  The longest stop; 0: no limit.
 * @return what is left of @p ms, at least 1: the end of the lease lets the queues run.
 */
uint32_t suspension_grant(uint64_t since_ns, uint32_t max_ms, uint64_t now_ns, uint32_t ms);
/** @return when clients are warned that the longest stop is nearly over: at 80 % of @p max_ms. */
uint64_t suspension_warn_ns(uint64_t since_ns, uint32_t max_ms);
/** @return why queues run again at the end of the lease. */
enum rpc_resume_reason suspension_end_reason(const struct session *s);

/** Look at the target and tell the frontend what has changed; called before clients are told. */
void suspension_sync(struct session *s);

#endif /* WORKER_SESSION_SUSPENSION_H */
