/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_SESSION_WATCH_H
#define FRONTEND_SESSION_WATCH_H

/** @file watch.h  Processes that rules watch: sessions that begin, and go on, without clients. */

#include "agentd/frontend/session/session.h"

/**
 * Note that a rule watches, or has left, a process.
 * @param take_channel  Channel of a new worker, owned by this function; -1: there is none.
 */
void watch_received(struct sessions *all, const struct ipc_watch *m, int take_channel);

#endif /* FRONTEND_SESSION_WATCH_H */
