/* SPDX-License-Identifier: MIT */
/*
 * Reading at addresses that the target chose.  A page of a file may be one that never comes, as of a FUSE file
 * system: whoever reads it through /proc/PID/mem waits, cannot be killed, and holds the lock of the target's mappings
 * meanwhile, so that the target stands still as well (measured on Linux 6.18).  Files are thus not read, and a device's
 * pages only where they are memory.  What was mapped since is read by a thread that may be late.
 */
#include <string.h>

#include "agentd/worker/process/late_memory.h"
#include "agentd/worker/process/mappings.h"
#include "agentd/worker/wait/look.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/vec.h"

/* For one read: most take microseconds, and one from a disk some milliseconds. */
#define READ_MS	   250u
#define RANGES_MAX 65536u

/* Ordinary memory has no path, or one in brackets. */
static bool is_memory(const struct mapping *m)
{
	static const char *const paths[] = { "[", "/dev/dri/", "/dev/shm/", "/dev/zero", "/memfd:", "/SYSV" };

	if (!m->readable)
		return false;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (str_starts_with(m->path, paths[i]))
			return strncmp(m->path, "[vvar", 5) != 0;
	return !*m->path;
}

static void take(void *arg, const struct mapping *m)
{
	struct look *l = arg;
	struct look_range *last = l->n_ranges ? &l->ranges[l->n_ranges - 1] : NULL;

	if (!is_memory(m))
		return;
	if (last && last->end == m->begin) {
		last->end = m->end;
		return;
	}
	if (l->n_ranges >= RANGES_MAX ||
	    vec_reserve(&l->ranges, l->n_ranges, 1, &l->ranges_capacity, sizeof(*l->ranges)) < 0)
		return;
	l->ranges[l->n_ranges++] = (struct look_range){ m->begin, m->end };
}

static bool may_read(struct look *l, uint64_t address, size_t size)
{
	size_t low = 0, high;

	if (!l->has_ranges)
		(void)mappings_read(l->target->maps_fd, take, l);
	l->has_ranges = true;
	high = l->n_ranges;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (l->ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < l->n_ranges && l->ranges[low].begin <= address && size <= l->ranges[low].end - address;
}

bool look_read(struct look *l, uint64_t address, void *buf, size_t size)
{
	int r;

	/* A core's memory answers. */
	if (l->target->memory.read)
		return memory_read_exact(&l->target->memory, address, buf, size) == 0;
	if (!l->memory) {
		look_missing(l, "memory: there is no thread to read it");
		return false;
	}
	if (!may_read(l, address, size)) {
		look_missing(l, "memory: addresses that the process names lie in none of its memory, "
				"or in a file, which is not read");
		return false;
	}
	r = late_memory_read(l->memory, address, buf, size, clock_deadline_ms(READ_MS));
	if (r == -ETIMEDOUT)
		look_missing(l, "memory: a page of the process does not answer, "
				"and what was asked later was not read either");
	return r == 0;
}
