/* SPDX-License-Identifier: MIT */
#ifndef RULES_RULE_HOOKS_H
#define RULES_RULE_HOOKS_H

/** @file rule_hooks.h  From watch rules to their hooks. */

#include "agentd/rules/hooks/hooks.h"
#include "agentd/rules/engine/rules.h"
#include "agentd/rules/engine/rules_monitor.h"

/** Rules were read. */
void rule_hooks_configure(struct hooks *h, const struct rules *rules);
/** @param document_fd  Borrowed. */
void rule_hooks_run(struct hooks *h, const struct rules_fault *f, int document_fd);

#endif /* RULES_RULE_HOOKS_H */
