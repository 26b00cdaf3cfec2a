/* SPDX-License-Identifier: MIT */
/* The vendor's table: which calls it holds, and whether one may be made. */
#include "internal.h"

#include <errno.h>

#include "base/cleanup.h"

uint32_t table_count_slots(uint32_t major, uint32_t minor)
{
#define RELEASE(release_major, release_minor, revision, n, lax) { release_major, release_minor, n },
	static const struct {
		uint32_t major, minor, n_slots;
	} releases[] = { CUDBGABI_RELEASES(RELEASE) };
#undef RELEASE
	uint32_t n = 0;

	/*
	 * Tables only grow, so a release between two known ones has at least what the older one
	 * has.
	 */
	for (size_t i = 0; i < ARRAY_SIZE(releases); i++)
		if (major > releases[i].major ||
		    (major == releases[i].major && minor >= releases[i].minor))
			n = releases[i].n_slots;
	return n;
}

bool cudbgshim_has_slot(const struct cudbgshim *s, uint32_t slot)
{
	return slot < s->version.n_slots && s->table[slot];
}

int table_enter(struct cudbgshim *s, uint32_t slot)
{
	s->last = (struct cudbgshim_call){ .slot = slot, .name = cudbgshim_slot_name(slot) };
	if (s->over)
		s->last.error = -ESHUTDOWN;
	else if (!cudbgshim_has_slot(s, slot))
		s->last.error = -ENOSYS;
	if (s->last.error) {
		if (s->trace.leave)
			s->trace.leave(s->trace.user, &s->last);
		return s->last.error;
	}
	if (s->trace.enter)
		s->trace.enter(s->trace.user, slot, s->last.name);
	s->began_ns = s->sys->now_ns();
	return 0;
}

int table_leave(struct cudbgshim *s, uint32_t result)
{
	s->last.took_ns = s->sys->now_ns() - s->began_ns;
	s->last.called = true;
	s->last.result = result;
	s->last.error = table_error(result);
	if (result == CUDBGABI_ERROR_COMMUNICATION_FAILURE)
		s->over = true;
	if (s->trace.leave)
		s->trace.leave(s->trace.user, &s->last);
	return s->last.error;
}

const struct cudbgshim_call *cudbgshim_last(const struct cudbgshim *s)
{
	return &s->last;
}

bool cudbgshim_is_over(const struct cudbgshim *s)
{
	return s->over;
}

struct cudbgshim_version cudbgshim_get_version(const struct cudbgshim *s)
{
	return s->version;
}
