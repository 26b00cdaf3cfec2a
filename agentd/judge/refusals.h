/* SPDX-License-Identifier: MIT */
#ifndef JUDGE_REFUSALS_H
#define JUDGE_REFUSALS_H

/**
 * @file refusals.h
 * Which refusals are worth a record each: a user who is refused all the time fills no journal, and
 * makes nobody overlook what others do.
 *
 * Each user has a bucket of twenty, which gets five a second.  Refusals that find it empty are
 * counted, and told in one record ten seconds later.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Users that are told apart; the last entry is for all others. */
#define REFUSALS_USERS 64

struct refusals {
	struct refusals_user {
		uid_t uid;
		uint64_t full_ns;  /**< Then the bucket is full again; 0: it is, and the entry is free. */
		uint64_t since_ns; /**< Of the first one that was only counted, */
		uint32_t n;	   /**< and how many there are. */
	} users[REFUSALS_USERS];
};

/** @param now  Monotonic ns.  @return whether this refusal gets a record of its own. */
bool refusals_add(struct refusals *r, uid_t uid, uint64_t now);
/**
 * Tell what was only counted, when it is time.
 * @param all   It is time for everybody's, as the agent stops.
 * @param tell  Is given the user, the number of refusals, and in how many seconds they were.
 * @return the time (monotonic ns) when it is time again; 0: nothing is counted.
 */
uint64_t refusals_due(struct refusals *r, uint64_t now, bool all,
		      void (*tell)(uid_t uid, uint32_t n, uint32_t seconds));

#endif /* JUDGE_REFUSALS_H */
