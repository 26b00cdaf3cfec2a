/* SPDX-License-Identifier: MIT */
#ifndef RULES_SETTINGS_H
#define RULES_SETTINGS_H

/** @file settings.h  What the command line, agentd.conf and the user database together say. */

#include <stdbool.h>

#include "agentd/options.h"
#include "agentd/rules/config/config.h"
#include "agentd/rules/config/dump.h"
#include "agentd/rules/engine/rules.h"
#include "agentd/ipc/monitor_rules.h"

/**
 * Read the configuration; logs what is wrong.
 * @param rules  What it says of those; the caller's also after a failure.
 * @param dump   Where settings and their places are noted; NULL: nobody wants to know.
 * @return 0, -EINVAL, -errno.
 */
int settings_load(const struct options *o, struct config *c, struct rules *rules, struct config_dump *dump);
/**
 * Look names up; logs which do not exist.
 * @param socket  The group of the socket is wanted, too.
 * @return 0, -ENOENT: the frontend has no user.
 */
int settings_resolve(const struct options *o, const struct config *c, bool socket, struct rules_ids *ret);

#endif /* RULES_SETTINGS_H */
