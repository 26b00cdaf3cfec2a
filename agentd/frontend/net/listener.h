/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_NET_LISTENER_H
#define FRONTEND_NET_LISTENER_H

/** @file listener.h  Who may connect: accepting, quotas, and when to go for want of clients. */

#include "agentd/frontend/net/net.h"
#include "agentd/ipc/monitor_frontend.h"

/** Take clients from the listening socket. */
int listener_init(struct net *net, int listen_fd);
/** When the last connection is closed. */
void listener_deinit(struct net *net);
/** The configuration was read again: for those who are connected, and those who come. */
void listener_set_limits(struct net *net, const struct ipc_limits *m);

#endif /* FRONTEND_NET_LISTENER_H */
