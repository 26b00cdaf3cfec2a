/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_BROKERS_H
#define MONITOR_BROKERS_H

/** @file brokers.h  Connect brokers, one for each CUDA worker: a service manager's, or children. */

#include "agentd/monitor/workers.h"

/**
 * Give a worker its broker, which knows the target from us.
 * @param reply  Borrowed; the connection is sent there.  Nothing is, when there is no broker.
 * @return 0, -EPROTO: the worker has had one.
 */
int brokers_start(struct workers *w, struct worker *worker, int reply);

#endif /* MONITOR_BROKERS_H */
