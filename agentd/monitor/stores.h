/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_STORES_H
#define MONITOR_STORES_H

/** @file stores.h  The processes that work on the record store. */

#include "agentd/monitor/workers.h"

/** For a client.  @return 0 or -errno. */
int stores_start(struct workers *w, const struct ipc_identity *client, struct worker **ret,
		 int *ret_channel);
/** For what @p worker wants to store; closes its end when there is none. */
void stores_start_producer(struct workers *w, const struct worker *worker, int take_channel);

#endif /* MONITOR_STORES_H */
