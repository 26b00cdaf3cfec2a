/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_NET_LISTENER_H
#define FRONTEND_NET_LISTENER_H

/** @file listener.h  Who may connect: accepting, quotas, and when to go for want of clients. */

#include "agentd/frontend/net/net.h"
#include "agentd/ipc/monitor_frontend.h"

/**
 * Begin to accept clients.
 * @param net  Its base, monitor, ops and limits are set already.
 * @return 0, -ENOMEM.
 */
int listener_init(struct net *net, int listen_fd);
/** Free what listener_init() made, when the last connection is closed. */
void listener_deinit(struct net *net);
/** Take the limits of a configuration that was read again, for present and future connections. */
void listener_set_limits(struct net *net, const struct ipc_limits *m);

#endif /* FRONTEND_NET_LISTENER_H */
