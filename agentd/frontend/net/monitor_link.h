/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_NET_MONITOR_LINK_H
#define FRONTEND_NET_MONITOR_LINK_H

/** @file monitor_link.h  The frontend's end of the socket pair to the monitor. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/ipc/monitor_frontend.h"

struct event;
struct event_base;

/**
 * Functions for the messages of the monitor, one for each type (agentd/ipc.h).  They own the
 * descriptor that they get, which is -1 when none came.
 */
struct monitor_link_ops {
	void (*client)(void *owner, const struct ipc_client *m, int take_fd);
	void (*started)(void *owner, const struct ipc_started *m, int take_channel);
	void (*ended)(void *owner, const struct ipc_ended *m);
	void (*hooked)(void *owner, const struct ipc_hooked *m, int take_fd);
	void (*watch)(void *owner, const struct ipc_watch *m, int take_channel);
	void (*rule_name)(void *owner, const struct ipc_rule_name *m);
	void (*limits)(void *owner, const struct ipc_limits *m);
	void (*closer)(void *owner, const struct ipc_closer *m);
	void (*owed)(void *owner);
	void (*replaced)(void *owner);
};

/** The link. */
struct monitor_link {
	const struct monitor_link_ops *ops;
	void *owner; /**< Of the ops. */
	struct event_base *base;
	struct event *event;
	int fd; /**< -1: there is nothing more to tell. */
};

/**
 * Begin to receive.  The event loop ends when the monitor is gone.
 * @param s           Its ops, owner and base are set already.
 * @param monitor_fd  Borrowed.
 * @return 0, -ENOMEM.
 */
int monitor_link_init(struct monitor_link *s, int monitor_fd);
/** Stop receiving. */
void monitor_link_deinit(struct monitor_link *s);
/** Send a message with @p n_fds descriptors, which are borrowed; a failure ends the event loop. */
void monitor_link_send(struct monitor_link *s, const void *msg, size_t size, const int *fds, size_t n_fds);
/** Send a message if the monitor takes it now.  @return 0, -EAGAIN, other -errno. */
int monitor_link_try(struct monitor_link *s, const void *msg, size_t size);
/** Send a message that has only a kind and a value. */
void monitor_link_note(struct monitor_link *s, enum ipc_note_kind kind, uint32_t value);
/** Ask that no rule watch the process of that worker any more, on behalf of the connection with that id. */
void monitor_link_release(struct monitor_link *s, uint32_t worker, uint64_t client);
/** Ask for a process that closes @p fd, which stays open here until closing_received() hears of it. */
void monitor_link_drop(struct monitor_link *s, int fd, uid_t uid);
/** Tell the monitor the figures for the service status. */
void monitor_link_status(struct monitor_link *s, uint32_t sessions, uint32_t connections);

#endif /* FRONTEND_NET_MONITOR_LINK_H */
