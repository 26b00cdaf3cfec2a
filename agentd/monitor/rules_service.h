/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_RULES_SERVICE_H
#define MONITOR_RULES_SERVICE_H

/** @file rules_service.h  What the privileged process does for rules. */

#include "agentd/rules/engine/rules_monitor.h"
#include "agentd/monitor/workers.h"

struct rules_service {
	struct workers *workers;
	/** For front.  @param channel  To the worker, or -1; borrowed. */
	void (*tell)(void *ctx, const struct ipc_watch *m, int channel);
	void *ctx;
};

/** Its `ctx` is a struct rules_service. */
extern const struct rules_monitor rules_service;

#endif /* MONITOR_RULES_SERVICE_H */
