/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SESSION_EXCEPTION_H
#define WORKER_SESSION_EXCEPTION_H

/**
 * @file exception.h
 * What becomes of an exception before the application gets it: it is captured, announced, and recorded
 * by the rule on the session.
 */

#include <stdbool.h>

struct session;
struct target_event;

/**
 * Capture, announce and record an exception.
 * @return whether the rule keeps it back: the rule calls target_ops.event_done later.
 */
bool session_exception(struct session *s, const struct target_event *e);

#endif /* WORKER_SESSION_EXCEPTION_H */
