/* SPDX-License-Identifier: MIT */
#ifndef CTL_VERBS_WAIT_TOLD_H
#define CTL_VERBS_WAIT_TOLD_H

/** @file told.h  What NCCL says of itself, in a document that says what waits. */

#include "ctl/ctl.h"

/** The process of a session, found before it is looked at: when the agent has answered, it still was the same. */
struct told_by {
	int proc_fd; /**< -1: why it was not found is in err. */
	struct agent_err err;
};

/** Find the process; what fails is told later.  To be released with told_close(). */
void told_open(struct ctl *c, struct told_by *ret);
void told_close(struct told_by *t);

/** Ask NCCL, and put into a document what it says, or that this is missing.  @return 0, negative with c->err. */
int told_ask(struct ctl *c, const struct told_by *t, struct rpc_why_get_result *r);

/** What is told of a communicator, in one sentence; the texts in it are a stranger's. */
const char *told_text(struct ctl *c, const struct rpc_why_get_result *r, const struct rpc_nccl_communicator *k);

#endif /* CTL_VERBS_WAIT_TOLD_H */
