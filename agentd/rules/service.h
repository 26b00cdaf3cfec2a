/* SPDX-License-Identifier: MIT */
#ifndef RULES_SERVICE_H
#define RULES_SERVICE_H

/** @file service.h  The rules process at work: what it holds, and what it does with the monitor's news. */

#include <stdbool.h>

#include "agentd/config.h"
#include "agentd/options.h"
#include "agentd/rules/engine/rules.h"
#include "agentd/rules/engine/watch.h"
#include "agentd/rules/hooks/hook_requests.h"
#include "agentd/rules/hooks/hooks.h"
#include "agentd/rules/host.h"
#include "agentd/ipc/monitor_rules.h"

struct service {
	const struct options *options;
	struct config config;
	struct rules_ids ids;
	struct rules rules;
	struct host host;
	struct watches watches;
	struct hooks hooks;
	struct hook_desk desk;
	int signal_fd;
	bool is_stopping; /**< Nothing is watched any more, and no hook is begun. */
	bool has_stopped; /**< The last hook has ended, and the monitor knows. */
};

/**
 * Begin with a configuration, and tell the monitor what it says.
 * @param take_link  The socket to the monitor.
 * @param program    Path of gpu-agent-hook, borrowed, as are the options.
 * @return 0, -errno.
 */
int service_init(struct service *s, const struct options *o, int take_link, const char *program);
/** End hooks, and release everything. */
void service_deinit(struct service *s);

/** The configuration that was read is to hold from now on.  @param take  Its rules. */
void service_configure(struct service *s, const struct config *config, const struct rules_ids *ids,
		       struct rules *take);
/** Serve until the monitor is gone. */
void service_run(struct service *s);

#endif /* RULES_SERVICE_H */
