/* SPDX-License-Identifier: MIT */
#include "agentd/connect/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agentd/access.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"

/* Of linux/socket.h from 6.5 on. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#define SOCKET_FLAGS	(SOCK_NONBLOCK | SOCK_CLOEXEC)
#define BACKLOG_MAX	16
#define DATAGRAM_MAX	4096
/* Where CUDA programs give their descriptor of /dev/nvidia-uvm to each other, and the name for that of an engine. */
#define MEMORY_NAME	"cuda-uvmfd-"
#define DATAGRAM_NAME	"nv_target_process_uds_"

/* ------------------------------------------------------------------ names -------------------- */

/* Is it an abstract name that begins so and goes on with digits and dashes?  The library pads with zeros. */
static bool is_named(const struct sockaddr_un *a, size_t size, const char *begins)
{
	const char *at = a->sun_path + 1, *end = (const char *)a + size;
	size_t length = strlen(begins);

	if (size <= offsetof(struct sockaddr_un, sun_path) + 1 + length || a->sun_family != AF_UNIX || a->sun_path[0] ||
	    memcmp(at, begins, length) != 0)
		return false;
	for (at += length; at < end && *at; at++)
		if ((*at < '0' || *at > '9') && *at != '-')
			return false;
	for (; at < end && !*at; at++)
		;
	return at == end;
}

/* Does the last number in it say that it is the target's, for whom that is its own number? */
static bool is_of_target(const struct sockets *s, const struct sockaddr_un *a, size_t size, const char *begins)
{
	const char *end = (const char *)a + size, *at;
	long number = 0;

	if (!is_named(a, size, begins))
		return false;
	for (at = a->sun_path + 1 + strlen(begins); at < end && *at; at++)
		number = *at == '-' ? 0 : number > INT_MAX ? number : number * 10 + (*at - '0');
	return number == s->target_number;
}

/* Is it that abstract name, in every byte? */
static bool is_engine(const struct sockaddr_un *a, size_t size, const char *engine)
{
	size_t length = strlen(engine);

	return length && size == offsetof(struct sockaddr_un, sun_path) + 1 + length && a->sun_family == AF_UNIX &&
	       !a->sun_path[0] && memcmp(a->sun_path + 1, engine, length) == 0;
}

/* ------------------------------------------------------------------ the table ----------------- */

static int find(const struct sockets *s, int number)
{
	/* The latest first: numbers are used again. */
	for (unsigned k = 1; k <= SOCKETS_MAX; k++) {
		unsigned i = (s->next + SOCKETS_MAX - k) % SOCKETS_MAX;

		if (s->table[i].kind != SOCKET_NONE && s->table[i].number == number)
			return (int)i;
	}
	return -1;
}

static void forget(struct sockets *s, unsigned i)
{
	if (s->table[i].kind == SOCKET_NONE)
		return;
	if (s->table[i].fd >= 0)
		close(s->table[i].fd);
	if ((int)i == s->receiver) {
		close(TAKE_FD(s->datagram_fd));
		s->receiver = -1;
	}
	s->table[i].kind = SOCKET_NONE;
	s->table[i].fd = -1;
}

/* What is done for good is not held on to: its other side has to hear when the worker closes it. */
static void let_go(struct sockets *s, int i)
{
	if (s->table[i].fd >= 0)
		close(TAKE_FD(s->table[i].fd));
}

void sockets_keep(struct sockets *s, enum socket_kind kind, int ours, int number)
{
	int old = find(s, number);
	unsigned i = old >= 0 ? (unsigned)old : s->next;

	forget(s, i);
	if (old < 0)
		s->next = (s->next + 1) % SOCKETS_MAX;
	s->table[i].kind = kind;
	s->table[i].number = number;
	s->table[i].fd = ours;
	s->table[i].bound = false;
}

/* ------------------------------------------------------------------ making -------------------- */

/* What comes is dropped, where this process may have it so; else connections wait, and are accepted by nobody. */
static void drop_all(int fd)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog program = { 1, &drop };

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0)
		setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &(int){ 1 }, sizeof(int));
}

void sockets_prepare(struct sockets *s)
{
	const struct sockaddr_in loopback = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) == 0)
		s->own_ns = st.st_ino;
	if (fd >= 0)
		drop_all(fd);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&loopback, sizeof(loopback)) < 0 || listen(fd, 1) < 0) {
		log_debug("there is no socket that listens to nobody: %s", strerror(errno));
		return;
	}
	s->internet_fd = TAKE_FD(fd);
}

