/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RULE_HOLD_H
#define WORKER_RULE_HOLD_H

/**
 * @file hold.h
 * Exceptions that the application gets later, because with its fault it may be gone, and a record needs more of it.
 */

#include <stdint.h>

#include "agentd/ipc/monitor_worker.h"
#include "agentd/worker/rule/host.h"

/** Exceptions that are kept back at a time; one more ends the wait of all. */
#define RULE_HOLD_MAX 64

/** What they wait for, as bits. */
enum rule_hold_reason { RULE_HOLD_CORE = 1, RULE_HOLD_THREADS = 2 };

struct event;

/** Starts zeroed, but for host and rule. */
struct rule_hold {
	const struct rule_host *host;
	const struct ipc_rule *rule;
	struct event *patience; /**< Runs from the first exception that is kept back, whatever else begins meanwhile. */
	uint32_t reasons; /**< While there are any, the application gets no exceptions. */
	struct target_event events[RULE_HOLD_MAX];
	size_t n;
};

/** From now on exceptions are kept back. */
void rule_hold_begin(struct rule_hold *h, enum rule_hold_reason reason);
/** Without another reason the application gets all of them. */
void rule_hold_end(struct rule_hold *h, enum rule_hold_reason reason);
/** The application gets all of them, whatever they wait for. */
void rule_hold_let_go(struct rule_hold *h);
/** Keep an exception back if there is a reason, for the rule's hold_ms at most.  @return whether it is kept back. */
bool rule_hold_keep(struct rule_hold *h, const struct target_event *e);
/** Release all; what is still kept back the application gets from nobody. */
void rule_hold_deinit(struct rule_hold *h);

#endif /* WORKER_RULE_HOLD_H */
