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

/** Most processes that close sockets of one user: with so many the user gets no new connection. */
#define CLOSING_PER_USER_MAX 8

/** Sockets that wait for a process to close them. */
struct closings {
	struct monitor_link *monitor;
	struct event_base *base;
	LIST_HEAD(, closing) list;
	struct event *retry;
};

/**
 * Begin with an empty list.
 * @param all  Its monitor and base are set already.
 * @return 0, -ENOMEM.
 */
int closing_init(struct closings *all);
/**
 * Close a client's socket that no other process reads, or have it closed; this never blocks.
 * @param take_fd  Owned by this function.
 */
void closing_end(struct closings *all, int take_fd, uid_t uid);
/**
 * Have a socket closed that another process reads as well, or that a descriptor lies in.
 * @param take_fd  Owned by this function.
 */
void closing_hand_over(struct closings *all, int take_fd, uid_t uid);
/** @return whether too much of what this user sent waits to be closed. */
bool closing_is_blocked(const struct closings *all, uid_t uid);
/** Take the monitor's message: its answer to a request, or that one of the processes has ended. */
void closing_received(struct closings *all, const struct ipc_closer *m);
/** Free the list.  Sockets that wait stay open: the end of this process closes them. */
void closing_deinit(struct closings *all);

#endif /* FRONTEND_NET_CLOSING_H */
