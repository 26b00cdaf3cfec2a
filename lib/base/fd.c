/* SPDX-License-Identifier: MIT */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The headers of the oldest distributions that we build on lack these options of a socket. */
#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76
#endif
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

#define DRAIN_SIZE   ((size_t)16 * 1024)
/* Bounds the loop; covers every buffer that an unprivileged sender may have. */
#define DRAIN_ROUNDS 4096
#define POLL_PAUSE_MS 50

int fd_reserve_stdio(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		/* 0-2 must survive exec; the first higher number proves that they are all open. */
		if (fd <= 2)
			fd_set_cloexec(fd, false);
	} while (fd <= 2);
	close(fd);
	return 0;
}

static int set_flag(int fd, int get, int set, int bit, bool on)
{
	int flags = fcntl(fd, get);

	if (flags < 0)
		return -errno;
	flags = on ? flags | bit : flags & ~bit;
	return fcntl(fd, set, flags) < 0 ? -errno : 0;
}

int fd_set_nonblock(int fd, bool on)
{
	return set_flag(fd, F_GETFL, F_SETFL, O_NONBLOCK, on);
}

int fd_set_cloexec(int fd, bool on)
{
	return set_flag(fd, F_GETFD, F_SETFD, FD_CLOEXEC, on);
}

bool fd_poll_again(int error, unsigned n)
{
	const struct timespec pause = { 0, POLL_PAUSE_MS * 1000000L };

	if (error == EINTR)
		return true;
	if (n >= FD_POLL_MS_MAX / POLL_PAUSE_MS)
		return false;
	nanosleep(&pause, NULL);
	return true;
}

int fd_socketpair(int flags, int ret_fds[2])
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0, fds) < 0)
		return -errno;
	ret_fds[0] = fds[0];
	ret_fds[1] = fds[1];
	return 0;
}

union control {
	char buf[CMSG_SPACE(sizeof(int) * FD_MESSAGE_MAX)];
	struct cmsghdr align;
};

static ssize_t send_message(int sock, const void *data, size_t size, const int *fds, size_t n_fds, int flags)
{
	struct iovec iov = { .iov_base = (void *)data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control control;
	ssize_t n;

	/* More would not fit into the control buffer. */
	if (n_fds > FD_MESSAGE_MAX)
		return -EINVAL;
	if (n_fds) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}
	do
		n = sendmsg(sock, &msg, flags | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	/* The peer left without reading everything that was sent to it. */
	if (n < 0 && errno == ECONNRESET)
		return -EPIPE;
	return n < 0 ? -errno : n;
}

ssize_t fd_send(int sock, const void *data, size_t size, const int *fds, size_t n_fds)
{
	return send_message(sock, data, size, fds, n_fds, 0);
}

ssize_t fd_send_now(int sock, const void *data, size_t size, const int *fds, size_t n_fds)
{
	return send_message(sock, data, size, fds, n_fds, MSG_DONTWAIT);
}

static void close_all(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		close(fds[i]);
		fds[i] = -1;
	}
}

/* @param max  What @p ret_fds has room for: with more the answer is -EMFILE, and the kernel drops them. */
static ssize_t recv_rights(int sock, void *data, size_t size, int *ret_fds, size_t max, size_t *ret_n_fds)
{
	struct iovec iov = { .iov_base = data, .iov_len = size };
	union {
		char buf[CMSG_SPACE(sizeof(int) * FD_RIGHTS_MAX)];
		struct cmsghdr align;
	} control;
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.buf,
			      .msg_controllen = CMSG_SPACE(sizeof(int) * max) };
	size_t n_fds = 0;
	unsigned resets = 0;
	ssize_t n;

	*ret_n_fds = 0;
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || (errno == ECONNRESET && !resets++)));
	/*
	 * A peer that left without reading everything is as gone as one that did.  The kernel says so
	 * once, and before it gives what the peer sent last.
	 */
	if (n < 0 && errno == ECONNRESET)
		n = msg.msg_controllen = 0;
	if (n < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || count > max - n_fds)
			continue;
		memcpy(ret_fds + n_fds, CMSG_DATA(c), count * sizeof(int));
		n_fds += count;
	}
	*ret_n_fds = n_fds;
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return msg.msg_flags & MSG_TRUNC ? -EMSGSIZE : -EMFILE;
	return n;
}

ssize_t fd_recv(int sock, void *data, size_t size, int *ret_fds, size_t *ret_n_fds)
{
	ssize_t n;

	for (size_t i = 0; i < FD_MESSAGE_MAX; i++)
		ret_fds[i] = -1;
	n = recv_rights(sock, data, size, ret_fds, FD_MESSAGE_MAX, ret_n_fds);
	if (n < 0) {
		close_all(ret_fds, *ret_n_fds);
		*ret_n_fds = 0;
	}
	return n;
}

ssize_t fd_recv_foreign(int sock, void *data, size_t size, int *ret_fds, size_t *ret_n_fds)
{
	return recv_rights(sock, data, size, ret_fds, FD_RIGHTS_MAX, ret_n_fds);
}

ssize_t fd_recv_stream(int sock, void *data, size_t size, int *ret_fd)
{
	struct iovec iov = { .iov_base = data, .iov_len = size };
	union control control;
	/* There is no room for a second descriptor, so the kernel closes it. */
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.buf,
			      .msg_controllen = CMSG_LEN(sizeof(int)) };
	const struct cmsghdr *c;
	ssize_t n;

	*ret_fd = -1;
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len >= CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
	return n;
}

