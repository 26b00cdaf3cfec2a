/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_NET_CLOSING_H
#define FRONTEND_NET_CLOSING_H

/**
 * @file closing.h
 * Letting go of clients' sockets without ever waiting for what somebody has sent on them.
 *
 * Whoever drops a stranger's descriptor may block for as long as the stranger likes, and closing the
 * socket in which it lies drops it.  A socket is therefore emptied first, by a read that takes bytes
 * only; when that is not possible, a process that the monitor makes for it is the last to close it.
 */

#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "agentd/ipc/monitor_frontend.h"

struct event;
struct event_base;
struct monitor_link;

/** Processes that close sockets of one user; with so many he gets no new connection. */
#define CLOSING_PER_USER_MAX 8

/** Sockets that wait for a process to close them. */
struct closings {
	struct monitor_link *monitor;
	struct event_base *base;
	LIST_HEAD(, closing) list;
	struct event *retry;
};

/** @p all has the first two already. */
int closing_init(struct closings *all);
/** Close a client's socket that no other process reads.  @return now or later, but never here. */
void closing_end(struct closings *all, int take_fd, uid_t uid);
/** Close one that another process reads as well, or that a descriptor lies in. */
void closing_hand_over(struct closings *all, int take_fd, uid_t uid);
/** Too much of what this user sent waits to be closed. */
bool closing_is_blocked(const struct closings *all, uid_t uid);
/** The monitor's answer, or that one of the processes has ended. */
void closing_received(struct closings *all, const struct ipc_closer *m);
/** Sockets that wait stay open: the end of this process closes them. */
void closing_deinit(struct closings *all);

#endif /* FRONTEND_NET_CLOSING_H */
