/* SPDX-License-Identifier: MIT */
#include "agentd/connect/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "agentd/access.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"

/* Time for those who are to speak, and for what the kernel may keep us in on a worker's behalf. */
#define MEET_MS 10000
#define STUCK_MS 2000

/* Of linux/socket.h from 6.5 on. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* ------------------------------------------------------------------ meeting ------------------ */

/*
 * @param ret_fds  @p n_fds are wanted, or fewer down to @p n_min; owned by the caller in any case.
 * @return 0, -errno.
 */
static int receive(const struct broker *b, void *message, size_t size, int *ret_fds, size_t n_min, size_t n_max)
{
	struct pollfd p = { .fd = b->channel, .events = POLLIN };
	size_t n_fds = 0;
	ssize_t n;

	if (poll(&p, 1, MEET_MS) != 1)
		return -ETIMEDOUT;
	n = fd_recv(b->channel, message, size, ret_fds, &n_fds);
	if (n < 0)
		return (int)n;
	if (n == 0)
		return -EPIPE;
	return (size_t)n == size && n_fds >= n_min && n_fds <= n_max ? 0 : -EPROTO;
}

static void close_all(const int *fds)
{
	for (size_t i = 0; i < FD_MESSAGE_MAX; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/*
 * The agent's own network namespace is the target's, unless that is in a container with one of its own.
 * Entering it takes a capability that this process has only where an administrator gives it.
 */
static int enter_network(struct broker *b, int net_fd)
{
	struct stat st;

	if (net_fd >= 0 && setns(net_fd, CLONE_NEWNET) < 0 && errno != EPERM)
		return -errno;
	if (stat("/proc/self/ns/net", &st) < 0)
		return -errno;
	b->net_dev = st.st_dev;
	b->net_ino = st.st_ino;
	return 0;
}

int broker_meet_monitor(struct broker *b)
{
	int fds[FD_MESSAGE_MAX] = { -1, -1, -1, -1 };
	struct ipc_connect_target m;
	int r = receive(b, &m, sizeof(m), fds, 1, 2);

	if (r == 0 && (m.type != IPC_CONNECT_TARGET || m.pid <= 0))
		r = -EPROTO;
	if (r == 0)
		r = enter_network(b, fds[1]);
	if (r == 0) {
		b->target = m.pid;
		b->permissive = m.permissive;
		b->target_pidfd = TAKE_FD(fds[0]);
	}
	close_all(fds);
	return r;
}

int broker_meet_worker(struct broker *b)
{
	const struct ipc_connect_ready ready = { .type = IPC_CONNECT_READY,
						 .net_dev = b->net_dev,
						 .net_ino = b->net_ino };
	int fds[FD_MESSAGE_MAX] = { -1, -1, -1, -1 };
	struct ipc_connect_plain m;
	int r = receive(b, &m, sizeof(m), fds, 2, 2);
	ssize_t n;

	if (r == 0 && m.type != IPC_CONNECT_WORKER)
		r = -EPROTO;
	if (r == 0) {
		b->notify_fd = TAKE_FD(fds[0]);
		b->memory_fd = TAKE_FD(fds[1]);
		n = fd_send(b->channel, &ready, sizeof(ready), NULL, 0);
		r = n < 0 ? (int)n : 0;
	}
	close_all(fds);
	return r;
}

int broker_prepare(struct broker *b)
{
	int r = seccomp_notify_alloc(&b->request, &b->answer);

	return r < 0 ? r : 0;
}

void broker_deinit(struct broker *b)
{
	seccomp_notify_free(b->request, b->answer);
	if (b->target_pidfd >= 0)
		close(b->target_pidfd);
	if (b->notify_fd >= 0)
		close(b->notify_fd);
	if (b->memory_fd >= 0)
		close(b->memory_fd);
}

/* ------------------------------------------------------------------ claims ------------------- */

static socklen_t make_name(uint32_t label, struct sockaddr_un *ret)
{
	int n;

	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, IPC_CONNECT_NAME, label);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int make_socket(void)
{
	/* The vendor's library wants it not to block (docs/reference/cudbg.md). */
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* A name can also be taken by a socket that does not listen, so connecting would not tell. */
static int try_name(uint32_t label)
{
	struct sockaddr_un name;
	socklen_t size = make_name(label, &name);
	auto_close int fd = make_socket();

	if (fd < 0)
		return fd;
	return bind(fd, (const struct sockaddr *)&name, size) < 0 ? -errno : 0;
}

static int tell(const struct broker *b, enum ipc_connect_type type, int status)
{
	const struct ipc_connect_claim m = { .type = type, .label = b->label, .status = status };
	ssize_t n = fd_send(b->channel, &m, sizeof(m), NULL, 0);

	/* A worker that reads nothing learns no reasons. */
	return n < 0 && n != -EAGAIN ? (int)n : 0;
}

static int take_claim(struct broker *b)
{
	int fds[FD_MESSAGE_MAX] = { -1, -1, -1, -1 };
	struct ipc_connect_claim m;
	int r = receive(b, &m, sizeof(m), fds, 0, 0);

	close_all(fds);
	if (r < 0)
		return r;
	if (m.type != IPC_CONNECT_CLAIM || !m.label || ++b->claims > IPC_CONNECT_CLAIMS_MAX)
		return -EPROTO;
	b->label = m.label;
	return tell(b, IPC_CONNECT_CLAIMED, try_name(m.label));
}

/* ------------------------------------------------------------------ connections -------------- */

/* @return 0, -EPERM: it is not the name of the engine's socket, in every byte; -errno. */
static int check_name(const struct broker *b)
{
	const struct seccomp_data *call = &b->request->data;
	struct sockaddr_un wanted, asked = { 0 };
	socklen_t size = make_name(b->label, &wanted);
	ssize_t n;

	if (!b->label || (socklen_t)call->args[2] != size)
		return -EPERM;
	/* Once: the worker may change it meanwhile, and what is connected to is our own copy. */
	n = pread(b->memory_fd, &asked, size, (off_t)call->args[1]);
	if (n != (ssize_t)size)
		return -EFAULT;
	return memcmp(&asked, &wanted, size) == 0 ? 0 : -EPERM;
}

/*
 * Is the listener the target?  The name was free when the label was claimed, and the target has lived
 * since, so the number is no other process's.  Files of pidfds differ from Linux 6.9 on.
 */
static int check_listener(const struct broker *b, int fd)
{
	struct ucred peer = { 0 };
	socklen_t size = sizeof(peer), pidfd_size = sizeof(int);
	struct stat theirs, ours;
	auto_close int pidfd = -1;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	if (peer.pid != b->target)
		return -EADDRINUSE;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &pidfd_size) < 0) {
		if (errno != ENOPROTOOPT)
			return -EADDRINUSE;
	} else if (fstat(pidfd, &theirs) < 0 || fstat(b->target_pidfd, &ours) < 0 ||
		   theirs.st_ino != ours.st_ino || theirs.st_dev != ours.st_dev) {
		return -EADDRINUSE;
	}
	return access_is_alive(b->target_pidfd) ? 0 : -ECONNREFUSED;
}

static int connect_engine(const struct broker *b, int *ret)
{
	struct sockaddr_un name;
	socklen_t size = make_name(b->label, &name);
	auto_close int fd = make_socket();
	int r;

	if (fd < 0)
		return fd;
	if (connect(fd, (const struct sockaddr *)&name, size) < 0)
		return -errno;
	r = check_listener(b, fd);
	if (r == 0)
		*ret = TAKE_FD(fd);
	return r;
}

/* The worker's own socket is replaced. */
static int install(const struct broker *b, int fd)
{
	struct seccomp_notif_addfd add = { .id = b->request->id,
					   .flags = SECCOMP_ADDFD_FLAG_SETFD,
					   .srcfd = (uint32_t)fd,
					   .newfd = (uint32_t)b->request->data.args[0],
					   .newfd_flags = O_CLOEXEC };

	return ioctl(b->notify_fd, SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0 ? -errno : 0;
}

/* @return what connect() answers. */
static int judge(const struct broker *b)
{
	auto_close int fd = -1;
	int r = check_name(b);

	/* A call that was given up: the memory may have been another process's. */
	if (seccomp_notify_id_valid(b->notify_fd, b->request->id) < 0)
		return -ECONNABORTED;
	if (r < 0) {
		log_debug("the worker on process %d may not connect there: %s", (int)b->target, strerror(-r));
		return r;
	}
	r = connect_engine(b, &fd);
	if (r == 0)
		r = install(b, fd);
	if (r == -EADDRINUSE)
		log_warning("process %d: another process listens on the name of its debug engine", (int)b->target);
	if (r < 0)
		tell(b, IPC_CONNECT_FAILED, r);
	return r == -EADDRINUSE ? -EPERM : r;
}

/* ------------------------------------------------------------------ other calls --------------- */

/* Requests of ptrace(2) are on the list one by one. */
static uint64_t kind_of(const struct seccomp_data *call)
{
	return (uint64_t)(uint32_t)call->nr << 32 | (call->nr == SYS_ptrace ? (uint32_t)call->args[0] : 0);
}

static void log_call(struct broker *b)
{
	const struct seccomp_data *call = &b->request->data;
	auto_free char *name = NULL;

	for (unsigned i = 0; i < b->n_logged; i++)
		if (b->logged[i] == kind_of(call))
			return;
	if (b->n_logged == BROKER_LOGGED_MAX)
		return;
	b->logged[b->n_logged++] = kind_of(call);
	name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, call->nr);
	log_warning("process %d: its worker is permissive, and made a call that is not on its list: %s (%d) with 0x%llx, 0x%llx, 0x%llx",
		    (int)b->target, name ? name : "?", call->nr, (unsigned long long)call->args[0],
		    (unsigned long long)call->args[1], (unsigned long long)call->args[2]);
}

/* ------------------------------------------------------------------ all calls ----------------- */

static void decide(struct broker *b)
{
	*b->answer = (struct seccomp_notif_resp){ .id = b->request->id };
	if (b->request->data.nr == SYS_connect) {
		b->answer->error = judge(b);
	} else if (b->permissive) {
		log_call(b);
		b->answer->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	} else {
		b->answer->error = -EPERM;
	}
}

static void interrupt(int signal)
{
	(void)signal;
}

static void set_alarm(unsigned ms, void (*what)(int))
{
	const struct itimerval timer = { .it_value = { ms / 1000, ms % 1000 * 1000 } };
	const struct sigaction action = { .sa_handler = what };

	setitimer(ITIMER_REAL, &timer, NULL);
	sigaction(SIGALRM, &action, NULL);
}

/*
 * The kernel waits for the next call when the one that it told of was given up: that wait a signal ends.
 * A read of the worker's memory may wait for a file system that does not answer, and a signal that is
 * handled ends no such wait.  One that kills does, or makes it the last thing that this process does; who
 * waits for the answer is the worker alone.
 */
static int take_call(struct broker *b)
{
	int r;

	set_alarm(STUCK_MS, interrupt);
	memset(b->request, 0, sizeof(*b->request));
	r = seccomp_notify_receive(b->notify_fd, b->request);
	set_alarm(STUCK_MS, SIG_DFL);
	if (r == 0) {
		decide(b);
		/* Nobody waits for the answer to a call that was given up. */
		r = seccomp_notify_respond(b->notify_fd, b->answer);
	}
	set_alarm(0, SIG_DFL);
	return r == 0 || r == -ENOENT || r == -EINTR || r == -ECANCELED ? 0 : r;
}

int broker_serve(struct broker *b)
{
	int r = 0;

	while (r == 0) {
		struct pollfd p[] = { { .fd = b->channel, .events = POLLIN },
				      { .fd = b->notify_fd, .events = POLLIN } };

		if (poll(p, 2, -1) < 0)
			r = errno == EINTR ? 0 : -errno;
		else if (p[1].revents & POLLIN)
			r = take_call(b);
		else if (p[0].revents & POLLIN)
			r = take_claim(b);
		else
			return 0;
	}
	return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}
