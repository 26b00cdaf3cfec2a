/* SPDX-License-Identifier: MIT */
#include "agentd/spawn/release.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

#include "agentd/access.h"
#include "agentd/handshake.h"
#include "base/clock.h"
#include "base/str.h"

#define POLL_MS 10
#define LEFTOVERS_MS 1000

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

int release_handshake(pid_t target, int pidfd)
{
	uint64_t deadline = clock_deadline_ms(1000);
	int released = 0, quiet = 0;

	/* The kernel may still be taking the dead worker's session down: look a few times. */
	while (quiet < 5 && clock_left_ms(deadline)) {
		struct pollfd p = { .fd = pidfd, .events = POLLIN };
		int waiting;

		if (poll(&p, 1, 0) != 0)
			break;
		waiting = handshake_release(target, deadline, &released);
		if (waiting < 0)
			return waiting == -ENOENT ? released : waiting;
		quiet = waiting ? 0 : quiet + 1;
		pause_ms(POLL_MS);
	}
	return released;
}

/* Somebody who traces it is alive and answers by himself. */
static void release_orphan(pid_t pid, uint64_t deadline, int *released)
{
	struct access_target t;

	if (access_target_read(pid, &t) < 0 || t.tracer_pid)
		return;
	handshake_release(pid, deadline, released);
}

int release_leftovers(const char *kfd_sysfs)
{
	uint64_t deadline = clock_deadline_ms(LEFTOVERS_MS);
	char path[PATH_MAX + 8];
	struct dirent *d;
	int released = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc", kfd_sysfs);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((d = readdir(dir))) {
		uint64_t pid;

		if (str_to_u64(d->d_name, 1, INT32_MAX, &pid) == 0)
			release_orphan((pid_t)pid, deadline, &released);
	}
	closedir(dir);
	return released;
}
