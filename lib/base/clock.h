/* SPDX-License-Identifier: MIT */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

/**
 * @file clock.h
 * Monotonic time.  Every wait in this project ends at a deadline that is made here.
 */

#include <stdint.h>

/** @return CLOCK_MONOTONIC in nanoseconds. */
uint64_t clock_now_ns(void);
/** @return CLOCK_REALTIME in microseconds since the epoch, which records are stamped with. */
uint64_t clock_wall_us(void);

/** @return the deadline that is @p ms milliseconds from now, in nanoseconds of clock_now_ns(). */
static inline uint64_t clock_deadline_ms(uint64_t ms)
{
	return clock_now_ns() + ms * UINT64_C(1000000);
}
/** @return the earlier of two times; 0 is none. */
static inline uint64_t clock_earlier(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}
/**
 * @return the milliseconds left until a deadline, rounded up, as poll() takes them; 0 when the
 *         deadline has passed.
 */
int clock_left_ms(uint64_t deadline_ns);

#endif /* BASE_CLOCK_H */
