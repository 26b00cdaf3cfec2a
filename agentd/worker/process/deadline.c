/* SPDX-License-Identifier: MIT */
#include "agentd/worker/process/deadline.h"

#include <sys/time.h>

#include "agentd/ipc/monitor_worker.h"
#include "base/fd.h"

/* The monitor goes first, because it reports which worker it killed; SIGALRM comes this much later. */
#define ALONE_GRACE_MS 500

/*
 * A full socket means that the monitor is not reading.  The message is then lost, and the deadline that
 * the monitor knows stands, which is right.
 */
static void tell(const struct deadline *g, uint32_t type, uint32_t ms)
{
	const struct ipc_guard m = { .type = type, .ms = ms };

	fd_send(g->fd, &m, sizeof(m), NULL, 0);
}

/* If the monitor is dead and this process hangs in a system call, only SIGALRM is left to end it. */
static void set_alarm(uint32_t ms)
{
	const struct itimerval timer = {
		.it_value = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 },
	};

	setitimer(ITIMER_REAL, &timer, NULL);
}

void deadline_arm(const struct deadline *g, uint32_t ms)
{
	tell(g, IPC_ARM, ms);
	set_alarm(ms + ALONE_GRACE_MS);
}

void deadline_disarm(const struct deadline *g)
{
	tell(g, IPC_DISARM, 0);
	set_alarm(0);
}
