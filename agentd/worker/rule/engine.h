/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RULE_ENGINE_H
#define WORKER_RULE_ENGINE_H

/**
 * @file engine.h
 * A watch rule on a session: it subscribes as one more client, and of each exception makes a record,
 * before the application gets its fault.
 *
 * The application does not wait for the disk: a record is handed to the store's process, whose
 * answer comes later.
 */

#include "agentd/worker/rule/core.h"
#include "agentd/worker/rule/rate_limit.h"

struct event;

/** Records that the store has not answered; more are lost. */
#define RULE_ENGINE_PENDING_MAX 32

/** Of one session; starts as RULE_ENGINE_NULL, then rule_engine_init(). */
struct rule_engine {
	struct rule_host host;
	struct ipc_rule rule; /**< Without a name: none. */
	struct rate_limit state;
	struct ipc_counts counts; /**< That the frontend has not been told. */
	uint64_t exceptions;	  /**< All kinds that were seen. */
	uint64_t rest_until;	  /**< Monotonic; no look before. */
	struct target_source seen; /**< Of the last look, and the key that it gave. */
	char seen_key[RATE_LIMIT_KEY_SIZE];
	int store_fd;		  /**< -1 before the first record. */
	struct event *answered;
	/** For each unanswered record, oldest first. */
	struct rule_hook hooks[RULE_ENGINE_PENDING_MAX];
	size_t n_pending;
	struct rule_core core;
};

#define RULE_ENGINE_NULL { .store_fd = -1, .core = RULE_CORE_NULL }

/** Before anything but rule_engine_deinit(), once the session has its target. */
void rule_engine_init(struct rule_engine *w, const struct rule_host *host);
/** A rule comes, changes, or (without a name) goes.  @return 0 or negative with @p err. */
int rule_engine_set(struct rule_engine *w, const struct ipc_rule *rule, struct agent_err *err);
/**
 * An exception, before it goes on to the application.  Never fails: what is lost is counted.
 * @return whether it is kept back: the watch does target_ops.event_done itself, later.
 */
bool rule_engine_exception(struct rule_engine *w, const struct target_event *e);
/** The session is over, everything is undone: say how many were not recorded, hear what the store says. */
void rule_engine_finish(struct rule_engine *w);
void rule_engine_deinit(struct rule_engine *w);

#endif /* WORKER_RULE_ENGINE_H */
