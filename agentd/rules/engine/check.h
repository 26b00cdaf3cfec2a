/* SPDX-License-Identifier: MIT */
#ifndef RULES_CHECK_H
#define RULES_CHECK_H

/** @file check.h  gpu-agentd --check-config: what reading the configuration does not find. */

#include "agentd/rules/engine/rules.h"

/**
 * Have the hooks of all rules judged as they would be before a run, by the program that runs them, and
 * log what is wrong.  Waits some ten seconds at most.
 * @param program    Path of gpu-agent-hook.
 * @param user_mode  Hooks run as our own user.
 * @return 0, -EINVAL, -errno.
 */
int check_hooks(const struct rules *rules, const char *program, bool user_mode);

#endif /* RULES_CHECK_H */
