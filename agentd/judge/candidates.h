/* SPDX-License-Identifier: MIT */
#ifndef JUDGE_CANDIDATES_H
#define JUDGE_CANDIDATES_H

/**
 * @file candidates.h
 * Clients who want a session or another child of the monitor: whether each may, by who it is.
 *
 * Whoever may is handed on to the monitor, which answers when the child runs, or why none does.  The
 * answer passes through here on its way to the frontend, so that refusals of both are counted and
 * told in one place.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/ipc/monitor_judge.h"
#include "agentd/judge/budgets.h"

struct candidate;
struct client;
struct judge;

struct candidates {
	struct candidate *first; /**< The oldest first. */
	struct budgets refusals;
};

/**
 * Answer one request of the frontend: now, when the kernel has said whether the client may, or when
 * the monitor answers.
 * @param fds  For an adapter the client's socket and what was read from it, borrowed; else -1.
 * @return 0, -EPROTO: the frontend asks for more than it may.
 */
int candidates_start(struct judge *j, const struct ipc_start *start, struct client *client, const int fds[2]);
/** The monitor answers.  @param channel  For the frontend, borrowed; or -1. */
void candidates_answered(struct judge *j, const struct ipc_started *m, int channel);
/** A child was reaped that may be one that asks the kernel. */
void candidates_reaped(struct judge *j, pid_t pid, int wait_status);
/**
 * Do not wait longer for the kernel than allowed, and tell of refusals.
 * @return next deadline (monotonic ns), 0: none.
 */
uint64_t candidates_deadlines(struct judge *j);
/** The agent stops: nobody is answered any more. */
void candidates_cancel(struct judge *j);

/** May the agent itself have that process?  Fills in the answer.  @return its pidfd, or -1; owned by the caller. */
int candidates_judge_for_rule(struct judge_watch *m);

#endif /* JUDGE_CANDIDATES_H */
