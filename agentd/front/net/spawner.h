/* SPDX-License-Identifier: MIT */
#ifndef FRONT_NET_SPAWNER_H
#define FRONT_NET_SPAWNER_H

/** @file spawner.h  front's end of the socket pair to spawn. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/ipc.h"

struct event;
struct event_base;

/** Who gets what spawn says.  A descriptor, or -1, is the receiver's. */
struct spawner_ops {
	void (*started)(void *owner, const struct ipc_started *m, int take_channel);
	void (*ended)(void *owner, const struct ipc_ended *m);
	void (*hooked)(void *owner, const struct ipc_hooked *m, int take_fd);
	void (*watch)(void *owner, const struct ipc_watch *m, int take_channel);
	void (*rule_name)(void *owner, const struct ipc_rule_name *m);
	void (*limits)(void *owner, const struct ipc_limits *m);
	void (*closer)(void *owner, const struct ipc_closer *m);
	void (*owed)(void *owner);
};

struct spawner {
	const struct spawner_ops *ops;
	void *owner; /**< Of the ops. */
	struct event_base *base;
	struct event *event;
	int fd; /**< -1: there is nothing more to tell. */
};

/** @p s has its ops and the event loop already; that one ends when spawn is gone. */
int spawner_init(struct spawner *s, int spawn_fd);
void spawner_deinit(struct spawner *s);
/** Send a message with @p n_fds descriptors, which are borrowed. */
void spawner_send(struct spawner *s, const void *msg, size_t size, const int *fds, size_t n_fds);
void spawner_note(struct spawner *s, enum ipc_note_kind kind, uint32_t value);
/** Ask for a process that closes @p fd, which is kept until closing_received() hears of it. */
void spawner_drop(struct spawner *s, int fd, uid_t uid);
/** Tell spawn the figures for the service status. */
void spawner_status(struct spawner *s, uint32_t sessions, uint32_t connections);

#endif /* FRONT_NET_SPAWNER_H */
