/* SPDX-License-Identifier: MIT */
#ifndef RULES_SAVED_H
#define RULES_SAVED_H

/**
 * @file saved.h
 * A configuration in sealed memory.  The monitor keeps it unread for the rules process that follows a
 * dead one: what holds stays what the administrator had read, whatever the files say meanwhile.
 */

#include "agentd/config.h"
#include "agentd/rules/engine/rules.h"
#include "agentd/ipc/monitor_rules.h"

/** Write it down.  @return 0, -errno. */
int saved_write(const struct config *config, const struct rules_ids *ids, const struct rules *rules, int *ret_fd);
/**
 * Read what a rules process of this program has written.
 * @param ret_rules  The caller's; untouched after a failure.
 * @return 0, -EBADMSG, -errno.
 */
int saved_read(int fd, struct config *ret_config, struct rules_ids *ret_ids, struct rules *ret_rules);

#endif /* RULES_SAVED_H */
