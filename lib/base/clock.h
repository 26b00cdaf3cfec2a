/* SPDX-License-Identifier: MIT */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

/** @file clock.h  Monotonic time; every wait in this project ends at a deadline made here. */

#include <stdint.h>

/** CLOCK_MONOTONIC in nanoseconds. */
uint64_t clock_now_ns(void);
/** CLOCK_REALTIME in microseconds since the epoch, for records. */
uint64_t clock_wall_us(void);

static inline uint64_t clock_deadline_ms(uint64_t ms)
{
	return clock_now_ns() + ms * UINT64_C(1000000);
}
/** Milliseconds left, rounded up, for poll(); 0 when the deadline passed. */
int clock_left_ms(uint64_t deadline_ns);

#endif /* BASE_CLOCK_H */
