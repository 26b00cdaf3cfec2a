/* SPDX-License-Identifier: MIT */
#include "agentd/ipc/outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"

/* No process of the agent waits for another one that sends it messages, so that it takes them again in less. */
#define BUSY_MS 1000

struct outbox_message {
	struct outbox_message *next;
	int fd;
	size_t size;
	char data[];
};

static void free_first(struct outbox *o)
{
	struct outbox_message *m = o->first;

	o->first = m->next;
	o->n_waiting--;
	if (m->fd >= 0)
		close(m->fd);
	free(m);
}

static int append(struct outbox *o, const void *msg, size_t size, int fd)
{
	auto_free struct outbox_message *m = NULL;

	if (o->n_waiting == OUTBOX_WAITING_MAX)
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
	if (!o->first)
		o->give_up_at = clock_deadline_ms(BUSY_MS);
	*(o->first ? &o->last->next : &o->first) = m;
	o->last = TAKE_PTR(m);
	o->n_waiting++;
	return 0;
}

int outbox_send(struct outbox *o, const void *msg, size_t size, int fd)
{
	ssize_t n = -EAGAIN;

	if (o->sock < 0)
		return -EPIPE;
	if (!o->first)
		n = fd_send(o->sock, msg, size, &fd, fd >= 0);
	if (n == -EAGAIN)
		return append(o, msg, size, fd);
	return n < 0 ? (int)n : 0;
}

int outbox_pass(struct outbox *o, const void *msg, size_t size, const int *fds, size_t n_fds)
{
	ssize_t n = o->sock < 0 ? -EPIPE : o->first ? -EAGAIN : fd_send(o->sock, msg, size, fds, n_fds);

	return n < 0 ? (int)n : 0;
}

bool outbox_has_room(const struct outbox *o)
{
	struct pollfd p = { .fd = o->sock, .events = POLLOUT };

	return o->sock >= 0 && !o->first && poll(&p, 1, 0) == 1 && p.revents == POLLOUT;
}

short outbox_events(const struct outbox *o)
{
	return o->first ? POLLIN | POLLOUT : POLLIN;
}

int outbox_flush(struct outbox *o)
{
	while (o->first) {
		const struct outbox_message *m = o->first;
		ssize_t n = fd_send(o->sock, m->data, m->size, &m->fd, m->fd >= 0);

		if (n == -EAGAIN)
			return clock_left_ms(o->give_up_at) ? 0 : -EAGAIN;
		if (n < 0)
			return (int)n;
		free_first(o);
		o->give_up_at = o->first ? clock_deadline_ms(BUSY_MS) : 0;
	}
	return 0;
}

void outbox_forget(struct outbox *o)
{
	while (o->first)
		free_first(o);
	o->give_up_at = 0;
}
