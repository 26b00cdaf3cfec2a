/* SPDX-License-Identifier: MIT */
#ifndef WAITS_CONFIDENCE_H
#define WAITS_CONFIDENCE_H

/** @file confidence.h  How well a statement is known; of two, the greater one is the weaker. */

enum waits_confidence {
	WAITS_PROVEN,	/**< Each link is a value that was read, decoded by the table of its architecture. */
	WAITS_INFERRED, /**< A rule was needed, or a value was read later than the others. */
	WAITS_UNKNOWN,	/**< It is told what was seen, and no more. */
};

/** @return the weaker of two. */
static inline enum waits_confidence waits_weaker(enum waits_confidence a, enum waits_confidence b)
{
	return a > b ? a : b;
}

#endif /* WAITS_CONFIDENCE_H */
