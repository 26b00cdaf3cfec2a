/* SPDX-License-Identifier: MIT */
#include "ctl/mcp/stops.h"

#include <stdbool.h>

#define MS_NS	  UINT64_C(1000000)
#define WINDOW_NS (STOPS_WINDOW_MS * MS_NS)

void stops_add(struct stops *s, uint32_t pid, uint64_t stopped_ns, uint64_t now_ns)
{
	size_t at = s->next++ % STOPS_MAX;

	s->list[at].at_ns = now_ns;
	s->list[at].stopped_ns = stopped_ns;
	s->list[at].pid = pid;
}

static bool concerns(const struct stops *s, size_t i, uint32_t pid)
{
	return s->list[i].pid == pid || s->list[i].pid == STOPS_ANY;
}

/* What a process was stopped for in the window that ends at a time, which may lie ahead. */
static uint64_t sum_at(const struct stops *s, uint32_t pid, uint64_t end_ns)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < STOPS_MAX; i++)
		if (concerns(s, i, pid) && s->list[i].at_ns + WINDOW_NS > end_ns)
			sum += s->list[i].stopped_ns;
	return sum;
}

static uint32_t wait_for_one(const struct stops *s, uint32_t pid, uint64_t now_ns)
{
	uint64_t best_ns = WINDOW_NS;

	if (sum_at(s, pid, now_ns) < WINDOW_NS / STOPS_SHARE)
		return 0;
	/* It may be stopped again when enough of the stops have left the window. */
	for (size_t i = 0; i < STOPS_MAX; i++) {
		uint64_t leaves_ns = s->list[i].at_ns + WINDOW_NS;

		if (concerns(s, i, pid) && leaves_ns > now_ns && leaves_ns - now_ns < best_ns &&
		    sum_at(s, pid, leaves_ns) < WINDOW_NS / STOPS_SHARE)
			best_ns = leaves_ns - now_ns;
	}
	return (uint32_t)((best_ns + MS_NS - 1) / MS_NS);
}

uint32_t stops_wait_ms(const struct stops *s, uint32_t pid, uint64_t now_ns)
{
	uint32_t longest_ms = 0;

	if (pid != STOPS_ANY)
		return wait_for_one(s, pid, now_ns);
	/* It may be each of those that were stopped. */
	for (size_t i = 0; i < STOPS_MAX; i++) {
		uint32_t ms = wait_for_one(s, s->list[i].pid, now_ns);

		longest_ms = ms > longest_ms ? ms : longest_ms;
	}
	return longest_ms;
}
