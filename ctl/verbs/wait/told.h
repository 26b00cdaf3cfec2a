/* SPDX-License-Identifier: MIT */
#ifndef CTL_VERBS_WAIT_TOLD_H
#define CTL_VERBS_WAIT_TOLD_H

/** @file told.h  What NCCL says of itself, in a document that says what waits. */

#include "ctl/ctl.h"

/** The process of a session, found before it is looked at: when the agent has answered, it still was the same. */
struct told_by {
	int proc_fd; /**< -1: why it was not found is in err. */
	uint64_t deadline_ns; /**< NCCL is asked until then at most; 0: for no longer than it is given. */
	struct agent_err err;
};

/** Find the process; what fails is told later.  To be released with told_close(). */
void told_open(struct ctl *c, struct told_by *ret);
void told_close(struct told_by *t);

/** What is missing where it says nothing. */
#define TOLD_WHAT "what NCCL says of itself"

/**
 * Ask NCCL, and put into a document what it says.
 * @param ret_missing  Why that is not known, for the document to say; NULL: it is.
 * @return 0, negative with c->err.
 */
int told_ask(struct ctl *c, const struct told_by *t, struct rpc_why_get_result *r, const char **ret_missing);

/** Append what is told of each communicator: hearsay, which stands behind the causes and is none. */
void told_show(struct ctl *c, const struct rpc_why_get_result *r);

#endif /* CTL_VERBS_WAIT_TOLD_H */
