/* SPDX-License-Identifier: MIT */
#ifndef FRONT_H
#define FRONT_H

/**
 * @file front.h
 * State of gpu-agent-front, and who owns what.
 *
 *	front    owns connections, sessions and the link to spawn
 *	conn     one client; owns its attachments and (until answered) knows its requests
 *	session  one worker; owns the channel to it and the requests that wait for its answers
 *	request  one JSON-RPC request that could not be answered at once; owned by who will answer
 *
 * A connection may vanish at any time: its requests then lose their conn pointer and their answers
 * go nowhere.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "agentd/ipc.h"
#include "rpc_gen.h"

struct event;
struct event_base;

LIST_HEAD(closing_list, closing);
LIST_HEAD(conn_list, conn);
LIST_HEAD(session_list, session);
LIST_HEAD(request_list, request);

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

struct front {
	struct event_base *base;
	struct event *accept_event, *accept_retry, *idle_timer, *spawn_event;
	bool idle; /* spawn was told so and has not answered: nobody is accepted */
	int spawn_fd;

	/* limits, from the command line, and from spawn after a reload */
	uint32_t connections_max, connections_per_user_max, idle_ms;
	uint32_t sessions_per_user_max; /**< Enforced by spawn; told to clients. */
	uint32_t silent_holder_ms; /**< Others may take a lease whose holder asks for nothing for so long. */
	gid_t admin_gid;
	bool user_mode;

	struct closing_list closings; /**< Sockets that wait for a process to close them (closing.h). */
	struct event *closing_retry;
	struct conn_list conns;
	uint32_t n_conns;
	struct session_list sessions;
	uint32_t n_sessions; /**< Session workers, not inspect workers. */
	struct request_list waiting;  /**< For their turn to be sent to spawn as IPC_START. */
	struct request_list starting; /**< Wait for IPC_STARTED. */
	uint32_t n_asked; /**< IPC_START that spawn has not answered. */
	uint32_t n_hooks_asked; /**< IPC_HOOKS. */
	struct front_rule *rules;
	size_t n_rules;

	/** Descriptors that closed connections of a user have not read (given.h). */
	struct front_left {
		uid_t uid;
		uint32_t n;
	} left[32];

	struct suspended_target *suspended; /**< What suspending cost targets (suspensions.h). */
	size_t n_suspended;
	struct lease_lock lease_locks[LEASE_LOCKS_MAX];
	size_t n_lease_locks; /**< That there have been. */

	uint32_t last_request;
	uint64_t last_call;
	uint64_t started_ns;
	pid_t daemon_pid; /**< spawn, the process that a service manager knows. */
	uint64_t n_requests;
	uint64_t n_owed; /**< IPC_NOTE_OWED */
};

#endif /* FRONT_H */
