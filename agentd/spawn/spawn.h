/* SPDX-License-Identifier: MIT */
#ifndef SPAWN_H
#define SPAWN_H

/** @file spawn.h  Everything that the privileged process holds. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "agentd/ipc.h"
#include "agentd/spawn/closers.h"
#include "agentd/spawn/front.h"
#include "agentd/spawn/hooks/hook_requests.h"
#include "agentd/spawn/rules/watch.h"
#include "agentd/spawn/rules_service.h"
#include "agentd/spawn/settings.h"
#include "agentd/spawn/watchdog.h"
#include "agentd/spawn/workers.h"

struct spawn {
	const struct options *options;
	struct config config;
	struct settings_ids ids;
	struct rules watch_rules;
	uint32_t rules_generation;
	struct watches watches;
	struct rules_service rules_service;
	struct workers workers;
	struct hooks hooks;
	struct hook_desk hook_desk;
	struct programs programs;
	char records[sizeof(((struct config *)0)->socket) + 8];
	int listen_fd;
	struct sockaddr_un address; /**< Of the listening socket. */
	bool own_socket; /**< We made the socket file. */
	struct front front;
	int signal_fd;
	struct closers closers;
	struct watchdog watchdog; /**< For front. */
	uint64_t stop_at;  /**< Stopping: SIGKILL comes then. */
	bool left_workers; /**< To the kernel, which does not end them. */
	bool front_failed; /**< front ended although nobody asked it to. */
};

/** Tell front.  @param fd  To go along, borrowed; or -1. */
void spawn_tell_front(struct spawn *s, const void *msg, size_t size, int fd);
/** It takes messages again. */
void spawn_flush_front(struct spawn *s);
/** Give front up that takes none.  @return when that is due (monotonic ns); 0: all are sent. */
uint64_t spawn_front_deadline(struct spawn *s);
/** Tell it what it may serve.  @param serve_on  It thought that it was to stop. */
void spawn_tell_limits(struct spawn *s, bool serve_on);
/** Rules were read: first front knows their names, then processes get theirs. */
void spawn_apply_rules(struct spawn *s);

/** Read the configuration again; one with a mistake changes nothing. */
void spawn_reload(struct spawn *s);

/** Begin to stop. */
void spawn_stop(struct spawn *s);
/** front is of no use any more: stop, and fail. */
void spawn_front_failed(struct spawn *s);
/** Escalate while stopping.  @return false when nothing is left to wait for. */
bool spawn_stop_step(struct spawn *s);
/** Clients' sockets may be in what front has not received. */
void spawn_close_front(struct spawn *s);

#endif /* SPAWN_H */
