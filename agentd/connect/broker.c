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
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "agentd/sandbox.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"

/* Time for those who are to speak, and for what the kernel may keep us in on a worker's behalf. */
#define MEET_MS 10000
#define STUCK_MS 2000
#define FDINFO_MAX 4096

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

/* The number that the target has for itself, as the kernel tells it of a pidfd (proc_pid_fdinfo(5)). */
static pid_t number_for_itself(int pidfd, pid_t pid)
{
	auto_free char *text = NULL;
	const char *line, *tab;
	char path[40];
	size_t size;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	if (fd_read_file(path, FDINFO_MAX, &text, &size) < 0)
		return pid;
	line = strstr(text, "\nNSpid:");
	if (!line++)
		return pid;
	text[line - text + (ptrdiff_t)strcspn(line, "\n")] = '\0';
	tab = strrchr(line, '\t');
	return tab ? (pid_t)strtol(tab + 1, NULL, 10) : pid;
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
		b->sockets.target = m.pid;
		b->sockets.target_ns = m.pid_ns;
		b->sockets.target_number = number_for_itself(b->target_pidfd, m.pid);
		b->sockets.target_pidfd = b->target_pidfd;
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

	sockets_prepare(&b->sockets);
	return r < 0 ? r : 0;
}

void broker_deinit(struct broker *b)
{
	seccomp_notify_free(b->request, b->answer);
	sockets_deinit(&b->sockets);
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
	r = try_name(m.label);
	/* A name that somebody else has is not the engine's. */
	b->label = r == 0 ? m.label : 0;
	return tell(b, IPC_CONNECT_CLAIMED, r);
}

/* ------------------------------------------------------------------ sockets ------------------- */

/* An address in the worker's memory; once, for the worker may change it meanwhile.  @return its size, -errno. */
static ssize_t read_name(const struct broker *b, void *to, size_t room)
{
	const struct seccomp_data *call = &b->request->data;
	size_t size = (uint32_t)call->args[2];

	if (size < sizeof(sa_family_t) || size > room)
		return -EINVAL;
	return pread(b->memory_fd, to, size, (off_t)call->args[1]) == (ssize_t)size ? (ssize_t)size : -EFAULT;
}

/* @return the socket's number in the worker, -errno. */
static int give(const struct broker *b, int fd, int type)
{
	struct seccomp_notif_addfd add = { .id = b->request->id,
					   .srcfd = (uint32_t)fd,
					   .newfd_flags = type & SOCK_CLOEXEC ? O_CLOEXEC : 0 };
	int number = ioctl(b->notify_fd, SECCOMP_IOCTL_NOTIF_ADDFD, &add);

	return number < 0 ? -errno : number;
}

/* @return what socket() answers. */
static int make_socket_of_worker(struct broker *b)
{
	const struct seccomp_data *call = &b->request->data;
	int type = (int)call->args[1], ours, number;
	enum socket_kind kind;
	auto_close int fd = sockets_make(&b->sockets, (int)call->args[0], type, &kind, &ours);

	if (fd < 0)
		return fd;
	number = give(b, fd, type);
	if (number < 0 && ours >= 0)
		close(ours);
	else if (number >= 0)
		sockets_keep(&b->sockets, kind, ours, number);
	return number;
}

static int connect_socket(struct broker *b, const struct sockaddr_un *name, size_t size)
{
	char engine[sizeof(name->sun_path)] = "";
	bool is_engine = false;
	int r;

	if (b->label)
		snprintf(engine, sizeof(engine), IPC_CONNECT_NAME, b->label);
	r = sockets_connect(&b->sockets, (int)b->request->data.args[0], name, size, engine, &is_engine);
	if (r == -ENOENT || r == -ECONNREFUSED || r == -EACCES) {
		log_debug("the worker on process %d may not connect there: %s", (int)b->target, strerror(-r));
		return r;
	}
	if (r == -EADDRINUSE)
		log_warning("process %d: another process listens on a name of its debug engine", (int)b->target);
	if (r < 0 && is_engine)
		tell(b, IPC_CONNECT_FAILED, r);
	return r == -EADDRINUSE ? -EPERM : r;
}

/*
 * Nothing is unlinked, and no link is made.  With the rights of root, the library replaces the links of its devices in
 * /dev/char each time that it is initialised; it does without where it may not, as for any other user.  What it
 * expects of a name that is empty is what every kernel answers.
 */
static int refuse_file(const struct broker *b)
{
	const struct seccomp_data *call = &b->request->data;
	uint64_t path = call->args[call->nr == SCMP_SYS(unlink) ? 0 : 1];
	char first = '/';

	if ((call->nr == SCMP_SYS(unlink) || call->nr == SCMP_SYS(unlinkat)) &&
	    pread(b->memory_fd, &first, 1, (off_t)path) != 1)
		return -EFAULT;
	return first ? -EACCES : -ENOENT;
}

/* @return what the call answers. */
static int judge(struct broker *b)
{
	const struct seccomp_data *call = &b->request->data;
	struct sockaddr_un name = { .sun_family = AF_UNSPEC };
	ssize_t size = 0;

	if (call->nr == SYS_bind || call->nr == SYS_connect)
		size = read_name(b, &name, sizeof(name));
	/* A call that was given up: the memory may have been another process's. */
	if (seccomp_notify_id_valid(b->notify_fd, b->request->id) < 0)
		return -ECONNABORTED;
	if (size < 0)
		return (int)size;
	switch (call->nr) {
	case SYS_socket:
		return make_socket_of_worker(b);
	case SYS_bind:
		return sockets_bind(&b->sockets, (int)call->args[0], &name, (size_t)size);
	case SYS_listen:
		return sockets_listen(&b->sockets, (int)call->args[0], (int)call->args[1]);
	case SYS_connect:
		return connect_socket(b, &name, (size_t)size);
	default:
		return refuse_file(b);
	}
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

/* For whoever meets a driver that nobody has tried. */
static void log_answer(const struct broker *b, int answer)
{
	const struct seccomp_data *call = &b->request->data;
	auto_free char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, call->nr);

	log_debug("process %d: its worker's %s(%d) is answered %d", (int)b->target, name ? name : "?",
		  (int)call->args[0], answer);
}

static void decide(struct broker *b)
{
	*b->answer = (struct seccomp_notif_resp){ .id = b->request->id };
	if (sandbox_asks_broker(b->request->data.nr)) {
		int r = judge(b);

		log_answer(b, r);
		b->answer->error = r < 0 ? r : 0;
		b->answer->val = r < 0 ? 0 : r;
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
	unsigned failed = 0;
	int r = 0;

	while (r == 0) {
		struct pollfd p[] = { { .fd = b->channel, .events = POLLIN },
				      { .fd = b->notify_fd, .events = POLLIN },
				      { .fd = sockets_poll_fd(&b->sockets), .events = POLLIN } };

		if (poll(p, 3, -1) < 0) {
			/* The kernel may have had no memory; the worker's library bears no broker that ends. */
			r = fd_poll_again(errno, failed++) ? 0 : -errno;
			continue;
		}
		failed = 0;
		/* Anybody may send datagrams, as many as they like: that keeps nobody else from being served. */
		if (p[2].revents)
			sockets_forward(&b->sockets);
		if (p[1].revents & POLLIN)
			r = take_call(b);
		else if (p[0].revents & POLLIN)
			r = take_claim(b);
		else if (p[0].revents || p[1].revents)
			return 0;
	}
	return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}
