/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_REQUESTS_H
#define MONITOR_REQUESTS_H

/** @file requests.h  What each process may ask of the privileged one: tables, in requests.c. */

#include "agentd/monitor/monitor.h"

/**
 * Take one message of the judge, and do what it asks for.
 * @return 0, -EAGAIN, -EPIPE, -EPROTO: it may not ask for that; other -errno.
 */
int requests_read_judge(struct monitor *s);
/** The same of the manager, which may pass on what the rules process asks for. */
int requests_read_manager(struct monitor *s);
/** Do what a worker, a store or an adapter asks for: struct workers_setup.ask, of a struct the monitor. */
int requests_take(void *ctx, struct worker *k, const union ipc_child_message *m, size_t size,
		  int *take_fd);

#endif /* MONITOR_REQUESTS_H */
