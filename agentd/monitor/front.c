/* SPDX-License-Identifier: MIT */
#include "agentd/monitor/front.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/ipc/child.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"

/* The frontend never waits for the monitor, so that it takes messages again in less. */
#define BUSY_MS 1000
/* The messages that the frontend's requests, its workers and all rules bring about in that time are fewer. */
#define WAITING_MAX 4096

struct front_message {
	struct front_message *next;
	int fd;
	size_t size;
	char data[];
};

static _Noreturn void become_front(const struct front_setup *s, int sock)
{
	static const int to[] = { IPC_FD_MONITOR };
	const struct config *c = s->config;
	char uid[12], gid[12], connections[12], per_user[12], sessions[12], idle[12], silent[12];
	const char *argv[] = { s->program, "--uid", uid, "--gid", gid, "--connections", connections, "--connections-per-user", per_user,
			       "--sessions-per-user", sessions, "--idle-ms", idle,
			       "--silent-holder-ms", silent, NULL, NULL, NULL };
	size_t n = 15;

	snprintf(uid, sizeof(uid), "%u", s->uid);
	snprintf(gid, sizeof(gid), "%u", s->gid);
	snprintf(connections, sizeof(connections), "%u", c->connections);
	snprintf(per_user, sizeof(per_user), "%u", c->connections_per_user);
	snprintf(sessions, sizeof(sessions), "%u", c->sessions_per_user);
	snprintf(idle, sizeof(idle), "%u", c->idle_exit_ms);
	snprintf(silent, sizeof(silent), "%u", c->silent_holder_ms);
	if (s->user_mode)
		argv[n++] = "--user";
	if (s->verbose)
		argv[n++] = "--verbose";
	child_place_fds(&sock, to, ARRAY_SIZE(to));
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

/* ------------------------------------------------------------------ messages ----------------- */

static void free_first(struct front *f)
{
	struct front_message *m = f->first;

	f->first = m->next;
	f->n_waiting--;
	if (m->fd >= 0)
		close(m->fd);
	free(m);
}

static int append(struct front *f, const void *msg, size_t size, int fd)
{
	auto_free struct front_message *m = NULL;

	if (f->n_waiting == WAITING_MAX)
		return -ENOBUFS;
	m = malloc(sizeof(*m) + size);
	if (!m)
		return -ENOMEM;
	m->next = NULL;
	m->size = size;
	m->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	/* Without a free descriptor the message goes alone: its client is told so, nobody else suffers. */
	if (fd >= 0 && m->fd < 0 && errno != EMFILE)
		return -errno;
	memcpy(m->data, msg, size);
	if (!f->first)
		f->give_up_at = clock_deadline_ms(BUSY_MS);
	*(f->first ? &f->last->next : &f->first) = m;
	f->last = TAKE_PTR(m);
	f->n_waiting++;
	return 0;
}

int front_send(struct front *f, const void *msg, size_t size, int fd)
{
	ssize_t n = -EAGAIN;

	if (f->sock < 0)
		return -EPIPE;
	if (!f->first)
		n = fd_send(f->sock, msg, size, &fd, fd >= 0);
	if (n == -EAGAIN)
		return append(f, msg, size, fd);
	return n < 0 ? (int)n : 0;
}

int front_pass(struct front *f, const void *msg, size_t size, int fd)
{
	ssize_t n = f->sock < 0 ? -EPIPE : f->first ? -EAGAIN : fd_send(f->sock, msg, size, &fd, 1);

	return n < 0 ? (int)n : 0;
}

bool front_has_room(const struct front *f)
{
	struct pollfd p = { .fd = f->sock, .events = POLLOUT };

	return f->sock >= 0 && !f->first && poll(&p, 1, 0) == 1 && p.revents == POLLOUT;
}

short front_events(const struct front *f)
{
	return f->first ? POLLIN | POLLOUT : POLLIN;
}

int front_flush(struct front *f)
{
	while (f->first) {
		const struct front_message *m = f->first;
		ssize_t n = fd_send(f->sock, m->data, m->size, &m->fd, m->fd >= 0);

		if (n == -EAGAIN)
			return clock_left_ms(f->give_up_at) ? 0 : -EAGAIN;
		if (n < 0)
			return (int)n;
		free_first(f);
		f->give_up_at = f->first ? clock_deadline_ms(BUSY_MS) : 0;
	}
	return 0;
}

void front_forget(struct front *f)
{
	while (f->first)
		free_first(f);
	f->give_up_at = 0;
}
