/* SPDX-License-Identifier: MIT */
#include "agentd/spawn/front.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/ipc.h"
#include "base/cleanup.h"
#include "base/fd.h"

#define BUSY_MS 1000

static _Noreturn void become_front(const struct front_setup *s, int sock)
{
	static const int to[] = { IPC_FD_LISTEN, IPC_FD_SPAWN };
	const int from[] = { s->listen_fd, sock };
	const struct config *c = s->config;
	char uid[12], gid[12], admin[12], connections[12], per_user[12], sessions[12], idle[12];
	char silent[12];
	const char *argv[] = { s->program, "--uid", uid, "--gid", gid, "--admin-gid", admin,
			       "--connections", connections, "--connections-per-user", per_user,
			       "--sessions-per-user", sessions, "--idle-ms", idle,
			       "--silent-holder-ms", silent, NULL, NULL, NULL };
	size_t n = 17;

	snprintf(uid, sizeof(uid), "%u", s->uid);
	snprintf(gid, sizeof(gid), "%u", s->gid);
	snprintf(admin, sizeof(admin), "%u", s->admin_gid);
	snprintf(connections, sizeof(connections), "%u", c->connections);
	snprintf(per_user, sizeof(per_user), "%u", c->connections_per_user);
	snprintf(sessions, sizeof(sessions), "%u", c->sessions_per_user);
	snprintf(idle, sizeof(idle), "%u", c->idle_exit_ms);
	snprintf(silent, sizeof(silent), "%u", c->silent_holder_ms);
	if (s->user_mode)
		argv[n++] = "--user";
	if (s->verbose)
		argv[n++] = "--verbose";
	child_place_fds(from, to, ARRAY_SIZE(to));
	child_exec(s->program, argv, 0);
}

int front_start(struct front *f, const struct front_setup *setup)
{
	int pair[2], r = fd_socketpair(SOCK_NONBLOCK, pair);
	pid_t pid;

	if (r < 0)
		return r;
	pid = fork();
	if (pid == 0)
		become_front(setup, pair[1]);
	r = pid < 0 ? -errno : 0;
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		return r;
	}
	*f = (struct front){ .pid = pid, .sock = pair[0] };
	return 0;
}

int front_send(struct front *f, const void *msg, size_t size, int fd)
{
	struct pollfd p = { .fd = f->sock, .events = POLLOUT };
	ssize_t n = f->sock < 0 ? -EPIPE : fd_send(f->sock, msg, size, &fd, fd >= 0);

	/* It never waits for us, so waiting for it cannot last for ever. */
	if (n == -EAGAIN && poll(&p, 1, BUSY_MS) > 0)
		n = fd_send(f->sock, msg, size, &fd, fd >= 0);
	return n < 0 ? (int)n : 0;
}
