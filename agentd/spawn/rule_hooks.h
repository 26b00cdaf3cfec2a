/* SPDX-License-Identifier: MIT */
#ifndef SPAWN_RULE_HOOKS_H
#define SPAWN_RULE_HOOKS_H

/** @file rule_hooks.h  From watch rules to their hooks. */

#include "agentd/spawn/hooks.h"
#include "agentd/spawn/rules.h"
#include "agentd/spawn/workers.h"

/** Rules were read. */
void rule_hooks_configure(struct hooks *h, const struct rules *rules);
/**
 * A worker has something for the hook of its rule.
 * @param fault  As it came from the worker.
 * @param document_fd  Borrowed.
 */
void rule_hooks_run(struct hooks *h, const struct worker *worker, const struct ipc_fault *fault,
		    int document_fd);

#endif /* SPAWN_RULE_HOOKS_H */
