/* SPDX-License-Identifier: MIT */
#ifndef RULES_STORE_CHECK_H
#define RULES_STORE_CHECK_H

/** @file store_check.h  gpu-agentd --check-config: whether records could be stored. */

#include <stdbool.h>

#include "agentd/config.h"
#include "agentd/ipc/monitor_rules.h"

/**
 * Is there a directory to be judged?
 * @param where  What set it; NULL: nothing, and that it is not there yet is no mistake.
 */
bool store_check_is_due(const struct config *c, bool user_mode, const char *where);
/**
 * Have gpu-agent-store open the directory as it does for records, and log what is wrong.
 * @return 0, -EINVAL, -errno.
 */
int store_check(const struct config *c, const struct rules_ids *ids, bool user_mode, const char *where);

#endif /* RULES_STORE_CHECK_H */
