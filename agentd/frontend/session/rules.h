/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_SESSION_RULES_H
#define FRONTEND_SESSION_RULES_H

/** @file rules.h  Watch rules as the frontend knows them: names, and what became of exceptions. */

#include "agentd/frontend/session/session.h"
#include "protocol/rpc_arena.h"

/** Take the name of a rule that is in the configuration; the last one drops rules that are not. */
void rules_named(struct sessions *all, const struct ipc_rule_name *m);
/** @return the rule of this name; NULL: there is none. */
struct front_rule *rules_find(struct sessions *all, const char *name);
/** Take the rule from a session that it watches, for a client; the monitor does the same. */
void rules_release(struct session *s, const struct conn *by);
/** Add what a worker has counted (IPC_COUNTS). */
void rules_count(struct session *s, const struct ipc_message *m);
/** Count as lost what a worker had begun with: it will not count any more. */
void rules_over(struct session *s);
/** Describe all rules for agent.status.  @return a list in the arena; NULL without memory. */
struct rpc_rule_status *rules_status(const struct sessions *all, struct rpc_arena *a, size_t *ret_n);

#endif /* FRONTEND_SESSION_RULES_H */
