/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_SESSION_SUSPENSIONS_H
#define FRONTEND_SESSION_SUSPENSIONS_H

/**
 * @file suspensions.h
 * What clients keep stopped of each target, until when, and what that cost the target so far.
 */

#include "agentd/frontend/session/session.h"

/** How many targets are remembered: the latest. */
#define SUSPENSIONS_TARGETS_MAX 64

/** Take what a session's worker says of its suspension (IPC_SUSPENSION). */
void suspensions_take(struct session *s, const struct ipc_message *m);
/** Note that the worker is gone, and the kernel has resumed what was suspended. */
void suspensions_over(struct session *s);
/** Fill in what session.list says of a suspension.  The arrays are borrowed from the session. */
void suspensions_describe(const struct session *s, struct rpc_session_info *ret);
/** List the targets that @p c may see, the latest first, in the arena.  @return 0, -ENOMEM. */
int suspensions_list(const struct sessions *all, const struct conn *c, struct rpc_arena *arena,
		     struct rpc_suspended_target **ret, size_t *ret_n);
/** Free what is remembered of targets. */
void suspensions_deinit(struct sessions *all);

#endif /* FRONTEND_SESSION_SUSPENSIONS_H */
