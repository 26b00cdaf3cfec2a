/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_SESSION_H
#define FRONTEND_SESSION_H

/**
 * @file session.h
 * Sessions: one per target, held by any number of connections, one of which may hold the writer
 * lease.  Inspect workers are sessions that nobody is attached to and that serve one request; store
 * processes serve the requests of one connection.
 */

#include "agentd/frontend/net/conn.h"
#include "agentd/ipc/child.h"
#include "agentd/ipc/frontend_worker.h"
#include "agentd/ipc/link.h"
#include "rpc_gen.h"

struct net;
struct monitor_link;
struct starts;
struct suspended_target;

LIST_HEAD(session_list, session);

#define SESSION_ID_SIZE 16

/** A watch rule, and what happened by it since the agent started. */
struct front_rule {
	char name[IPC_RULE_NAME_SIZE];
	uint32_t generation;
	uint64_t matched; /**< Processes. */
	struct ipc_counts counts;
};

/** Lost control of a target, and shall not have it back at once (lease.h). */
struct lease_lock {
	uint32_t target;
	pid_t pid;
	uid_t uid;
	uint64_t end_ns;
};
/** Those that are remembered, the latest. */
#define LEASE_LOCKS_MAX 64

/** What all sessions share. */
struct sessions {
	struct event_base *base;
	struct net *net;
	struct monitor_link *monitor;
	struct starts *starts;
	struct session_list list;
	uint32_t n; /**< Session workers, not inspect workers. */
	uint64_t last_call;
	uint32_t silent_holder_ms; /**< Others may take a lease whose holder asks for nothing for so long. */
	struct front_rule *rules;
	size_t n_rules;
	struct suspended_target *suspended; /**< What suspending cost targets (suspensions.h). */
	size_t n_suspended;
	struct lease_lock lease_locks[LEASE_LOCKS_MAX];
	size_t n_lease_locks; /**< That there have been. */
};

/** Somebody has lost the writer lease, and the worker has not said yet that all is undone (lease.h). */
struct lease_loss {
	bool open;
	uint64_t call_id; /**< The answer to this call says so. */
	uint64_t end_ns;  /**< Without it the worker is killed then. */
	uint32_t client;  /**< Number of the attachment that lost it. */
	uint32_t by_pid, by_uid;
	enum rpc_control_reason reason;
};

struct session {
	LIST_ENTRY(session) link;
	struct sessions *all;
	enum ipc_kind kind;
	uint32_t number;
	uint32_t worker; /**< Id that the monitor knows it by. */
	char id[SESSION_ID_SIZE];
	uint32_t pid;
	uid_t uid;
	char comm[16];
	enum rpc_vendor vendor; /**< 0: not attached yet. */
	char rule[IPC_RULE_NAME_SIZE]; /**< Watches the target, so that it goes on without clients; or "". */
	uint64_t n_begun; /**< Exceptions for the rule of which the worker has not said more yet. */
	uint64_t n_undecided; /**< Counted ones of which it has not said what became of them. */
	uint64_t since_ns;
	struct ipc_link channel;
	struct event *read_event, *write_event;
	/** Ending: the worker is killed unless it leaves in time.  Store with nothing to do: it ends. */
	struct event *end_timer;
	struct attachment_list attachments;
	struct conn *writer;
	uint64_t renewals; /**< Of the suspension that lasts. */
	struct lease_loss loss;
	struct event *undo_timer;
	struct conn *client; /**< Of a store process: whose requests it serves. */
	struct request_list calls;   /**< Sent to the worker. */
	uint32_t last_client;	     /**< Number of the last attachment. */
	uint64_t heard_ns;	     /**< Last answer, or when it got something to do. */
	struct request_list leavers; /**< session.detach, answered when the worker is gone. */
	struct request_list comers;  /**< session.attach that came while this session was ending. */
	struct ipc_suspension *suspension; /**< As its worker told last; NULL: nothing was ever suspended. */
	bool closing;	 /**< The channel is closed, or being closed, by us. */
	bool over;	 /**< The worker said that the session ended. */
	bool killed;	 /**< The monitor was told to kill the worker. */
	enum rpc_end_reason reason;
	char *attach_error; /**< Why attaching failed: for everybody who waits for it. */
	size_t attach_error_size;
};

struct session *session_find_worker(struct sessions *all, uint32_t worker);

/**
 * A message to the worker.  @param take_fd  Goes with it; -1: none.
 * @return 0, or negative when it was not sent; a worker that is gone shows when something is read.
 */
int session_send(struct session *s, const struct ipc_head *head, const char *text, int take_fd);
/**
 * The same for what must arrive, or the worker is killed: a target would stay suspended, or withhold
 * faults, for somebody who is gone.
 */
void session_tell(struct session *s, const struct ipc_head *head);
/** The holder has lost the lease: the worker is to undo what he may not leave behind. */
void session_lease_lost(struct session *s, enum rpc_resume_reason why);
/** The worker does not do what it must: the monitor kills it, and the kernel lets the target run. */
void session_kill(struct session *s);
/** The worker is to leave. */
void session_close(struct session *s);
/** End it when nobody holds it any more, client or rule. */
void session_check_needed(struct session *s);

#endif /* FRONTEND_SESSION_H */
