/* SPDX-License-Identifier: MIT */
#ifndef JUDGE_BUDGETS_H
#define JUDGE_BUDGETS_H

/**
 * @file budgets.h
 * Which events are worth a record each: a user who causes them all the time fills no journal, and
 * makes nobody overlook what others do.
 *
 * Each user has a bucket of twenty, which gets five a second.  Events that find it empty are
 * counted, and told in one record ten seconds later.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Users that are told apart; the last entry is for all others. */
#define BUDGETS_USERS 64

struct budgets {
	struct budgets_user {
		uid_t uid;
		uint64_t full_ns;  /**< Then the bucket is full again; 0: it is, and the entry is free. */
		uint64_t since_ns; /**< Of the first one that was only counted, */
		uint32_t n;	   /**< and how many there are. */
	} users[BUDGETS_USERS];
};

/**
 * @param n    How many events the record would stand for.
 * @param now  Monotonic ns.
 * @return whether it is written; if not, they are counted.
 */
bool budgets_add(struct budgets *b, uid_t uid, uint32_t n, uint64_t now);
/**
 * Tell what was only counted, when it is time.
 * @param all   It is time for everybody's, as the agent stops.
 * @param tell  Is given the user, the number of events, and in how many seconds they were.
 * @return the time (monotonic ns) when it is time again; 0: nothing is counted.
 */
uint64_t budgets_due(struct budgets *b, uint64_t now, bool all,
		     void (*tell)(uid_t uid, uint32_t n, uint32_t seconds));

#endif /* JUDGE_BUDGETS_H */
