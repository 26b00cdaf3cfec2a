/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SESSION_H
#define WORKER_SESSION_H

/**
 * @file session.h
 * A session worker: attach, serve calls, watch the target, undo, go.
 *
 * The loop has two priorities: ptrace stops of the leader come before everything else, so that a
 * signal to the target waits as short as possible.
 */

#include <event2/event.h>

#include "agentd/ipc/frontend_worker.h"
#include "agentd/worker/process/deadline.h"
#include "agentd/worker/rule/engine.h"
#include "agentd/worker/session/exception_report.h"
#include "agentd/worker/session/readers.h"
#include "agentd/worker/session/subscribers.h"
#include "agentd/worker/session/suspension.h"
#include "agentd/worker/session/usage.h"
#include "agentd/worker/snapshot/exception_capture.h"
#include "agentd/worker/target/target.h"

/** Whose core the target keeps; it keeps one at a time. */
enum core_user { CORE_NOBODY, CORE_CLIENT, CORE_RULE };

struct session {
	const struct worker_options *options;
	struct target *target; /**< NULL when attaching failed. */
	struct agent_err attach_err;
	struct ipc_link link;
	struct deadline deadline;
	int store_fd; /**< To the store (rule/store_link.h); -1 before the first record. */
	struct event_base *base;
	struct event *readable, *writable, *deadline_read, *target_event, *target_exit, *child,
		*term;
	struct event *lease, *no_call;
	uint64_t lease_end_ns; /**< 0: no suspend lease is open. */
	uint32_t stopped_us; /**< Length of a look's stop that the frontend has not been told of. */
	uint64_t looks_ns;   /**< How long queues have stood still for looks so far. */
	struct suspension suspension; /**< What the frontend was told, and the sums. */
	struct event *soon; /**< The longest stop of the queues is nearly over. */
	uint32_t max_suspended_ms; /**< That longest stop, for the holder of the lease; 0: no limit. */
	bool lease_is_last; /**< The lease ends with that longest stop. */
	uint64_t undo_armed_until_ns; /**< The deadline is armed for an undo that begins before. */
	struct ipc_head call;  /**< The call being handled. */
	int call_fd; /**< Sent by the frontend with the call; -1: none, or taken. */
	enum core_user core_user;
	uint64_t core_bytes;	    /**< Size of the client's core that was begun last. */
	struct core_output *output; /**< That core on its way to the client, or NULL. */
	struct readers readers;
	struct last_look *last_look; /**< What the last stop for a client that may only look has shown; or NULL. */
	struct history *looks; /**< Of why.get; or NULL. */
	struct late_memory *late_memory; /**< The same. */
	struct subscribers subscribers;
	struct usage usage;
	struct exception_throttle captures;
	struct exception_report reports;
	struct rule_engine rule;
	bool over_known;
	enum rpc_end_reason reason;
	bool look; /**< For the monitor, at the end: IPC_EXIT_LOOK. */
};

/** Run a worker for one session, from attaching to the end.  @return the exit status. */
int session_run(const struct worker_options *o);

/** Start, move or (0 ms) end the suspend lease. */
void session_set_lease(struct session *s, uint32_t ms);
/**
 * Arm the deadline for a short stop of queues.
 * @return milliseconds granted: seven seconds at most, less than asked when a lease ends earlier.
 */
uint32_t session_stop_begin(struct session *s, uint32_t ms);
/** As session_stop_begin(), for a stop before the target gets its fault: that waits no longer than for an undo. */
uint32_t session_look_begin(struct session *s, uint32_t ms);
/** As session_stop_begin(), for a core, which needs time before and after its stop. */
uint32_t session_core_stop_begin(struct session *s, uint32_t ms);
/**
 * Queues run again: arm the usual deadline for what the call has left to do.
 * @return milliseconds that this may take; less when a lease ends earlier.
 */
uint32_t session_stop_end(struct session *s);
/**
 * Called before and after work that no call asked for and that may need the target: the monitor
 * kills a worker that gets stuck in between.
 */
void session_work_begin(struct session *s);
void session_work_end(struct session *s);
/**
 * Begin an undo, or what else the target waits for: a worker that gets stuck in it is killed so
 * early that the target is free within a second.
 */
void session_undo_begin(struct session *s);
/** End that; what is left to do gets its usual time. */
void session_undo_end(struct session *s);
/**
 * Call target_ops.core_begin within the time that a lease leaves.
 * @param stop_ms  The stop budget.
 * @return 0, or negative with @p err.
 */
int session_core_begin(struct session *s, struct target_waves_from *from,
		       const struct target_core_wanted *what, uint32_t stop_ms, struct rpc_arena *a,
		       struct target_core *ret, struct agent_err *err);
/** By the call that is being served its client has the writer lease from now on. */
void session_lease_taken(struct session *s);
/** Send the frontend a message of its own, whose text is not JSON. */
void session_tell(struct session *s, enum ipc_frontend_worker_type type, const struct out *text);
/** @return the session as the rule on it sees it; valid as long as the session. */
struct rule_host session_rule_host(struct session *s);
/** Note how long queues stood still for a look: the next message tells the frontend, which counts. */
void session_note_stop(struct session *s, uint64_t stopped_us);
/**
 * Send a notification whose parameters are in @p text.
 * @param exceptions  Mask of those that it tells of.
 */
void session_notify(struct session *s, enum rpc_notification n, uint64_t exceptions, const struct out *text);
/** Tell the target what all clients together subscribe to.  @return 0, or negative with @p err. */
int session_subscribe(struct session *s, struct agent_err *err);
/**
 * The same after a client has left or could not have what it wanted: the others would otherwise miss
 * exceptions and not know.  Where that fails for good, the session ends.
 */
void session_subscribe_again(struct session *s);
/** Write the id that clients use: "s" and the number. */
void session_id(const struct session *s, char buf[16]);

/** The methods that a session answers; their context is the struct session. */
extern const struct rpc_session_handlers session_handlers;

#endif /* WORKER_SESSION_H */
