/* SPDX-License-Identifier: MIT */
#include "sharing.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

#define GREETING      "sharing?"
#define GREETING_SIZE sizeof(GREETING) /* 9 bytes, as the vendor's. */
#define BACKLOG	      16

/* ---- names ---- */

/* All ones for a process into which one may not look.  The zero behind the name is a part of it. */
static socklen_t memory_name(pid_t pid, struct sockaddr_un *ret)
{
	unsigned long long ns = ~0ull;
	struct stat st;
	char path[40];
	int n;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	if (stat(path, &st) == 0)
		ns = st.st_ino;
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 2, "cuda-uvmfd-%llu-%d", ns, (int)pid);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n + 1);
}

/* Padded with zeros to the end of the structure. */
static socklen_t datagram_name(pid_t pid, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "nv_target_process_uds_%d", (int)pid);
	return sizeof(*ret);
}

/* ---- messages ---- */

union control {
	struct cmsghdr align;
	char buf[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
};

/* @param fd  To send along; -1: none. */
static int greet(int sock, const struct sockaddr_un *to, socklen_t to_size, int fd)
{
	union control control = { .buf = { 0 } };
	char text[] = GREETING;
	struct iovec iov = { text, GREETING_SIZE };
	struct msghdr m = { .msg_name = (void *)to, .msg_namelen = to_size, .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		m.msg_control = control.buf;
		m.msg_controllen = CMSG_SPACE(sizeof(int));
		*CMSG_FIRSTHDR(&m) = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
						       .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd, sizeof(fd));
	}
	return sendmsg(sock, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/*
 * @param ret_uid  Who sent it, where the kernel says so.
 * @return a descriptor that came along, -ENODATA: none, -errno.
 */
static int take_greeting(int sock, uid_t *ret_uid)
{
	union control control;
	char text[GREETING_SIZE + 1];
	struct iovec iov = { text, sizeof(text) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = control.buf, .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	struct ucred sender;
	int fd = -ENODATA;

	if (n < 0)
		return -errno;
	if (n != GREETING_SIZE || memcmp(text, GREETING, GREETING_SIZE) != 0)
		return -EPROTO;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
			memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&sender, CMSG_DATA(c), sizeof(sender));
			*ret_uid = sender.uid;
		}
	}
	return fd;
}

/* What stands for the device of unified memory. */
static int open_memory(void)
{
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

/* ---- serving ---- */

static void *serve(void *arg)
{
	int listener = (int)(intptr_t)arg;

	pthread_setname_np(pthread_self(), "cuda-sharing");
	for (;;) {
		struct pollfd p = { .fd = listener, .events = POLLIN };
		auto_close int fd = -1, memory = -1;
		uid_t uid = (uid_t)-1;

		/* As the vendor's: where nobody connects, it accepts nobody. */
		if (poll(&p, 1, -1) != 1)
			continue;
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int)) < 0 ||
		    greet(fd, NULL, 0, -1) < 0 || take_greeting(fd, &uid) != -ENODATA || uid != getuid())
			continue;
		memory = open_memory();
		greet(fd, NULL, 0, memory);
	}
	return NULL;
}

static int start_thread(int listener)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t t;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&t, &attr, serve, (void *)(intptr_t)listener);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -r;
}

int sharing_serve(void)
{
	static int is_served;
	struct sockaddr_un name;
	socklen_t size = memory_name(getpid(), &name);
	auto_close int fd = -1;
	int r;

	if (is_served)
		return 0;
	/* The vendor's library removes what it takes for a path first, and goes on only if that is not there. */
	if (unlink("") == 0 || errno != ENOENT)
		return -errno;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&name, size) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	r = start_thread(fd);
	if (r == 0) {
		is_served = 1;
		(void)TAKE_FD(fd); /* The thread's. */
	}
	return r;
}

/* ---- asking ---- */

int sharing_open(pid_t pid)
{
	struct sockaddr_un name;
	socklen_t size = datagram_name(pid, &name);
	auto_close int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&name, size) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int sharing_send(void)
{
	struct sockaddr_un name;
	socklen_t size = datagram_name(getpid(), &name);
	auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), memory = open_memory();

	return fd < 0 || memory < 0 ? -errno : greet(fd, &name, size, memory);
}

static int ask_process(pid_t pid)
{
	struct sockaddr_un name;
	socklen_t size = memory_name(pid, &name);
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	uid_t uid;
	int r;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int)) < 0 ||
	    connect(fd, (const struct sockaddr *)&name, size) < 0)
		return -errno;
	r = take_greeting(fd, &uid);
	if (r == -ENODATA)
		r = greet(fd, NULL, 0, -1);
	return r < 0 ? r : take_greeting(fd, &uid);
}

bool sharing_is_served(void)
{
	auto_close int fd = ask_process(getpid());

	return fd >= 0;
}

int sharing_take(int from, pid_t pid)
{
	uid_t uid;
	auto_close int sent = take_greeting(from, &uid);
	auto_close int asked = sent < 0 ? -1 : ask_process(pid);

	return sent < 0 ? sent : asked < 0 ? asked : 0;
}
