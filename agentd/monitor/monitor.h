/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_H
#define MONITOR_H

/** @file the monitor.h  Everything that the privileged process holds. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "agentd/ipc.h"
#include "agentd/monitor/closers.h"
#include "agentd/monitor/front.h"
#include "agentd/rules/hooks/hook_requests.h"
#include "agentd/rules/engine/watch.h"
#include "agentd/monitor/rules_service.h"
#include "agentd/monitor/settings.h"
#include "agentd/monitor/watchdog.h"
#include "agentd/monitor/workers.h"

struct monitor {
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
	bool front_failed; /**< The frontend ended although nobody asked it to. */
};

/** Tell front.  @param fd  To go along, borrowed; or -1. */
void monitor_tell_front(struct monitor *s, const void *msg, size_t size, int fd);
/** It takes messages again. */
void monitor_flush_front(struct monitor *s);
/** Give the frontend up that takes none.  @return when that is due (monotonic ns); 0: all are sent. */
uint64_t monitor_front_deadline(struct monitor *s);
/** Tell it what it may serve.  @param serve_on  It thought that it was to stop. */
void monitor_tell_limits(struct monitor *s, bool serve_on);
/** Rules were read: first the frontend knows their names, then processes get theirs. */
void monitor_apply_rules(struct monitor *s);

/** Read the configuration again; one with a mistake changes nothing. */
void monitor_reload(struct monitor *s);

/** Begin to stop. */
void monitor_stop(struct monitor *s);
/** The frontend is of no use any more: stop, and fail. */
void monitor_front_failed(struct monitor *s);
/** Escalate while stopping.  @return false when nothing is left to wait for. */
bool monitor_stop_step(struct monitor *s);
/** Clients' sockets may be in what the frontend has not received. */
void monitor_close_front(struct monitor *s);

#endif /* MONITOR_H */