void sockets_deinit(struct sockets *s)
{
	for (unsigned i = 0; i < SOCKETS_MAX; i++)
		forget(s, i);
	if (s->internet_fd >= 0)
		close(TAKE_FD(s->internet_fd));
}

/*
 * From a socket for datagrams, the worker could send to everybody on the machine.  What it needs is to receive them:
 * a pair with kept boundaries does.
 */
static int make_pair(int flags, int *ret_ours)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (flags & SOCK_NONBLOCK), 0, fds) < 0)
		return -errno;
	*ret_ours = fds[0];
	return fds[1];
}

int sockets_make(struct sockets *s, int domain, int type, enum socket_kind *ret_kind, int *ret_ours)
{
	int fd, base = type & ~SOCKET_FLAGS;

	*ret_ours = -1;
	if (domain == AF_INET && base == SOCK_STREAM && s->internet_fd >= 0) {
		*ret_kind = SOCKET_INTERNET;
		fd = fcntl(s->internet_fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -errno : fd;
	}
	if (domain != AF_UNIX)
		return -EAFNOSUPPORT;
	if (base == SOCK_DGRAM) {
		*ret_kind = SOCKET_DATAGRAM;
		return make_pair(type, ret_ours);
	}
	if (base != SOCK_STREAM && base != SOCK_SEQPACKET)
		return -EPROTONOSUPPORT;
	*ret_kind = SOCKET_STREAM;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	*ret_ours = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return fd;
}

/* ------------------------------------------------------------------ binding ------------------- */

static int bind_datagrams(struct sockets *s, int i, const struct sockaddr_un *a, size_t size)
{
	const int yes = 1;
	auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) < 0 ||
	    bind(fd, (const struct sockaddr *)a, (socklen_t)size) < 0)
		return -errno;
	if (s->datagram_fd >= 0)
		close(s->datagram_fd);
	s->datagram_fd = TAKE_FD(fd);
	s->receiver = i;
	return 0;
}

static int bind_memory(struct sockets *s, int i)
{
	/* An address without a name: the kernel makes one up (unix(7), autobind). */
	const struct sockaddr_un none = { .sun_family = AF_UNIX };

	if (bind(s->table[i].fd, (const struct sockaddr *)&none, sizeof(none.sun_family)) < 0)
		return -errno;
	s->table[i].bound = true;
	return 0;
}

int sockets_bind(struct sockets *s, int number, const void *name, size_t size)
{
	int i = find(s, number);

	if (i < 0)
		return -EACCES;
	if (s->table[i].kind == SOCKET_INTERNET)
		return 0;
	if (s->table[i].kind == SOCKET_DATAGRAM)
		return is_of_target(s, name, size, DATAGRAM_NAME) ? bind_datagrams(s, i, name, size) : -EACCES;
	return s->table[i].fd >= 0 && is_named(name, size, MEMORY_NAME) ? bind_memory(s, i) : -EACCES;
}

int sockets_listen(struct sockets *s, int number, int backlog)
{
	int i = find(s, number);

	if (i >= 0 && s->table[i].kind == SOCKET_INTERNET)
		return 0;
	if (i < 0 || !s->table[i].bound || s->table[i].fd < 0)
		return -EACCES;
	if (listen(s->table[i].fd, backlog < 0 || backlog > BACKLOG_MAX ? BACKLOG_MAX : backlog) < 0)
		return -errno;
	let_go(s, i);
	return 0;
}

/* ------------------------------------------------------------------ connecting ---------------- */

/*
 * Is the listener the target?  The name was free when the label was claimed, and the target has lived
 * since, so the number is no other process's.  Files of pidfds differ from Linux 6.9 on.
 */
static int check_listener(const struct sockets *s, int fd)
{
	struct ucred peer = { 0 };
	socklen_t size = sizeof(peer), pidfd_size = sizeof(int);
	struct stat theirs, ours;
	auto_close int pidfd = -1;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	if (peer.pid != s->target)
		return -EADDRINUSE;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &pidfd_size) < 0) {
		if (errno != ENOPROTOOPT)
			return -EADDRINUSE;
	} else if (fstat(pidfd, &theirs) < 0 || fstat(s->target_pidfd, &ours) < 0 ||
		   theirs.st_ino != ours.st_ino || theirs.st_dev != ours.st_dev) {
		return -EADDRINUSE;
	}
	return access_is_alive(s->target_pidfd) ? 0 : -ECONNREFUSED;
}

/* Whatever the library has asked of its socket, this process waits for no listener. */
static int connect_now(int fd, const struct sockaddr_un *a, size_t size)
{
	int flags = fcntl(fd, F_GETFL), r;

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	r = connect(fd, (const struct sockaddr *)a, (socklen_t)size) < 0 ? -errno : 0;
	fcntl(fd, F_SETFL, flags);
	return r;
}

