/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/net/monitor_link.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"

void monitor_link_send(struct monitor_link *s, const void *msg, size_t size, const int *fds, size_t n_fds)
{
	ssize_t n = s->fd < 0 ? 0 : fd_send(s->fd, msg, size, fds, n_fds);

	if (n < 0) {
		/* Without the monitor nothing can be started or freed: leave, workers follow. */
		if (n != -EPIPE)
			log_error("the parent takes no messages (%s): exiting", strerror((int)-n));
		event_base_loopbreak(s->base);
	}
}

void monitor_link_note(struct monitor_link *s, enum ipc_note_kind kind, uint32_t value)
{
	const struct ipc_note m = { .type = IPC_NOTE, .kind = kind, .value = value };

	monitor_link_send(s, &m, sizeof(m), NULL, 0);
}

void monitor_link_release(struct monitor_link *s, uint32_t worker, uint64_t client)
{
	const struct ipc_release m = { .type = IPC_RELEASE, .worker = worker, .client = client };

	monitor_link_send(s, &m, sizeof(m), NULL, 0);
}

void monitor_link_drop(struct monitor_link *s, int fd, uid_t uid)
{
	const struct ipc_drop m = { .type = IPC_DROP, .uid = uid };

	monitor_link_send(s, &m, sizeof(m), &fd, 1);
}

int monitor_link_try(struct monitor_link *s, const void *msg, size_t size)
{
	ssize_t n = s->fd < 0 ? 0 : fd_send(s->fd, msg, size, NULL, 0);

	return n < 0 ? (int)n : 0;
}

void monitor_link_status(struct monitor_link *s, uint32_t sessions, uint32_t connections)
{
	const struct ipc_note m = { .type = IPC_NOTE,
				    .kind = IPC_NOTE_STATUS,
				    .value = sessions << 16 | (connections & 0xffff) };

	/* Only figures: when the socket is full, later ones tell more. */
	(void)monitor_link_try(s, &m, sizeof(m));
}

static int receive(struct monitor_link *s)
{
	union {
		uint32_t type;
		struct ipc_client client;
		struct ipc_started started;
		struct ipc_ended ended;
		struct ipc_hooked hooked;
		struct ipc_watch watch;
		struct ipc_rule_name rule;
		struct ipc_limits limits;
		struct ipc_closer closer;
		struct ipc_ping ping;
		struct ipc_note note;
	} m;
	int fds[FD_MESSAGE_MAX];
	size_t n_fds;
	ssize_t n;

	memset(&m, 0, sizeof(m));
	n = fd_recv(s->fd, &m, sizeof(m), fds, &n_fds);
	/* What brings a descriptor, and lost it, is as good without. */
	if (n == -EMFILE)
		n = m.type == IPC_STARTED ? sizeof(m.started) :
		    m.type == IPC_CLIENT  ? sizeof(m.client) :
		    m.type == IPC_WATCH	  ? sizeof(m.watch) : sizeof(m.hooked);
	if (n <= 0)
		return n == 0 ? -EPIPE : (int)n;
	while (n_fds > 1)
		close(fds[--n_fds]);
	if ((size_t)n == sizeof(m.client) && m.type == IPC_CLIENT) {
		s->ops->client(s->owner, &m.client, n_fds ? fds[0] : -1);
	} else if ((size_t)n == sizeof(m.started) && m.type == IPC_STARTED) {
		s->ops->started(s->owner, &m.started, n_fds ? fds[0] : -1);
	} else if ((size_t)n == sizeof(m.ended) && m.type == IPC_ENDED && !n_fds) {
		s->ops->ended(s->owner, &m.ended);
	} else if ((size_t)n == sizeof(m.hooked) && m.type == IPC_HOOKED) {
		s->ops->hooked(s->owner, &m.hooked, n_fds ? fds[0] : -1);
	} else if ((size_t)n == sizeof(m.watch) && m.type == IPC_WATCH) {
		s->ops->watch(s->owner, &m.watch, n_fds ? fds[0] : -1);
	} else if ((size_t)n == sizeof(m.rule) && m.type == IPC_RULE_NAME && !n_fds) {
		s->ops->rule_name(s->owner, &m.rule);
	} else if ((size_t)n == sizeof(m.limits) && m.type == IPC_LIMITS && !n_fds) {
		s->ops->limits(s->owner, &m.limits);
	} else if ((size_t)n == sizeof(m.closer) && m.type == IPC_CLOSER && !n_fds) {
		s->ops->closer(s->owner, &m.closer);
	} else if ((size_t)n == sizeof(m.ping) && m.type == IPC_PING && !n_fds) {
		monitor_link_note(s, IPC_NOTE_PONG, m.ping.number);
	} else if ((size_t)n == sizeof(m.note) && m.type == IPC_NOTE &&
		   m.note.kind == IPC_NOTE_OWED && !n_fds) {
		s->ops->owed(s->owner);
	} else if ((size_t)n == sizeof(m.note) && m.type == IPC_NOTE &&
		   m.note.kind == IPC_NOTE_REPLACED && !n_fds) {
		s->ops->replaced(s->owner);
	} else {
		return -EPROTO;
	}
	return 0;
}

static void monitor_readable(int fd, short what, void *user)
{
	struct monitor_link *s = user;
	int r;

	while ((r = receive(s)) == 0)
		;
	if (r == -EAGAIN)
		return;
	/* End of file is how the monitor asks us to leave. */
	if (r != -EPIPE)
		log_error("message from the parent: %s", strerror(-r));
	event_base_loopbreak(s->base);
}

int monitor_link_init(struct monitor_link *s, int monitor_fd)
{
	s->fd = monitor_fd;
	s->event = event_new(s->base, monitor_fd, EV_READ | EV_PERSIST, monitor_readable, s);
	return s->event && event_add(s->event, NULL) == 0 ? 0 : -ENOMEM;
}

void monitor_link_deinit(struct monitor_link *s)
{
	if (s->event)
		event_free(s->event);
	s->event = NULL;
}
