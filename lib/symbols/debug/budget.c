/* SPDX-License-Identifier: MIT */
#include "symbols/debug/budget.h"

#include <time.h>

/* Limits at first; a large library with full debug information stays below half of each. */
#define STEPS_MAX  8000000u /* DIEs and address ranges that are looked at. */
#define CPU_NS_MAX UINT64_C(5000000000)
/* What each question adds, up to these. */
#define STEPS_MORE  200000u
#define CPU_NS_MORE UINT64_C(100000000)

static uint64_t cpu_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* Take the processor time since it was taken last. */
static void take_time(struct budget *b)
{
	uint64_t now = cpu_now_ns(), used = now - b->entered_ns;

	b->entered_ns = now;
	b->since = 0;
	b->cpu_ns -= used < b->cpu_ns ? used : b->cpu_ns;
	if (!b->cpu_ns)
		b->spent = true;
}

void budget_init(struct budget *b)
{
	*b = (struct budget){ .steps = STEPS_MAX, .cpu_ns = CPU_NS_MAX };
}

void budget_enter(struct budget *b)
{
	b->steps += STEPS_MORE;
	if (b->steps > STEPS_MAX)
		b->steps = STEPS_MAX;
	b->cpu_ns += CPU_NS_MORE;
	if (b->cpu_ns > CPU_NS_MAX)
		b->cpu_ns = CPU_NS_MAX;
	b->spent = false;
	b->since = 0;
	b->entered_ns = cpu_now_ns();
}

void budget_leave(struct budget *b)
{
	take_time(b);
}

bool budget_spend(struct budget *b)
{
	if (!b->steps || !--b->steps)
		b->spent = true;
	if (++b->since == 1024)
		take_time(b);
	return !b->spent;
}

bool budget_has_half(struct budget *b)
{
	take_time(b);
	return b->steps > STEPS_MAX / 2 && b->cpu_ns > CPU_NS_MAX / 2;
}
