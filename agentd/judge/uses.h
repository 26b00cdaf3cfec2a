/* SPDX-License-Identifier: MIT */
#ifndef JUDGE_USES_H
#define JUDGE_USES_H

/**
 * @file uses.h
 * Journal records of who changes processes, and who reads those of others.
 *
 * The worker of a session says which connection does what, and a store what its client does to records
 * of others.  Who that is, this process has read from the connection itself.  What somebody does to
 * processes of its own, how it changes those of others, and how it reads them have a budget each, so
 * that none hides another.
 */

#include <stdbool.h>
#include <stdint.h>

#include "agentd/ipc/monitor_judge.h"
#include "agentd/judge/budgets.h"

struct clients;
struct name;
struct names;

struct uses {
	struct budgets own, others_changed, others_read;
};

/** Write down what a worker says.  @param now  Monotonic ns. */
void uses_record(struct uses *u, const struct names *names, const struct clients *all, const struct judge_used *m,
		 uint64_t now);
/** The same, of a store. */
void uses_record_store(struct uses *u, const struct names *names, const struct judge_record_used *m, uint64_t now);
/** A client releases the process of its session from the rule that watches it. */
void uses_release(struct uses *u, const struct name *client, uint64_t now);
/** Tell of those that were only counted; as budgets_due(). */
uint64_t uses_due(struct uses *u, uint64_t now, bool all);

#endif /* JUDGE_USES_H */