/* The worker has its socket already: one of ours tells first whose the listener is, which bears a caller that goes. */
static int connect_if_target(const struct sockets *s, int fd, const struct sockaddr_un *a, size_t size)
{
	int type = SOCK_STREAM, r;
	socklen_t type_size = sizeof(type);
	auto_close int probe = -1;

	getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size);
	probe = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	r = probe < 0 ? -errno : connect_now(probe, a, size);
	if (r == 0)
		r = check_listener(s, probe);
	return r < 0 ? r : connect_now(fd, a, size);
}

/*
 * The name begins with the target's namespace of process numbers, as far as whoever makes it can look at that.  A
 * worker without rights may not, and a target whose /proc is that of another namespace finds there the wrong one, or
 * that of a process which it may not look at: the library then takes all ones.  The number behind it is the one that
 * the target has for itself.
 */
static int connect_memory(const struct sockets *s, int fd)
{
	const uint64_t spaces[] = { s->target_ns, s->own_ns, UINT64_MAX };
	int r = -ECONNREFUSED;

	for (size_t i = 0; i < ARRAY_SIZE(spaces) && r == -ECONNREFUSED; i++) {
		struct sockaddr_un name = { .sun_family = AF_UNIX };
		int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 2, MEMORY_NAME "%llu-%d",
				 (unsigned long long)spaces[i], (int)s->target_number);

		/* The zero behind it is a part of the name. */
		r = connect_if_target(s, fd, &name, offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n + 1);
	}
	return r;
}

int sockets_connect(struct sockets *s, int number, const void *name, size_t size, const char *engine,
		    bool *ret_is_engine)
{
	const struct sockaddr_un *a = name;
	bool is_memory = is_of_target(s, a, size, MEMORY_NAME);
	int r, i = find(s, number);

	/* As on a machine where nobody is there: the library asks for daemons that it can do without. */
	if (size > offsetof(struct sockaddr_un, sun_path) && a->sun_family == AF_UNIX && a->sun_path[0])
		return -ENOENT;
	*ret_is_engine = is_engine(a, size, engine);
	if (!*ret_is_engine && !is_memory)
		return -ECONNREFUSED;
	if (i < 0 || s->table[i].kind != SOCKET_STREAM || s->table[i].fd < 0)
		return -EACCES;
	if (is_memory)
		r = connect_memory(s, s->table[i].fd);
	else
		r = connect_if_target(s, s->table[i].fd, a, size);
	if (r < 0)
		return r;
	r = check_listener(s, s->table[i].fd);
	/* Nothing may pass on it. */
	if (r < 0)
		shutdown(s->table[i].fd, SHUT_RDWR);
	let_go(s, i);
	return r;
}

/* ------------------------------------------------------------------ datagrams ----------------- */

int sockets_poll_fd(const struct sockets *s)
{
	return s->datagram_fd;
}

/* @param fds  FD_MESSAGE_MAX of them, -1 where none came.  @param ret_from  Who sent it, by the kernel's word. */
static ssize_t receive(int fd, void *data, size_t size, int *fds, size_t *ret_n_fds, pid_t *ret_from)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(FD_MESSAGE_MAX * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = data, .iov_len = size };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = control.buf, .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	struct ucred sender;

	for (struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		size_t length = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_RIGHTS && length <= FD_MESSAGE_MAX * sizeof(int)) {
			memcpy(fds, CMSG_DATA(c), length);
			*ret_n_fds = length / sizeof(int);
		} else if (c->cmsg_type == SCM_CREDENTIALS && length == sizeof(sender)) {
			memcpy(&sender, CMSG_DATA(c), sizeof(sender));
			*ret_from = sender.pid;
		}
	}
	return n;
}

void sockets_forward(struct sockets *s)
{
	char data[DATAGRAM_MAX];
	int fds[FD_MESSAGE_MAX] = { -1, -1, -1, -1 };
	size_t n_fds = 0;
	pid_t from = 0;
	ssize_t n = receive(s->datagram_fd, data, sizeof(data), fds, &n_fds, &from);

	/* The number of a target that has ended may be another process's. */
	if (n >= 0 && from == s->target && access_is_alive(s->target_pidfd))
		fd_send_now(s->table[s->receiver].fd, data, (size_t)n, fds, n_fds);
	else if (n >= 0)
		log_debug("a datagram of process %d, which is not the target, is dropped", (int)from);
	for (size_t i = 0; i < FD_MESSAGE_MAX; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}
