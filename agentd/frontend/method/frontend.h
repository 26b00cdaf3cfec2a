/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_METHOD_FRONTEND_H
#define FRONTEND_METHOD_FRONTEND_H

/**
 * @file frontend.h
 * State of gpu-agent-front, and who owns what.
 *
 *	net      the listening socket, connections, their ends
 *	conn     one client; knows its unanswered requests and its attachments
 *	request  one JSON-RPC request that could not be answered at once; owned by who will answer
 *	starts   the requests that wait for the monitor
 *	session  one worker; owns the channel to it and the requests that wait for its answers
 *
 * A connection may vanish at any time: its requests then lose their conn pointer and their answers
 * go nowhere.
 */

#include "agentd/frontend/method/listing.h"
#include "agentd/frontend/net/net.h"
#include "agentd/frontend/net/monitor_link.h"
#include "agentd/frontend/rpc/request.h"
#include "agentd/frontend/rpc/start.h"
#include "agentd/frontend/session/session.h"

/** All of it. */
struct frontend {
	struct monitor_link monitor;
	struct net net;
	struct requests requests;
	struct starts starts;
	struct sessions sessions;

	struct listing_list listings;
	uint32_t n_hooks_asked; /**< IPC_HOOKS that the monitor has not answered. */

	/* What follows is for agent.hello and agent.status. */
	uint32_t sessions_per_user_max; /**< Enforced by the monitor. */
	bool user_mode;
	uint64_t started_ns, started_wall_us;
	pid_t daemon_pid; /**< The monitor, the process that a service manager knows. */
	uint64_t n_owed;  /**< How many notes IPC_NOTE_OWED there were. */
	bool replaced;	  /**< There was IPC_NOTE_REPLACED. */
};

/** @return the frontend that a request belongs to. */
static inline struct frontend *frontend_of(const struct request *r)
{
	return r->all->owner;
}

#endif /* FRONTEND_METHOD_FRONTEND_H */
