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

#include "agentd/ipc/frontend_worker.h"
#include "agentd/worker/rule/core.h"
#include "agentd/worker/rule/rate_limit.h"
#include "agentd/worker/snapshot/exception_capture.h"

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

/** What an exception means to a rule, as far as can be told before anybody has looked at the waves. */
struct rule_verdict {
	bool records;	 /**< There will be a record, unless the waves say that there was one. */
	bool unseen;	 /**< No look is allowed now: whether there was one is judged already. */
	bool core, full; /**< The record is to have a core. */
};

/** Before anything but rule_engine_deinit(), once the session has its target. */
void rule_engine_init(struct rule_engine *w, const struct rule_host *host);
/** A rule comes, changes, or (without a name) goes.  @return 0 or negative with @p err. */
int rule_engine_set(struct rule_engine *w, const struct ipc_rule *rule, struct agent_err *err);
/**
 * An exception has come: it is counted; then rule_engine_exception().
 * @param may_look  Queues may stop for it.  For a core they may in any case, where that is certain to
 *                  be kept: a rule has as many as its rate allows.
 */
struct rule_verdict rule_engine_judge(struct rule_engine *w, const struct target_event *e,
				      bool may_look);
/** What its core says of itself to whoever has nothing else.  @return 0, or negative with @p err. */
int rule_engine_head(struct rule_engine *w, const struct target_event *e,
		     const struct snapshot *seen, struct rpc_arena *a, struct out *ret,
		     struct agent_err *err);
/**
 * The same one, before it goes on to the application.  Never fails: what is lost is counted.
 * @param seen  The rule takes its core where it makes a record.
 * @return whether it is kept back: the watch does target_ops.event_done itself, later.
 */
bool rule_engine_exception(struct rule_engine *w, const struct target_event *e,
			   const struct rule_verdict *v, struct exception_capture *seen);
/** The session is over, everything is undone: say how many were not recorded, hear what the store says. */
void rule_engine_finish(struct rule_engine *w);
void rule_engine_deinit(struct rule_engine *w);

#endif /* WORKER_RULE_ENGINE_H */