int fd_refuse_rights(int sock)
{
	static const int without[] = { SO_PASSRIGHTS, SO_PASSCRED, SO_PASSSEC, SO_PASSPIDFD };
	const int off = 0, on = 1;

	/*
	 * A listener may have the last three options from a service manager, and they would make
	 * every message look as if it brought descriptors.  Errors are ignored: a kernel that does
	 * not know an option does not do what it stands for.
	 */
	for (size_t i = 0; i < ARRAY_SIZE(without); i++)
		(void)setsockopt(sock, SOL_SOCKET, without[i], &off, sizeof(off));
	return setsockopt(sock, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)) < 0 ? -errno : 0;
}

/* Receive with no room for control data: MSG_CTRUNC then tells that descriptors came along. */
static ssize_t receive(int sock, void *data, size_t size, int flags, bool *ret_rights)
{
	struct iovec iov = { .iov_base = data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	do
		n = recvmsg(sock, &msg, flags);
	while (n < 0 && errno == EINTR);
	*ret_rights = n >= 0 && (msg.msg_flags & MSG_CTRUNC);
	return n < 0 ? -errno : n;
}

ssize_t fd_recv_plain(int sock, void *data, size_t size)
{
	bool rights;
	ssize_t n = receive(sock, data, size, MSG_PEEK, &rights);

	if (rights)
		return -EBADMSG;
	if (n <= 0)
		return n;
	/* Take no byte more than was seen: what came meanwhile may bring a descriptor. */
	return receive(sock, data, (size_t)n, 0, &rights);
}

int fd_end_stream(int sock)
{
	char buf[DRAIN_SIZE];
	ssize_t n;

	/* From now on a sender gets EPIPE, so nothing can come behind what is seen here. */
	if (shutdown(sock, SHUT_RDWR) < 0 && errno != ENOTCONN)
		return -errno;
	for (unsigned i = 0; i < DRAIN_ROUNDS; i++) {
		n = fd_recv_plain(sock, buf, sizeof(buf));
		if (n == 0 || n == -EAGAIN)
			return 0;
		/* The kernel reports ECONNRESET once; what was sent before is still there. */
		if (n < 0 && n != -ECONNRESET)
			return (int)n;
	}
	return -EFBIG;
}

bool fd_is_memfd(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0;
}

int fd_write_all(int fd, const void *data, size_t size)
{
	const char *p = data;

	while (size) {
		ssize_t n = write(fd, p, size);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		p += n;
		size -= (size_t)n;
	}
	return 0;
}

ssize_t fd_pread_all(int fd, void *buf, size_t size, uint64_t offset)
{
	size_t done = 0;

	if (offset > INT64_MAX || size > INT64_MAX - offset)
		return -EINVAL;
	while (done < size) {
		ssize_t n = pread(fd, (char *)buf + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && !done)
			return -errno;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* @param at_once  A read that gives less than it might is the last one. */
static int read_whole(int dir_fd, const char *path, bool at_once, size_t max, char **ret_data, size_t *ret_size)
{
	auto_close int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	auto_free char *data = NULL;
	size_t size = 0, capacity = 0, room;
	ssize_t n;

	if (fd < 0)
		return -errno;
	do {
		/* The buffer always keeps one byte for the NUL. */
		if (capacity - size < 2) {
			size_t want = capacity ? capacity * 2 : 4096;
			char *grown = realloc(data, want);

			if (!grown)
				return -ENOMEM;
			data = grown;
			capacity = want;
		}
		room = capacity - size - 1;
		n = read(fd, data + size, room);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			size += (size_t)n;
		if (size > max)
			return -EFBIG;
	} while (n < 0 || (at_once ? (size_t)n == room : n > 0));
	data[size] = '\0';
	*ret_data = TAKE_PTR(data);
	*ret_size = size;
	return 0;
}

int fd_read_file_at(int dir_fd, const char *path, size_t max, char **ret_data, size_t *ret_size)
{
	return read_whole(dir_fd, path, false, max, ret_data, ret_size);
}

int fd_read_attribute_at(int dir_fd, const char *path, size_t max, char **ret_data, size_t *ret_size)
{
	return read_whole(dir_fd, path, true, max, ret_data, ret_size);
}

int fd_read_file(const char *path, size_t max, char **ret_data, size_t *ret_size)
{
	return fd_read_file_at(AT_FDCWD, path, max, ret_data, ret_size);
}

#define MEMFD_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

int fd_memfd_sealed(const char *name, const void *data, size_t size, int *ret_fd)
{
	auto_close int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, data, size);
	if (r < 0)
		return r;
	if (fcntl(fd, F_ADD_SEALS, MEMFD_SEALS) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int fd_memfd_map(int fd, size_t max, const void **ret_data, size_t *ret_size)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	void *p;

	/*
	 * Without the seals the sender could change the file or truncate it (SIGBUS) while it is
	 * mapped.
	 */
	if (seals < 0 || (seals & MEMFD_SEALS) != MEMFD_SEALS)
		return -EPERM;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size <= 0 || (size_t)st.st_size > max)
		return -EFBIG;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	*ret_data = p;
	*ret_size = (size_t)st.st_size;
	return 0;
}

void fd_memfd_unmap(const void *data, size_t size)
{
	if (data)
		munmap((void *)data, size);
}
