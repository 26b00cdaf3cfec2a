/* SPDX-License-Identifier: MIT */
#ifndef JUDGE_BUDGETS_H
#define JUDGE_BUDGETS_H

/**
 * @file budgets.h
 * Which events are worth a record each: a user who causes them all the time fills no journal, and
 * makes nobody overlook what others do.
 *
 * Each user has a bucket of twenty, which gets five a second.  Events that find it empty are
 * counted, and told in one record ten seconds later, with the kinds that there were.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Room for the kinds of what was only counted; what does not fit is told as "...". */
#define BUDGETS_KINDS 200

/** Users that are told apart; the last entry is for all others. */
#define BUDGETS_USERS 64

struct budgets {
	struct budgets_user {
		uid_t uid;
		uint64_t full_ns;  /**< Then the bucket is full again; 0: it is, and the entry is free. */
		uint64_t since_ns; /**< Of the first one that was only counted, */
		uint32_t n;	   /**< and how many there are. */
		char kinds[BUDGETS_KINDS]; /**< Each once, with blanks between them. */
	} users[BUDGETS_USERS];
};

/** Tell what was only counted.  @param kinds  Of it, with blanks between them.  @param seconds  In which it was. */
typedef void budgets_tell_fn(uid_t uid, uint32_t n, const char *kinds, uint32_t seconds);

/**
 * @param kind One word.
 * @param n    How many events the record would stand for.
 * @param now  Monotonic ns.
 * @return whether it is written; if not, they are counted.
 */
bool budgets_add(struct budgets *b, uid_t uid, const char *kind, uint32_t n, uint64_t now);
/**
 * Tell what was only counted, when it is time.
 * @param all   It is time for everybody's, as the agent stops.
 * @return the time (monotonic ns) when it is time again; 0: nothing is counted.
 */
uint64_t budgets_due(struct budgets *b, uint64_t now, bool all, budgets_tell_fn *tell);

#endif /* JUDGE_BUDGETS_H */
