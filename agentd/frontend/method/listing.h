/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_METHOD_LISTING_H
#define FRONTEND_METHOD_LISTING_H

/**
 * @file listing.h
 * process.list, which looks at every process of the machine.
 *
 * One is made at a time for clients of the same user, groups and rights.  Those that come meanwhile wait
 * for the next one, which all of them get: so none is told what was true before it asked.
 */

#include "agentd/frontend/rpc/request.h"

LIST_HEAD(listing_list, listing);

/** Have a process.list answered.  @param params  Kept.  @return RPC_LATER, or negative with @p err. */
int listing_ask(struct request *r, const struct rpc_process_list_params *params, const char *text, size_t size,
		struct agent_err *err);
void listing_deinit(struct listing_list *all);

#endif /* FRONTEND_METHOD_LISTING_H */
