/* SPDX-License-Identifier: MIT */
#ifndef RULES_HOST_H
#define RULES_HOST_H

/**
 * @file host.h
 * The rules process's end of the socket to the monitor: questions, which wait for their answers, and
 * news, which are kept while they do.
 */

#include <stdbool.h>
#include <stdint.h>

#include "agentd/ipc/link.h"
#include "agentd/ipc/monitor_rules.h"
#include "agentd/rules/engine/rules_monitor.h"

struct host_news;

struct host {
	struct ipc_link link;
	struct host_news *first, *last; /**< News that came in front of an answer, the oldest first. */
	bool is_gone; /**< The monitor has ended, or nothing more can be said to it. */
};

/** @param take_fd  Our end of the pair. */
void host_init(struct host *h, int take_fd);
/** Close the socket, and forget news. */
void host_deinit(struct host *h);

/**
 * Tell the monitor something.  A failure means that the monitor is gone, which is_gone says.
 * @param data  NULL: the message has none.
 * @param fd    Goes along, borrowed; or -1.
 */
void host_tell(struct host *h, enum rules_type type, uint32_t number, const void *data, size_t size, int fd);

/**
 * Take what the monitor said first and nobody has seen.
 * @param ret  Release it with ipc_message_deinit() when the answer is true.
 * @return false: there is nothing now.
 */
bool host_take(struct host *h, struct ipc_message *ret);
/** @return whether host_take() has something although the socket may be empty. */
bool host_has_news(const struct host *h);

/** The questions of rules; their `ctx` is a struct host. */
extern const struct rules_monitor host_monitor;

#endif /* RULES_HOST_H */
