/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_SESSION_WORKER_H
#define FRONTEND_SESSION_WORKER_H

/** @file worker.h  A session from its begin to its end: the worker that the monitor has started, and what it says. */

#include "agentd/frontend/session/session.h"

/** @return NULL without memory: the channel is closed. */
struct session *worker_create(struct sessions *all, const struct ipc_started *started,
			      enum ipc_kind kind, uint32_t number, uint32_t pid, int take_channel);
/** A worker whose client left before it was known: nothing is said to it, its end is waited for. */
void worker_create_orphan(struct sessions *all, const struct ipc_started *started, int take_channel);
/** The monitor reaped the worker. */
void worker_ended(struct session *s, enum ipc_how how);
/** For agent shutdown. */
void worker_destroy(struct session *s);

#endif /* FRONTEND_SESSION_WORKER_H */
