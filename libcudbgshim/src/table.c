/* SPDX-License-Identifier: MIT */
/* The vendor's table: which calls it holds, whether one may be made, and what its answer means. */
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

int table_error(uint32_t result)
{
	static const int errors[CUDBGABI_RESULT_COUNT] = {
		[CUDBGABI_ERROR_BUFFER_TOO_SMALL] = ENOBUFS,
		[CUDBGABI_ERROR_UNKNOWN_FUNCTION] = ENOENT,
		[CUDBGABI_ERROR_INVALID_ARGS] = EINVAL,
		[CUDBGABI_ERROR_UNINITIALIZED] = EAGAIN,
		[CUDBGABI_ERROR_INVALID_COORDINATES] = ENXIO,
		[CUDBGABI_ERROR_INVALID_MEMORY_SEGMENT] = EFAULT,
		[CUDBGABI_ERROR_INVALID_MEMORY_ACCESS] = EFAULT,
		[CUDBGABI_ERROR_MEMORY_MAPPING_FAILED] = ENOMEM,
		[CUDBGABI_ERROR_INVALID_DEVICE] = ENXIO,
		[CUDBGABI_ERROR_INVALID_SM] = ENXIO,
		[CUDBGABI_ERROR_INVALID_WARP] = ENXIO,
		[CUDBGABI_ERROR_INVALID_LANE] = ENXIO,
		[CUDBGABI_ERROR_SUSPENDED_DEVICE] = EBUSY,
		[CUDBGABI_ERROR_RUNNING_DEVICE] = EBUSY,
		[CUDBGABI_ERROR_INVALID_ADDRESS] = EFAULT,
		[CUDBGABI_ERROR_INCOMPATIBLE_API] = EPROTONOSUPPORT,
		[CUDBGABI_ERROR_INVALID_GRID] = ENOENT,
		[CUDBGABI_ERROR_SOME_DEVICES_WATCHDOGGED] = EACCES,
		[CUDBGABI_ERROR_ALL_DEVICES_WATCHDOGGED] = EACCES,
		[CUDBGABI_ERROR_INVALID_ATTRIBUTE] = EINVAL,
		[CUDBGABI_ERROR_ZERO_CALL_DEPTH] = ENODATA,
		[CUDBGABI_ERROR_INVALID_CALL_LEVEL] = ENODATA,
		[CUDBGABI_ERROR_COMMUNICATION_FAILURE] = EPIPE,
		[CUDBGABI_ERROR_INVALID_CONTEXT] = ENOENT,
		[CUDBGABI_ERROR_ADDRESS_NOT_IN_DEVICE_MEM] = EFAULT,
		[CUDBGABI_ERROR_MEMORY_UNMAPPING_FAILED] = ENOMEM,
		[CUDBGABI_ERROR_INCOMPATIBLE_DISPLAY_DRIVER] = EPROTONOSUPPORT,
		[CUDBGABI_ERROR_INVALID_MODULE] = ENOENT,
		[CUDBGABI_ERROR_LANE_NOT_IN_SYSCALL] = ENODATA,
		[CUDBGABI_ERROR_MEMCHECK_NOT_ENABLED] = ENODATA,
		[CUDBGABI_ERROR_INVALID_ENVVAR_ARGS] = EINVAL,
		[CUDBGABI_ERROR_OS_RESOURCES] = ENOMEM,
		[CUDBGABI_ERROR_FORK_FAILED] = ENOMEM,
		[CUDBGABI_ERROR_NO_DEVICE_AVAILABLE] = ENODEV,
		[CUDBGABI_ERROR_ATTACH_NOT_POSSIBLE] = EAGAIN,
		[CUDBGABI_ERROR_WARP_RESUME_NOT_POSSIBLE] = EBUSY,
		[CUDBGABI_ERROR_INVALID_WARP_MASK] = EINVAL,
		[CUDBGABI_ERROR_AMBIGUOUS_MEMORY_ADDRESS] = ENOTUNIQ,
		[CUDBGABI_ERROR_RECURSIVE_API_CALL] = EDEADLK,
		[CUDBGABI_ERROR_MISSING_DATA] = ENODATA,
		[CUDBGABI_ERROR_NOT_SUPPORTED] = EOPNOTSUPP,
		[CUDBGABI_ERROR_BREAKPOINT_STATE_CONFLICT] = EBUSY,
	};

	if (result == CUDBGABI_SUCCESS)
		return 0;
	if (result >= ARRAY_SIZE(errors) || !errors[result])
		return -EIO;
	return -errors[result];
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
