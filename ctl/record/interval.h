/* SPDX-License-Identifier: MIT */
#ifndef CTL_RECORD_INTERVAL_H
#define CTL_RECORD_INTERVAL_H

/** @file interval.h  How far a share that was seen may be from the share that is. */

/** From where to where, as parts of 1. */
struct interval {
	double low, high;
};

/**
 * The interval in which the true share is in 95 of 100 recordings: E. B. Wilson's score interval (Journal of the
 * American Statistical Association 22, 1927), which also holds for few samples and for shares near 0 and 1.
 *
 * It is made for samples that are yes or no.  A capture that saw a place with a part of the waves counts as that part:
 * among numbers from 0 to 1 with the same mean none vary more than yes and no, so that the interval is wide enough.
 * @param share    From 0 to 1.
 * @param samples  How many; none tells nothing, and the interval is from 0 to 1.
 */
struct interval interval_of(double share, double samples);

#endif /* CTL_RECORD_INTERVAL_H */
