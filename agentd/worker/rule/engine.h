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
#include "agentd/worker/rule/threads.h"
#include "agentd/worker/snapshot/exception_capture.h"
#include "base/out.h"
#include "store/store.h"

struct event;

/** Records that wait for the store's answer; more are lost. */
#define RULE_ENGINE_PENDING_MAX 32

/** A record whose threads are read just now. */
struct rule_waiting {
	struct store_meta meta;
	struct out json; /**< Its document as far as that is known. */
	bool core;
};

/** Of one session; starts as RULE_ENGINE_NULL, then rule_engine_init(). */
struct rule_engine {
	struct rule_host host;
	struct ipc_rule rule; /**< Without a name there is no rule. */
	struct rate_limit state;
	struct ipc_counts counts; /**< What the frontend has not been told yet. */
	uint64_t exceptions;	  /**< All kinds that the rule has seen. */
	struct target_source seen; /**< Of the last look; seen_key is the key that it gave. */
	char seen_key[RATE_LIMIT_KEY_SIZE];
	int store_fd;		  /**< -1 before the first record. */
	struct event *answered;
	/** One hook for each unanswered record, oldest first. */
	struct rule_hook hooks[RULE_ENGINE_PENDING_MAX];
	size_t n_pending;
	struct rule_core core;
	struct rule_threads threads;
	struct rule_waiting waiting; /**< While threads are asked. */
	struct rule_hold hold;
};

#define RULE_ENGINE_NULL { .store_fd = -1, .core = RULE_CORE_NULL, .threads = RULE_THREADS_NULL }

/** What an exception means to a rule, as far as can be told before a look at the waves. */
struct rule_verdict {
	bool records;	 /**< There will be a record, unless the waves say that there was one. */
	bool unseen;	 /**< No look is allowed now: repeats are judged already. */
	bool core, full; /**< The record is to have a core. */
	bool why;	 /**< It is to say what waves wait for. */
};

/**
 * Connect the engine to its session, once that has its target, and before any call but
 * rule_engine_deinit().
 */
void rule_engine_init(struct rule_engine *w, const struct rule_host *host);
/** Set, change or (without a name) remove the rule.  @return 0, or negative with @p err. */
int rule_engine_set(struct rule_engine *w, const struct ipc_rule *rule, struct agent_err *err);
/**
 * Count an exception that has come and judge it; rule_engine_exception() follows.
 * @param may_look  Queues may stop for it.  For a core that is certain to be kept they may stop in
 *                  any case: a rule has as many cores as its rate allows.
 */
struct rule_verdict rule_engine_judge(struct rule_engine *w, const struct target_event *e,
				      bool may_look);
/**
 * Write the head of the exception's core: what a reader of that file knows who has nothing else.
 * @return 0, or negative with @p err.
 */
int rule_engine_head(struct rule_engine *w, const struct target_event *e,
		     const struct snapshot *seen, struct rpc_arena *a, struct out *ret,
		     struct agent_err *err);
/**
 * Make a record of the exception that was judged, before it goes on to the application.  This never
 * fails: what is lost is counted.
 * @param seen  The rule takes its core where it makes a record.
 * @return whether the exception is kept back: the engine calls target_ops.event_done later.
 */
bool rule_engine_exception(struct rule_engine *w, const struct target_event *e,
			   const struct rule_verdict *v, struct exception_capture *seen);
/** The target is to be free: whatever it gives to records is waited for no longer, and it gets its exceptions. */
void rule_engine_stop(struct rule_engine *w);
/**
 * The session is over and everything is undone: record how many exceptions are in no record, and
 * wait for the store's answers.
 */
void rule_engine_finish(struct rule_engine *w);
/** Release all that the engine holds. */
void rule_engine_deinit(struct rule_engine *w);

#endif /* WORKER_RULE_ENGINE_H */
