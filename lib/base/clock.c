/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <limits.h>
#include <time.h>

static uint64_t read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

uint64_t clock_now_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

uint64_t clock_wall_us(void)
{
	return read_ns(CLOCK_REALTIME) / 1000;
}

int clock_left_ms(uint64_t deadline_ns)
{
	uint64_t now = clock_now_ns(), ms;

	if (now >= deadline_ns)
		return 0;
	ms = (deadline_ns - now + 999999) / 1000000;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}
