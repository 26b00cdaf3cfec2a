/* SPDX-License-Identifier: MIT */
#ifndef SPAWN_FRONT_H
#define SPAWN_FRONT_H

/** @file front.h  The process that serves clients, and the socket to it. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "agentd/spawn/config/config.h"

struct front {
	pid_t pid; /**< 0: it has ended. */
	int sock;  /**< -1: closed. */
};

#define FRONT_NULL { .sock = -1 }

/** What it is started with. */
struct front_setup {
	const char *program;
	const struct config *config;
	uid_t uid; /**< It becomes this user. */
	gid_t gid, admin_gid;
	bool user_mode, verbose;
	int listen_fd;
};

/** @return 0, -errno. */
int front_start(struct front *f, const struct front_setup *setup);
/**
 * Send a message.
 * @param fd  To go along, borrowed; or -1.
 * @return 0, -EPIPE, -errno: it is broken.
 */
int front_send(struct front *f, const void *msg, size_t size, int fd);

#endif /* SPAWN_FRONT_H */
