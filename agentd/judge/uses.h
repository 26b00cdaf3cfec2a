/* SPDX-License-Identifier: MIT */
#ifndef JUDGE_USES_H
#define JUDGE_USES_H

/**
 * @file uses.h
 * Journal records of who changes processes, and who reads those of others.
 *
 * The worker of a session says which connection does what.  Who that is, this process has read from
 * the connection itself.  What somebody does to processes of its own has another budget than what it
 * does to those of others, so that the one never hides the other.
 */

#include <stdbool.h>
#include <stdint.h>

#include "agentd/ipc/monitor_judge.h"
#include "agentd/judge/budgets.h"

struct names;

struct uses {
	struct budgets own, others;
};

/** Write down what a worker says.  @param now  Monotonic ns. */
void uses_record(struct uses *u, const struct names *names, const struct judge_used *m, uint64_t now);
/** Tell of those that were only counted; as budgets_due(). */
uint64_t uses_due(struct uses *u, uint64_t now, bool all);

#endif /* JUDGE_USES_H */
