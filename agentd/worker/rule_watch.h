/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RULE_WATCH_H
#define WORKER_RULE_WATCH_H

/**
 * @file rule_watch.h
 * A watch rule on a session: it subscribes as one more client, and of each exception makes a record,
 * before the application gets its fault.
 *
 * The application does not wait for the disk: a record is handed to the store's process, whose
 * answer comes later.
 */

#include "agentd/worker/rule.h"
#include "agentd/worker/target.h"

struct event;
struct session;

/** Its number among the clients (subscribers.h); front's own begin at 1. */
#define RULE_WATCH_CLIENT UINT32_MAX
/** Records that the store has not answered; more are lost. */
#define RULE_WATCH_PENDING_MAX 32

/** What a hook is to be told. */
struct rule_hook {
	int fd; /**< Its document; -1: there is no hook. */
	struct ipc_fault fault;
};

/** Of one session; starts as RULE_WATCH_NULL. */
struct rule_watch {
	struct ipc_rule rule; /**< Without a name: none. */
	struct rule_state state;
	struct ipc_counts counts; /**< That front has not been told. */
	uint64_t exceptions;	  /**< All kinds that were seen. */
	uint64_t rest_until;	  /**< Monotonic; no look before. */
	struct target_source seen; /**< Of the last look, and the key that it gave. */
	char seen_key[RULE_KEY_SIZE];
	int store_fd;		  /**< -1 before the first record. */
	struct event *answered;
	struct rule_hook hooks[RULE_WATCH_PENDING_MAX]; /**< For each unanswered record, oldest first. */
	size_t n_pending;
};

#define RULE_WATCH_NULL { .store_fd = -1 }

/** A rule comes, changes, or (without a name) goes.  @return 0 or negative with @p err. */
int rule_watch_set(struct session *s, const struct ipc_rule *rule, struct agent_err *err);
/** An exception, before it goes on to the application.  Never fails: what is lost is counted. */
void rule_watch_exception(struct session *s, const struct target_event *e);
/** The session is over, everything is undone: say how many were not recorded. */
void rule_watch_end(struct session *s);
void rule_watch_deinit(struct rule_watch *w);

#endif /* WORKER_RULE_WATCH_H */
