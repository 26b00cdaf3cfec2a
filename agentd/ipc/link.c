/* SPDX-License-Identifier: MIT */
#include "agentd/ipc/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

/* A message that waits until its socket takes it. */
struct ipc_queued {
	struct ipc_queued *next;
	size_t size;
	int fd; /* The descriptor that goes along, owned; or -1. */
	char data[]; /* The head, and a short text. */
};

void ipc_link_init(struct ipc_link *l, int take_fd)
{
	*l = (struct ipc_link){ .fd = take_fd };
}

static void drop_head(struct ipc_link *l)
{
	struct ipc_queued *q = l->head;

	l->head = q->next;
	if (!l->head)
		l->tail = NULL;
	l->queued_bytes -= q->size;
	if (q->fd >= 0)
		close(q->fd);
	free(q);
}

void ipc_link_deinit(struct ipc_link *l)
{
	while (l->head)
		drop_head(l);
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

int ipc_link_flush(struct ipc_link *l)
{
	while (l->head) {
		struct ipc_queued *q = l->head;
		ssize_t n = fd_send(l->fd, q->data, q->size, &q->fd, q->fd >= 0);

		if (n == -EAGAIN)
			return 0;
		if (n < 0)
			return (int)n;
		drop_head(l);
	}
	return 0;
}

/*
 * Every message goes through the queue, so that none overtakes another.
 * @param inside  Bytes of text in the message itself.
 */
static int queue_message(struct ipc_link *l, const struct ipc_head *head, const char *text,
			 size_t inside, int *take_fd)
{
	struct ipc_queued *q = malloc(sizeof(*q) + sizeof(*head) + inside);

	if (!q)
		return -ENOMEM;
	*q = (struct ipc_queued){ .size = sizeof(*head) + inside, .fd = TAKE_FD(*take_fd) };
	memcpy(q->data, head, sizeof(*head));
	if (inside)
		memcpy(q->data + sizeof(*head), text, inside);
	if (l->tail)
		l->tail->next = q;
	else
		l->head = q;
	l->tail = q;
	l->queued_bytes += q->size;
	return ipc_link_flush(l);
}

static int check_link(const struct ipc_link *l)
{
	if (l->fd < 0)
		return -EPIPE;
	return l->queued_bytes > IPC_QUEUE_MAX ? -ENOBUFS : 0;
}

int ipc_link_send(struct ipc_link *l, const struct ipc_head *head, const char *text)
{
	bool outside = head->size > IPC_INLINE_MAX;
	auto_close int fd = -1;
	int r = check_link(l);

	if (r == 0 && head->size > IPC_TEXT_MAX)
		r = -EFBIG;
	if (r == 0 && outside)
		r = fd_memfd_sealed("gpu-agent-text", text, (size_t)head->size, &fd);
	return r < 0 ? r : queue_message(l, head, text, outside ? 0 : (size_t)head->size, &fd);
}

int ipc_link_send_fd(struct ipc_link *l, const struct ipc_head *head, const char *text, int take_fd)
{
	auto_close int fd = take_fd;
	int r = check_link(l);

	if (r == 0 && head->size > IPC_INLINE_MAX)
		r = -EMSGSIZE;
	return r < 0 ? r : queue_message(l, head, text, (size_t)head->size, &fd);
}

/* At most one descriptor may come along; more are closed, and the message is refused. */
static int take_single_fd(int *fds, size_t n_fds, int *ret_fd)
{
	if (n_fds > 1) {
		while (n_fds)
			close(fds[--n_fds]);
		return -EPROTO;
	}
	*ret_fd = n_fds ? fds[0] : -1;
	return 0;
}

/*
 * Check that the head, the bytes received and the descriptor fit together, and map a long text.  A
 * message that needs a descriptor and has none, or the other way round, is malformed.
 */
static int message_check(struct ipc_message *m, size_t received, int fd)
{
	size_t inside = received - sizeof(m->head);

	if (m->head.size > IPC_INLINE_MAX) {
		size_t size;

		if (inside || fd < 0)
			return -EPROTO;
		if (fd_memfd_map(fd, IPC_TEXT_MAX, &m->mapped, &size) < 0)
			return -EPROTO;
		m->text = m->mapped;
		if (size == m->head.size)
			return 1;
		fd_memfd_unmap(m->mapped, size);
		m->mapped = NULL;
		return -EPROTO;
	}
	return (fd >= 0) == !!(m->head.flags & IPC_FLAG_FD) && inside == m->head.size ? 1 : -EPROTO;
}

int ipc_link_recv(struct ipc_link *l, struct ipc_message *ret)
{
	char buf[sizeof(struct ipc_head) + IPC_INLINE_MAX];
	int fds[FD_MESSAGE_MAX], r;
	auto_close int fd = -1;
	size_t n_fds;
	ssize_t n;

	if (l->fd < 0)
		return -EPIPE;
	memset(buf, 0, sizeof(ret->head));
	n = fd_recv(l->fd, buf, sizeof(buf), fds, &n_fds);
	if (n == -EMFILE) {
		*ret = (struct ipc_message){ .fd = -1 };
		memcpy(&ret->head, buf, sizeof(ret->head));
	}
	if (n <= 0)
		return n == -EMSGSIZE ? -EPROTO : (int)n;
	r = take_single_fd(fds, n_fds, &fd);
	if (r < 0)
		return r;
	*ret = (struct ipc_message){ .fd = -1 };
	if ((size_t)n < sizeof(ret->head))
		return -EPROTO;
	memcpy(&ret->head, buf, sizeof(ret->head));
	r = message_check(ret, (size_t)n, fd);
	if (r < 0 || ret->mapped)
		return r;
	ret->owned = malloc((size_t)n - sizeof(ret->head) + 1);
	if (!ret->owned)
		return -ENOMEM;
	memcpy(ret->owned, buf + sizeof(ret->head), (size_t)n - sizeof(ret->head));
	ret->text = ret->owned;
	ret->fd = TAKE_FD(fd);
	return 1;
}

void ipc_message_deinit(struct ipc_message *m)
{
	free(m->owned);
	fd_memfd_unmap(m->mapped, (size_t)m->head.size);
	if (m->fd >= 0)
		close(m->fd);
	*m = (struct ipc_message){ .fd = -1 };
}

int ipc_recv_fixed(int sock, void *msg, size_t size, int *ret_fd)
{
	int fds[FD_MESSAGE_MAX], r, fd;
	size_t n_fds;
	ssize_t n = fd_recv(sock, msg, size, fds, &n_fds);

	if (n <= 0)
		return n == -EMSGSIZE ? -EPROTO : (int)n;
	r = take_single_fd(fds, n_fds, &fd);
	if (r < 0)
		return r;
	if ((size_t)n != size) {
		if (fd >= 0)
			close(fd);
		return -EPROTO;
	}
	*ret_fd = fd;
	return 1;
}

int ipc_send_pair(int sock, const void *msg, size_t size, int *ret_fd)
{
	auto_close int ours = -1, theirs = -1;
	int pair[2], r = fd_socketpair(SOCK_NONBLOCK, pair);
	ssize_t n;

	if (r < 0)
		return r;
	ours = pair[0];
	theirs = pair[1];
	n = fd_send(sock, msg, size, &theirs, 1);
	if (n < 0)
		return (int)n;
	*ret_fd = TAKE_FD(ours);
	return 0;
}
