/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_H
#define MONITOR_H

/** @file monitor.h  Everything that the privileged process holds, and its two neighbours. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentd/ipc/link.h"
#include "agentd/ipc/manager_monitor.h"
#include "agentd/ipc/outbox.h"
#include "agentd/monitor/workers.h"
#include "agentd/programs.h"

struct monitor {
	struct monitor_config config; /**< An empty name of the socket: the manager has not told it yet. */
	struct programs programs;
	struct workers workers;
	char records[sizeof(((struct config *)0)->socket) + 8];
	struct ipc_link manager; /**< Closed when the manager is gone, or of no use. */
	struct outbox judge;
	int signal_fd;
	uint32_t run;	   /**< Of the rules process. */
	uint64_t stop_at;  /**< Stopping: SIGKILL comes then. */
};

/** Tell the judge, or the frontend through it.  @param fd  To go along, borrowed; or -1. */
void monitor_tell_judge(struct monitor *s, const void *msg, size_t size, int fd);
/** It takes messages again. */
void monitor_flush_judge(struct monitor *s);
/** Give the judge up that takes none.  @return when that is due (monotonic ns); 0: all are sent. */
uint64_t monitor_judge_deadline(struct monitor *s);
/** Close the socket to it: clients' sockets may be in what this process has not received. */
void monitor_close_judge(struct monitor *s);

/**
 * Tell the manager, or the rules process through it; without a manager, nobody.
 * @param type    An enum monitor_type or rules_type.
 * @param data    NULL: the message has none.
 * @param fd      Goes along, borrowed; or -1.
 */
void monitor_tell_manager(struct monitor *s, uint32_t type, uint32_t number, const void *data, size_t size, int fd);
/** The manager is gone, or takes no messages: nobody starts anything any more. */
void monitor_manager_gone(struct monitor *s, int error);

/** Begin to stop. */
void monitor_stop(struct monitor *s);
/** Escalate while stopping.  @return false when nothing is left to wait for. */
bool monitor_stop_step(struct monitor *s);

#endif /* MONITOR_H */
