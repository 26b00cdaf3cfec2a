/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_SESSION_WORKER_H
#define FRONTEND_SESSION_WORKER_H

/** @file worker.h  A session from its begin to its end: the worker that the monitor has started, and what it says. */

#include "agentd/frontend/session/session.h"

/**
 * Begin a session with a worker that the monitor has started.
 * @param number        Number of a session; 0 for other kinds.
 * @param take_channel  Owned by this function.
 * @return NULL without memory: the channel is closed.
 */
struct session *worker_create(struct sessions *all, const struct ipc_started *started,
			      enum ipc_kind kind, uint32_t number, uint32_t pid, int take_channel);
/** Take a worker whose client left before it was known: its channel is closed, its end awaited. */
void worker_create_orphan(struct sessions *all, const struct ipc_started *started, int take_channel);
/** End the session of a worker that the monitor has reaped. */
void worker_ended(struct session *s, const struct ipc_ended *how);
/** End a session now: all requests fail, clients are told, the object is gone afterwards. */
void worker_destroy(struct session *s);

#endif /* FRONTEND_SESSION_WORKER_H */
