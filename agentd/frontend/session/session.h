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
struct reader_target;

LIST_HEAD(session_list, session);

#define SESSION_ID_SIZE 16

/** A watch rule, and what happened by it since the agent started. */
struct front_rule {
	char name[IPC_RULE_NAME_SIZE];
	uint32_t generation;
	uint64_t matched; /**< Processes. */
	struct ipc_counts counts;
};

/** A client that lost control of a target, and shall not have it back at once (lease.h). */
struct lease_lock {
	uint32_t target;
	pid_t pid;
	uid_t uid;
	uint64_t end_ns;
};
/** How many of them are remembered: the latest. */
#define LEASE_LOCKS_MAX 64

/** Upper ends of the classes of stops, in microseconds and as OpenMetrics wants them; one more has what is longer. */
#define SESSION_STOP_CLASSES(X)                                                                                \
	X(1000, "0.001") X(3000, "0.003") X(10000, "0.01") X(30000, "0.03") X(100000, "0.1") X(300000, "0.3") \
	X(1000000, "1.0") X(3000000, "3.0") X(10000000, "10.0")
#define SESSION_STOP_ONE(us, seconds) +1
#define SESSION_STOPS (0 SESSION_STOP_CLASSES(SESSION_STOP_ONE))
#define SESSION_END_REASONS 7
#define SESSION_EXCEPTIONS  64

/** What happened since the agent started, for agent.metrics. */
struct session_counts {
	uint64_t begun, ended[SESSION_END_REASONS]; /**< By enum rpc_end_reason. */
	uint64_t exceptions[SESSION_EXCEPTIONS]; /**< By bit: enum rpc_exception less one. */
	uint64_t stops[SESSION_STOPS + 1];   /**< Stops of queues for snapshots and the like, by class. */
	uint64_t stopped_us;		     /**< All of them together. */
	uint64_t suspensions, suspended_ns;  /**< By clients; the time of those that are over. */
};

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
	struct reader_target *readers; /**< What was stopped for clients that may only look (readers.h). */
	struct lease_lock lease_locks[LEASE_LOCKS_MAX];
	size_t n_lease_locks; /**< How many there have been; the list is used as a ring. */
	struct session_counts counts;
};

/** A client has lost the writer lease, and the worker has not said yet that all is undone (lease.h). */
struct lease_loss {
	bool open;
	uint64_t call_id; /**< The answer to this call says so. */
	uint64_t end_ns;  /**< When the worker is killed if it has not answered. */
	uint32_t client;  /**< Number of the attachment that lost it. */
	uint32_t by_pid, by_uid;
	uint64_t by, from; /**< Ids of the connections that have it now, and that had it, */
	uint64_t idle_ms;  /**< which asked for something so long ago. */
	enum rpc_control_reason reason;
};

/** One worker, or one process at the record store. */
struct session {
	LIST_ENTRY(session) link;
	struct sessions *all;
	enum ipc_kind kind;
	uint32_t number;
	uint32_t worker; /**< The monitor's number for the process. */
	char id[SESSION_ID_SIZE];
	uint32_t pid;
	uid_t uid;
	char comm[16];
	enum rpc_vendor vendor; /**< 0: not attached yet. */
	char rule[IPC_RULE_NAME_SIZE]; /**< The rule for which it goes on without clients; or "". */
	uint64_t n_begun; /**< Exceptions for the rule of which the worker has not said more yet. */
	uint64_t n_undecided; /**< Counted ones of which it has not said what became of them. */
	uint64_t since_ns;
	struct ipc_link channel;
	struct event *read_event, *write_event;
	/** At its end a worker is killed if it does not leave; a store with nothing to do ends. */
	struct event *end_timer;
	struct attachment_list attachments;
	struct conn *writer;
	uint64_t renewals; /**< How often the lease of the present suspension was renewed. */
	struct lease_loss loss;
	struct event *undo_timer;
	struct conn *client; /**< The connection whose requests a store process serves. */
	struct request_list calls;   /**< Requests that were sent to the worker. */
	uint32_t last_client;	     /**< Number of the last attachment. */
	uint64_t heard_ns;	     /**< When it last answered, or got something to do. */
	struct request_list leavers; /**< session.detach, answered when the worker is gone. */
	struct request_list comers;  /**< session.attach that came while this session was ending. */
	struct ipc_suspension *suspension; /**< What its worker told last; NULL: nothing was ever suspended. */
	bool closing;	 /**< The channel is closed, or being closed, by us. */
	bool over;	 /**< The worker said that the session ended. */
	bool killed;	 /**< The monitor was told to kill the worker. */
	enum rpc_end_reason reason;
	int end_signal; /**< Signal from outside that ended the worker; 0: none did. */
	uint32_t end_uid; /**< Who may have sent it. */
	char *attach_error; /**< Why attaching failed, for all requests that wait for it; owned. */
	size_t attach_error_size;
};

#define SESSION_END_WORDS 160
/** Why the session is over, as people read it.  @return @p buf. */
const char *session_end_words(const struct session *s, char buf[SESSION_END_WORDS]);

/** @return the session of a worker, by the monitor's number; NULL: there is none. */
struct session *session_find_worker(struct sessions *all, uint32_t worker);

/**
 * Send a message to the worker.
 * @param text     head->size bytes, borrowed.
 * @param take_fd  Descriptor that goes with the message, owned by this function; -1: none.
 * @return 0, or negative when it was not sent; a worker that is gone shows when something is read.
 */
int session_send(struct session *s, const struct ipc_head *head, const char *text, int take_fd);
/**
 * Send a message that must arrive, or the worker is killed: a target would stay suspended, or withhold
 * faults, for a client that is gone.
 */
void session_tell(struct session *s, const struct ipc_head *head);
/** Tell the worker to undo what a holder of the lease may not leave behind. */
void session_lease_lost(struct session *s, enum rpc_resume_reason why);
/** Have the monitor kill a worker that does not do what it must; the kernel lets the target run. */
void session_kill(struct session *s);
/** Close the channel, so that the worker leaves; it is killed if it does not. */
void session_close(struct session *s);
/** End a session that neither a client nor a rule holds any more. */
void session_check_needed(struct session *s);

#endif /* FRONTEND_SESSION_H */
