/* SPDX-License-Identifier: MIT */
#ifndef SPAWN_RULES_RULE_HOOKS_H
#define SPAWN_RULES_RULE_HOOKS_H

/** @file rule_hooks.h  From watch rules to their hooks. */

#include "agentd/spawn/hooks/hooks.h"
#include "agentd/spawn/rules/rules.h"
#include "agentd/spawn/rules/rules_monitor.h"

/** Rules were read. */
void rule_hooks_configure(struct hooks *h, const struct rules *rules);
/** @param document_fd  Borrowed. */
void rule_hooks_run(struct hooks *h, const struct rules_fault *f, int document_fd);

#endif /* SPAWN_RULES_RULE_HOOKS_H */
