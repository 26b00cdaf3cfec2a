/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_FRONT_H
#define MONITOR_FRONT_H

/** @file front.h  The process that serves clients, and the socket to it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/config.h"

struct front_message;

struct front {
	pid_t pid; /**< 0: it has ended. */
	int sock;  /**< -1: closed. */
	struct front_message *first, *last; /**< It was too busy to take these. */
	size_t n_waiting;
	uint64_t give_up_at; /**< Unless it takes one until then it is broken; 0: none waits. */
};

#define FRONT_NULL { .sock = -1 }

/** What it is started with. */
struct front_setup {
	const char *program;
	const struct config *config;
	uid_t uid; /**< It becomes this user. */
	gid_t gid;
	bool user_mode, verbose;
};

/** @return 0, -errno. */
int front_start(struct front *f, const struct front_setup *setup);
/**
 * Send a message, or have it wait for front_flush(): this never waits.
 * @param fd  To go along, borrowed; or -1.  A message that waits goes without it when this process
 *            has no free descriptor.
 * @return 0, -EPIPE, -ENOBUFS (very many wait), -errno: it is broken.
 */
int front_send(struct front *f, const void *msg, size_t size, int fd);
/**
 * Send a message and a client's socket now or not at all: one that waited here could be closed here
 * last, with whatever lies in it.
 * @return 0, -EAGAIN, -errno.
 */
int front_pass(struct front *f, const void *msg, size_t size, int fd);
/** It would take another message at once. */
bool front_has_room(const struct front *f);
/** For poll(). */
short front_events(const struct front *f);
/**
 * Send what waits, as far as the frontend takes it.
 * @return 0, -EAGAIN: it took nothing in time; -errno.
 */
int front_flush(struct front *f);
/** What waits is not sent any more. */
void front_forget(struct front *f);

#endif /* MONITOR_FRONT_H */
