/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RULE_HOOK_H
#define WORKER_RULE_HOOK_H

/**
 * @file hook.h
 * What the hook of a rule is to be told when the store has answered.
 */

#include "agentd/ipc/monitor_worker.h"

struct rule_hook {
	int fd; /**< Its document; -1: there is no hook. */
	struct ipc_fault fault;
};

#endif /* WORKER_RULE_HOOK_H */
