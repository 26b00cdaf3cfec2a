/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_ADAPTERS_H
#define MONITOR_ADAPTERS_H

/** @file adapters.h  Debug adapters for editors on the agent's socket. */

#include "agentd/monitor/workers.h"

/**
 * @param take_sock    Of the editor; left alone after a failure.
 * @param ret_channel  The adapter as a client.
 * @return 0 or -errno.
 */
int adapters_start(struct workers *w, const struct ipc_identity *client, int *take_sock, int early_fd,
		   struct worker **ret, int *ret_channel);

#endif /* MONITOR_ADAPTERS_H */
