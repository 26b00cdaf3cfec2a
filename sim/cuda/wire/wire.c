/* SPDX-License-Identifier: MIT */
/*
 * Frames on a blocking socket, for the libraries; and the decoder of debugger calls, for the
 * simulator.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire.h"

#include "base/cleanup.h"
#include "base/reader.h"
#include "libcudbgshim/src/cudbg_abi.h"

/* The table of what each call takes. */
#include "cudasim_slots.h"

/* Most pieces of a frame. */
#define PIECES_MAX 16

/* Send all bytes, without SIGPIPE. */
static int send_all(int fd, struct iovec *v, size_t n)
{
	while (n) {
		struct msghdr m = { .msg_iov = v, .msg_iovlen = n };
		ssize_t sent = sendmsg(fd, &m, MSG_NOSIGNAL);

		if (sent < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		while (n && (size_t)sent >= v->iov_len) {
			sent -= (ssize_t)v->iov_len;
			v++;
			n--;
		}
		if (n) {
			v->iov_base = (char *)v->iov_base + sent;
			v->iov_len -= (size_t)sent;
		}
	}
	return 0;
}

/* Receive so many bytes.  @return 0, -EPIPE (closed), -errno. */
static int recv_all(int fd, void *data, size_t size)
{
	static _Thread_local struct wire_soon soon;

	wire_soon_begin(&soon);
	while (size) {
		bool sleeps = !wire_soon(&soon);
		ssize_t n = recv(fd, data, size, sleeps ? 0 : MSG_DONTWAIT);

		if (n < 0 && !sleeps && errno == EAGAIN)
			continue;
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPIPE;
		data = (char *)data + n;
		size -= (size_t)n;
	}
	return 0;
}

int wire_connect(const char *path, const struct wire_hello *hello)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct iovec v = { (void *)hello, sizeof(*hello) };
	auto_close int fd = -1;
	int r;

	if (strlen(path) >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	strcpy(a.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)))
		return -errno;
	r = send_all(fd, &v, 1);
	return r ? r : TAKE_FD(fd);
}

#define TAKE_MS 2000

int wire_give(int sock, int fd)
{
	int error = fd < 0 ? fd : 0;
	struct iovec v = { &error, sizeof(error) };
	char control[CMSG_SPACE(sizeof(fd))] = { 0 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (fd >= 0) {
		m.msg_control = control;
		m.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(sock, &m, MSG_NOSIGNAL) == sizeof(error) ? 0 : -EPIPE;
}

int wire_take(int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	int error = 0, fd = -EPROTO;
	struct iovec v = { &error, sizeof(error) };
	char control[CMSG_SPACE(sizeof(fd))];
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c;

	if (poll(&p, 1, TAKE_MS) != 1)
		return -ETIMEDOUT;
	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) != sizeof(error))
		return -EPIPE;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return error < 0 ? error : fd;
}

int wire_send(int fd, uint32_t code, const struct wire_piece *pieces, size_t n)
{
	struct wire_head head = { sizeof(head), code };
	struct iovec v[PIECES_MAX + 1] = { { &head, sizeof(head) } };
	int r;

	if (n > PIECES_MAX)
		return -E2BIG;
	for (size_t i = 0; i < n; i++) {
		if (pieces[i].size > WIRE_FRAME_MAX - head.size)
			return -EMSGSIZE;
		head.size += (uint32_t)pieces[i].size;
		v[i + 1] = (struct iovec){ (void *)pieces[i].data, pieces[i].size };
	}
	r = send_all(fd, v, n + 1);
	/* A frame that was not sent whole would swallow the next one, and nobody would answer. */
	if (r)
		shutdown(fd, SHUT_RDWR);
	return r;
}

int wire_recv(int fd, uint32_t *ret_code, char **ret_data, size_t *ret_size)
{
	auto_free char *data = NULL;
	struct wire_head head;
	int r = recv_all(fd, &head, sizeof(head));

	if (r)
		return r;
	if (head.size < sizeof(head) || head.size > WIRE_FRAME_MAX)
		return -EBADMSG;
	data = malloc(head.size - sizeof(head) + 1);
	if (!data)
		return -ENOMEM;
	r = recv_all(fd, data, head.size - sizeof(head));
	if (r)
		return r;
	data[head.size - sizeof(head)] = 0;
	*ret_code = head.code;
	*ret_size = head.size - sizeof(head);
	*ret_data = TAKE_PTR(data);
	return 0;
}

/* Decode one buffer of a request. */
static void buffer_decode(struct reader *r, const struct slot_buffer *b, const uint64_t *in,
			  struct wire_piece *ret)
{
	uint64_t size = slot_buffer_size(b, in);

	if (!slot_is_input(b)) {
		/* The caller says what room it has; what is sent back never gets near 4 GiB. */
		*ret = (struct wire_piece){ NULL, size < WIRE_FRAME_MAX ? size : WIRE_FRAME_MAX };
		return;
	}
	ret->size = reader_u32(r);
	ret->data = reader_bytes(r, ret->size);
	if (!ret->data ||
	    (b->kind == SLOT_STRING ? !memchr(ret->data, 0, ret->size) : ret->size != size))
		r->bad = true;
}

int slot_request_decode(uint32_t slot, const void *payload, size_t size, struct slot_request *ret)
{
	struct reader r;

	if (slot >= SLOT_COUNT)
		return -EBADMSG;
	reader_init(&r, payload, size);
	*ret = (struct slot_request){ .info = &slot_table[slot], .slot = slot };
	for (size_t i = 0; i < ret->info->n_scalars; i++)
		ret->in[i] = reader_u64(&r);
	for (size_t i = 0; i < ret->info->n_buffers; i++)
		buffer_decode(&r, &ret->info->buffers[i], ret->in, &ret->buffers[i]);
	return reader_is_bad(&r) || reader_left(&r) ? -EBADMSG : 0;
}
