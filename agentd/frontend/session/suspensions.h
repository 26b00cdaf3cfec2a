/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_SESSION_SUSPENSIONS_H
#define FRONTEND_SESSION_SUSPENSIONS_H

/**
 * @file suspensions.h
 * Who keeps queues of whom stopped, until when, and what that cost each target so far.
 */

#include "agentd/frontend/session/session.h"

/** Targets that are remembered, the latest. */
#define SUSPENSIONS_TARGETS_MAX 64

/** IPC_SUSPENSION of a session's worker. */
void suspensions_take(struct session *s, const struct ipc_message *m);
/** The worker is gone, and the kernel has resumed what was suspended. */
void suspensions_over(struct session *s);
/** Fill in what session.list says of it.  The arrays are the session's. */
void suspensions_describe(const struct session *s, struct rpc_session_info *ret);
/** What @p c may see, the latest first.  @return 0, -ENOMEM. */
int suspensions_list(const struct sessions *all, const struct conn *c, struct rpc_arena *arena,
		     struct rpc_suspended_target **ret, size_t *ret_n);
void suspensions_deinit(struct sessions *all);

#endif /* FRONTEND_SESSION_SUSPENSIONS_H */
