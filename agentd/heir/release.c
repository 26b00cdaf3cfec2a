/* SPDX-License-Identifier: MIT */
#include "agentd/heir/release.h"

#include <errno.h>
#include <time.h>

#include "agentd/access.h"
#include "agentd/handshake.h"
#include "base/clock.h"

#define POLL_MS 10

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

int release_waiting(pid_t target)
{
	struct access_target t;

	return access_target_read(target, &t) < 0 || t.tracer_pid ? 0 : handshake_waiting(target);
}

int release_look(pid_t target, int pidfd, int looks)
{
	int before = 0;

	for (int quiet = 0; access_is_alive(pidfd); pause_ms(POLL_MS)) {
		int waiting = release_waiting(target);

		/* Seen once, it may be on its way through a call that nobody holds up. */
		if (waiting < 0 || (waiting && before))
			return waiting;
		quiet += !waiting;
		if (quiet >= looks)
			break;
		before = waiting;
	}
	return 0;
}

int release_stop(pid_t target, int pidfd)
{
	uint64_t deadline = clock_deadline_ms(1000);
	int released = 0, quiet = 0;

	while (quiet < RELEASE_LOOKS && clock_left_ms(deadline) && access_is_alive(pidfd)) {
		int waiting = handshake_release(target, deadline, &released);

		if (waiting < 0)
			return waiting == -ENOENT ? released : waiting;
		quiet = waiting ? 0 : quiet + 1;
		pause_ms(POLL_MS);
	}
	return released;
}
