/* SPDX-License-Identifier: MIT */
#ifndef RULES_HOOK_REQUESTS_H
#define RULES_HOOK_REQUESTS_H

/** @file hook_requests.h  What clients ask about hooks, through front. */

#include "agentd/access.h"
#include "agentd/ipc/monitor_frontend.h"
#include "agentd/rules/hooks/hooks.h"

struct hook_desk {
	struct hooks *hooks;
	bool user_mode; /**< Whose agent it is, is its administrator. */
	/** @param fd  To go along, or -1; borrowed. */
	void (*send)(void *ctx, const struct ipc_hooked *m, int fd);
	void *ctx;
};

/** Answered now or later, once.  The desk must outlive its hooks. */
void hook_requests_take(struct hook_desk *d, const struct ipc_hooks *m,
			const struct access_peer *client, int document_fd);

#endif /* RULES_HOOK_REQUESTS_H */
