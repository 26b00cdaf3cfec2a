/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_SESSION_RULES_H
#define FRONTEND_SESSION_RULES_H

/** @file rules.h  Watch rules as the frontend knows them: names, and what became of exceptions. */

#include "agentd/frontend/session/session.h"
#include "protocol/rpc_arena.h"

/** Of the configuration that the monitor has read.  @param m  From the monitor. */
void rules_named(struct sessions *all, const struct ipc_rule_name *m);
/** @return NULL: there is none of this name. */
struct front_rule *rules_find(struct sessions *all, const char *name);
/** Take the rule from a session that it watches; the monitor does the same. */
void rules_release(struct session *s);
/** A worker has counted. */
void rules_count(struct session *s, const struct ipc_message *m);
/** It will not count any more: what it had begun with is lost. */
void rules_over(struct session *s);
/** For agent.status.  @return NULL: out of memory. */
struct rpc_rule_status *rules_status(const struct sessions *all, struct rpc_arena *a, size_t *ret_n);

#endif /* FRONTEND_SESSION_RULES_H */
