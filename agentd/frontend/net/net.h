/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_NET_H
#define FRONTEND_NET_H

/**
 * @file net.h
 * What all connections share, and who is told what happens to them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "agentd/frontend/net/closing.h"
#include "agentd/frontend/net/given.h"

struct agent_err;
struct conn;
struct event;
struct event_base;
struct net;
struct monitor_link;

LIST_HEAD(conn_list, conn);

/** What the directories above do with connections: they know what the messages of a client mean. */
struct net_ops {
	/** A whole message has arrived.  @param first  Nothing came before it. */
	void (*message)(struct conn *c, const char *body, size_t size, bool first);
	/** What has arrived is no message, for the reason in @p err. */
	void (*refuse)(struct conn *c, const struct agent_err *err);
	/** The client has taken some of what was sent. */
	void (*drained)(struct conn *c);
	/** The connection is being closed: nothing may point to it afterwards. */
	void (*gone)(struct conn *c);
	/** Tell whether there is work left, now that nobody has been connected for the idle time. */
	bool (*is_busy)(struct net *net);
};

/** All connections, and their limits, to which the monitor sees. */
struct net {
	const struct net_ops *ops;
	void *owner; /**< For the functions of ops. */
	struct event_base *base;
	struct monitor_link *monitor;
	struct event *retry, *idle_timer;
	bool idle; /**< The monitor was told that this process is idle. */
	bool stays; /**< There is something to do without clients. */

	/* These limits come from the command line, and from the monitor after a reload. */
	uint32_t connections_max, connections_per_user_max, idle_ms;

	/* What the monitor has yet to be told (arrivals.h). */
	uint16_t n_taken;
	uint32_t n_closed;
	uint64_t closed[IPC_CLIENTS_MAX];

	struct conn_list conns;
	uint32_t n_conns;
	uint64_t n_accepted, n_refused; /**< Connections that were served, and those above a limit. */
	struct closings closings;
	struct given given;
};

/** Begin to wait for the end of the idle time, if nobody is connected and nothing is to be done. */
void net_start_idle_timer(struct net *net);
/** Begin the idle time again: its length, or whether there is something to do, has changed. */
void net_update_idle(struct net *net);

#endif /* FRONTEND_NET_H */
