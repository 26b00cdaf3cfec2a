/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_NET_ARRIVALS_H
#define FRONTEND_NET_ARRIVALS_H

/**
 * @file arrivals.h
 * Connections that the judge has accepted: beginning to serve them, telling it what became of
 * them, and when to go for want of any.
 */

#include "agentd/frontend/net/net.h"
#include "agentd/ipc/monitor_frontend.h"

/**
 * Begin to take clients.
 * @param net  Its base, monitor, ops and limits are set already.
 * @return 0, -ENOMEM.
 */
int arrivals_init(struct net *net);
/** Free what arrivals_init() made, when the last connection is closed. */
void arrivals_deinit(struct net *net);
/**
 * Take the monitor's message about a client.
 * @param take_fd  The socket of a new one; -1: there is none, or it was lost for want of a descriptor.
 */
void arrivals_received(struct net *net, const struct ipc_client *m, int take_fd);
/** Tell the monitor that a connection is no more.  @param id  0: it was none. */
void arrivals_closed(struct net *net, uint64_t id);
/** Take the limits of a configuration that was read again. */
void arrivals_set_limits(struct net *net, const struct ipc_limits *m);

#endif /* FRONTEND_NET_ARRIVALS_H */
