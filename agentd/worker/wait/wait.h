/* SPDX-License-Identifier: MIT */
#ifndef WORKER_WAIT_H
#define WORKER_WAIT_H

/** @file wait.h  why.get: who waits, for whom, and who does not come. */

#include "agentd/worker/snapshot/snapshot.h"

struct history;
struct late_memory;

/** What is wanted, beside what was seen. */
struct wait_options {
	uint32_t look_up_ms; /**< Time to look up code and read memory. */
	struct late_memory *memory; /**< The target's; NULL: of a core. */
	bool has_since;
	uint32_t since; /**< The look to compare with. */
};

/** Looks of one session, for comparison; NULL: none as yet. */
void wait_history_free(struct history *h);

/**
 * Tell what waits.
 * @param a        Holds the reply.
 * @param seen     With registers; its waves get their places.
 * @param history  Remembers this look.
 * @param ret      Zeroed.
 * @return 0, or negative with @p err.
 */
int wait_tell(struct target *t, struct rpc_arena *a, const struct wait_options *o, const struct snapshot *seen,
	      struct history **history, struct rpc_why_get_result *ret, struct agent_err *err);

#endif /* WORKER_WAIT_H */
