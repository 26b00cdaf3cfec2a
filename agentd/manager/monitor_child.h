/* SPDX-License-Identifier: MIT */
#ifndef MANAGER_MONITOR_CHILD_H
#define MANAGER_MONITOR_CHILD_H

/** @file monitor_child.h  The monitor: starting it, and the socket to it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/ipc/link.h"
#include "agentd/ipc/manager_monitor.h"

struct monitor_child {
	pid_t pid; /**< 0: it has ended. */
	struct ipc_link link;
	bool is_ready; /**< It can start workers. */
};

#define MONITOR_CHILD_NULL { .link = IPC_LINK_NULL }

/** Start it.  @param judge  Its end of the pair to the judge; borrowed.  @return 0, -errno. */
int monitor_child_start(struct monitor_child *p, const char *program, int judge);
/**
 * Tell it something, or have it wait.
 * @param type  An enum monitor_type or rules_type.
 * @param data  NULL: the message has none.
 * @return 0, -EPIPE: it has gone; other -errno.
 */
int monitor_child_tell(struct monitor_child *p, uint32_t type, uint32_t number, const void *data, size_t size);

#endif /* MANAGER_MONITOR_CHILD_H */
