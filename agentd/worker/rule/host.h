/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RULE_HOST_H
#define WORKER_RULE_HOST_H

/**
 * @file host.h
 * What a rule asks of the session that it is on.  A rule knows no sessions: the session fills this in.
 */

#include "agentd/worker/process/deadline.h"
#include "agentd/worker/snapshot/snapshot.h"
#include "agentd/worker/target/target.h"

struct event_base;
struct ipc_counts;

struct rule_host_ops {
	/**
	 * Called before and after work that no call asked for and that may need the target
	 * (session_work_begin()).
	 */
	void (*work_begin)(void *session);
	void (*work_end)(void *session);
	/** Called before and after what the target waits for (session_undo_begin()). */
	void (*undo_begin)(void *session);
	void (*undo_end)(void *session);
	/** The rule needs its core no longer; does nothing where it has none. */
	void (*core_end)(void *session);
	/** Tell the frontend what became of exceptions that the rule is for. */
	void (*send_counts)(void *session, const struct ipc_counts *counts);
	/** From now on the rule wants these exceptions.  @return 0 or negative with @p err. */
	int (*subscribe)(void *session, uint64_t exceptions, struct agent_err *err);
	/** Put what was waited for into a document of what was seen.  @return 0 or negative with @p err. */
	int (*tell_waits)(void *session, struct rpc_arena *a, const struct snapshot *seen, const uint32_t *group_of,
			  uint32_t look_up_ms, struct rpc_gpu_snapshot_result *doc, struct agent_err *err);
	/** The target's debug session may be over: find out, soon. */
	void (*target_ended)(void *session);
};

struct rule_host {
	const struct rule_host_ops *ops;
	void *session; /**< First argument of each operation. */
	uint32_t number; /**< The session's, for log texts. */
	struct target *target;
	const struct deadline *deadline; /**< The session's. */
	struct event_base *base;
};

#endif /* WORKER_RULE_HOST_H */
