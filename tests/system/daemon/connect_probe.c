/* SPDX-License-Identifier: MIT */
/*
 * For test_connect.py: a worker that runs somebody else's code, behind the filter of a worker with a
 * driver in it, and the connect broker that it has.  Built without sanitizers, as sandbox_probe.
 *
 *   connect_probe none           every attempt of a table, without filter and broker: "NAME ERRNO"
 *   connect_probe BROKER         the same with both
 *   connect_probe BROKER WHAT [FILE]
 *                                what comes of it when: held (another process has the name before it
 *                                is claimed), squatted (and listens there after that), claims (too
 *                                many are made), dead (the broker is killed), stuck (the name lies in
 *                                a page of the file FILE, which never comes), permissive (the agent
 *                                was started so)
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/ipc/connect.h"
#include "agentd/privileges.h"
#include "agentd/sandbox.h"
#include "base/cleanup.h"
#include "base/fd.h"

#define USER 1000

static uint32_t label;
static pid_t broker_pid, target_pid;
static bool permissive;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	_exit(1);
}

/* ------------------------------------------------------------------ names --------------------- */

struct address {
	struct sockaddr_un a;
	socklen_t size;
};

__attribute__((format(printf, 1, 2))) static struct address abstract(const char *format, ...)
{
	struct address r = { .a = { .sun_family = AF_UNIX } };
	char name[64];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(name, sizeof(name), format, ap);
	va_end(ap);

	memcpy(r.a.sun_path + 1, name, (size_t)n);
	r.size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	return r;
}

static struct address path(const char *name)
{
	struct address r = { .a = { .sun_family = AF_UNIX }, .size = sizeof(r.a) };

	strcpy(r.a.sun_path, name);
	return r;
}

static int listen_on(const struct address *at)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&at->a, at->size) < 0 || listen(fd, 8) < 0)
		die("listen");
	return fd;
}

/* It ends with its parent, which may become that user, and then signal no other. */
static void be_a_user(void)
{
	if (privileges_become(USER, USER) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		die("become");
	/* The parent may have ended before that. */
	alarm(60);
}

/* What the monitor tells of the target's namespace of process numbers. */
#define PID_NS 4026531836u

/* The engine's own, of the number of its process; the library pads it. */
static struct address datagrams(pid_t pid)
{
	struct address r = abstract("nv_target_process_uds_%d", (int)pid);

	r.size = sizeof(r.a);
	return r;
}

/* With standard error, as the descriptor that comes along. */
static void send_datagram(const char *text)
{
	const struct address to = datagrams(target_pid ? target_pid : getpid());
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = { .buf = { 0 } };
	struct iovec iov = { (void *)text, 1 };
	struct msghdr m = { .msg_name = (void *)&to.a, .msg_namelen = to.size, .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = control.buf, .msg_controllen = sizeof(control) };

	*CMSG_FIRSTHDR(&m) = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
					       .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &(int){ 2 }, sizeof(int));
	(void)!sendmsg(fd, &m, 0);
	close(fd);
}

/* Listens on everything that @p make says, until it is killed. */
static pid_t start_listener(void (*make)(void))
{
	int ready[2];
	char byte;
	pid_t child;

	if (pipe(ready) < 0)
		die("pipe");
	child = fork();
	if (child == 0) {
		be_a_user();
		make();
		/* Datagrams of somebody who is not the target. */
		if (write(ready[1], "", 1) == 1)
			for (;; usleep(5000))
				send_datagram("x");
		_exit(1);
	}
	if (child < 0 || read(ready[0], &byte, 1) != 1)
		die("listener");
	return child;
}

static char place[64];

/* What CUDA programs call the socket on which they give away their descriptor of memory; the zero is part of it. */
static struct address memory(unsigned long long ns, pid_t pid)
{
	struct address r = abstract("cuda-uvmfd-%llu-%d", ns, (int)pid);

	r.size++;
	return r;
}

/* Whoever else there is on a machine, and a second debug engine. */
static void listen_as_others(void)
{
	const struct address all[] = { abstract(IPC_CONNECT_NAME, label + 1), abstract("/org/bus/%u", label),
				       path(place), memory(PID_NS, getppid()) };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		listen_on(&all[i]);
}

static int target_go[2] = { -1, -1 };

/* The engine, when it is told; and some more that its process listens on. */
static pid_t start_target(void)
{
	int ready[2];
	pid_t child;
	char byte;

	if (pipe2(target_go, O_CLOEXEC) < 0 || pipe2(ready, O_CLOEXEC) < 0)
		die("pipe");
	child = fork();
	if (child == 0) {
		const struct address more[] = { abstract("nv_target_process_%u_00", label),
						abstract("nv_target_process_%u_1", label) };
		const struct address own = abstract(IPC_CONNECT_NAME, label), given = memory(PID_NS, getpid());
		int fd;

		close(target_go[1]);
		be_a_user();
		if (read(target_go[0], &byte, 1) != 1)
			_exit(1);
		fd = listen_on(&own);
		for (size_t i = 0; i < ARRAY_SIZE(more); i++)
			listen_on(&more[i]);
		listen_on(&given);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;) {
			if (write(accept(fd, NULL, NULL), "t", 1) != 1)
				continue;
			send_datagram("t");
		}
	}
	target_go[0] = ready[0];
	return child;
}

static void let_target_listen(void)
{
	char byte;

	if (write(target_go[1], "", 1) != 1 || read(target_go[0], &byte, 1) != 1)
		die("target");
}

/* ------------------------------------------------------------------ attempts ------------------ */

static int try_connect(const struct address *to)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), r;

	r = fd < 0 || connect(fd, (const struct sockaddr *)&to->a, to->size) < 0 ? errno : 0;
	close(fd);
	return r;
}

/* @return 0, errno; 255: it is another connection than it should be. */
static int try_engine(void)
{
	const struct address to = abstract(IPC_CONNECT_NAME, label);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char byte = 0;
	ssize_t n;

	if (fd < 0 || connect(fd, (const struct sockaddr *)&to.a, to.size) < 0)
		return errno;
	while ((n = read(fd, &byte, 1)) < 0 && errno == EAGAIN)
		usleep(1000);
	return n == 1 && byte == 't' ? 0 : 255;
}

static int try_unmapped_address(void)
{
	const struct address to = abstract(IPC_CONNECT_NAME, label);

	return connect(socket(AF_UNIX, SOCK_STREAM, 0), (const struct sockaddr *)8, to.size) < 0 ? errno : 0;
}

/* From before the sandbox. */
static const void *stuck_page;

static void map_stuck_page(const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	stuck_page = mmap(NULL, sizeof(struct sockaddr_un), PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd < 0 || stuck_page == MAP_FAILED)
		die(file);
	close(fd);
}

static int try_stuck_address(void)
{
	const struct address to = abstract(IPC_CONNECT_NAME, label);

	return connect(socket(AF_UNIX, SOCK_STREAM, 0), stuck_page, to.size) < 0 ? errno : 0;
}

static int try_socket(int family, int type)
{
	return socket(family, type, 0) < 0 ? errno : 0;
}

static int try_bind(void)
{
	const struct address at = abstract("gpu-agent-test-%u", label);

	return bind(socket(AF_UNIX, SOCK_STREAM, 0), (const struct sockaddr *)&at.a, at.size) < 0 ? errno : 0;
}

/* One that was bound before the filter came. */
static int try_listen(int bound)
{
	return listen(bound, 1) < 0 ? errno : 0;
}

static int try_accept(int listening, bool four)
{
	int fd = four ? accept4(listening, NULL, NULL, SOCK_CLOEXEC) : accept(listening, NULL, NULL);

	return fd < 0 ? errno : 0;
}

/* What is watched before it is connected tells of what comes; the vendor's library does that. */
static int try_watched(void)
{
	const struct address to = abstract(IPC_CONNECT_NAME, label);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };

	if (fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) < 0 ||
	    connect(fd, (const struct sockaddr *)&to.a, to.size) < 0)
		return errno;
	return epoll_wait(epoll, &e, 1, 2000) == 1 ? 0 : ETIMEDOUT;
}

/* @return 0, errno; 255: it was let through, and to somebody else. */
static int try_memory(const struct address *to)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct pollfd p = { .fd = fd };

	if (fd < 0)
		return errno;
	if (connect(fd, (const struct sockaddr *)&to->a, to->size) == 0)
		return 0;
	/* One that is not connected tells of its end. */
	return poll(&p, 1, 0) == 1 && p.revents & POLLHUP ? errno : 255;
}

static int bind_and_listen(const struct address *at)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	struct sockaddr_un is = { 0 };
	socklen_t size = sizeof(is);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&at->a, at->size) < 0 || listen(fd, 8) < 0 ||
	    getsockname(fd, (struct sockaddr *)&is, &size) < 0)
		return errno;
	/* It needs a name, and takes nobody's. */
	return size > sizeof(is.sun_family) && strncmp(is.sun_path + 1, at->a.sun_path + 1, 4) != 0 ? 0 : 255;
}

static int try_other_datagrams(void)
{
	const struct address at = datagrams(getpid());

	return bind(socket(AF_UNIX, SOCK_DGRAM, 0), (const struct sockaddr *)&at.a, at.size) < 0 ? errno : 0;
}

/* A datagram of the target comes with its descriptor; one of somebody else does not.  @return 0, errno, 255. */
static int try_datagrams(void)
{
	const struct address at = datagrams(target_pid);
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0), fds[FD_MESSAGE_MAX];
	size_t n_fds = 0;
	char byte = 0;

	if (fd < 0 || bind(fd, (const struct sockaddr *)&at.a, at.size) < 0)
		return errno;
	/* Those of somebody else come all the time. */
	usleep(50000);
	/* The target sends one for each connection. */
	if (try_engine() != 0)
		return 254;
	if (fd_recv(fd, &byte, 1, fds, &n_fds) != 1 || byte != 't' || n_fds != 1)
		return 255;
	close(fds[0]);
	return 0;
}

static int try_internet(const char *what)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t size = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);

	if (fd < 0)
		return errno;
	if (strcmp(what, "connect") == 0) {
		a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		a.sin_port = htons(9);
		return connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ? errno : 0;
	}
	if (strcmp(what, "fast") == 0)
		return sendto(fd, "x", 1, MSG_FASTOPEN, (const struct sockaddr *)&a, sizeof(a)) < 0 ? errno : 0;
	/* The library listens on all addresses, as it thinks. */
	if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 128) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &size) < 0)
		return errno;
	return a.sin_addr.s_addr == htonl(INADDR_LOOPBACK) ? 0 : 255;
}

static int try_unlink(const char *what)
{
	return unlink(what) < 0 ? errno : 0;
}

static void say(const char *name, int r)
{
	printf("%s %d\n", name, r);
	fflush(stdout);
}

/* What the vendor's library does, and what it could do with that. */
static void try_library(void)
{
	const struct address given = memory(~0ull, target_pid), foreign = memory(~0ull, getpid());
	const struct address own = memory(7, getpid());

	say("watched", try_watched());
	say("memory", try_memory(&given));
	say("foreign_memory", try_memory(&foreign));
	say("own_memory", bind_and_listen(&own));
	say("datagrams", try_datagrams());
	say("other_datagrams", try_other_datagrams());
	say("internet", try_internet("listen"));
	say("internet_connect", try_internet("connect"));
	say("internet_fast", try_internet("fast"));
	say("unlink", try_unlink(place));
	say("unlink_nothing", try_unlink(""));
	say("not_unlinked", access(place, F_OK) < 0 ? errno : 0);
	say("symlink", symlink("x", place) < 0 ? errno : 0);
}

static void try_all(int bound, int listening)
{
	const struct {
		const char *name;
		struct address to;
	} others[] = {
		{ "bus", path("/run/dbus/system_bus_socket") },
		{ "manager", path("/run/systemd/private") },
		{ "path", path(place) },
		{ "abstract", abstract("/org/bus/%u", label) },
		{ "other_label", abstract(IPC_CONNECT_NAME, label + 1) },
		{ "suffix", abstract("nv_target_process_%u_00", label) },
		{ "other_session", abstract("nv_target_process_%u_1", label) },
	};
	struct address cut = abstract(IPC_CONNECT_NAME, label), padded = cut;

	say("engine", try_engine());
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		say(others[i].name, try_connect(&others[i].to));
	cut.size -= 2;
	padded.size = sizeof(padded.a);
	say("cut", try_connect(&cut));
	say("padded", try_connect(&padded));
	say("unmapped", try_unmapped_address());
	/* Not on the list; on the list with another request; what no process of the agent may. */
	say("getsid", syscall(SYS_getsid, 0) < 0 ? errno : 0);
	say("getsid_again", syscall(SYS_getsid, 0) < 0 ? errno : 0);
	say("ptrace", syscall(SYS_ptrace, PTRACE_PEEKDATA, getpid(), 0, 0) < 0 ? errno : 0);
	say("unshare", syscall(SYS_unshare, 0) < 0 ? errno : 0);
	say("inet", try_socket(AF_INET, SOCK_STREAM));
	say("inet6", try_socket(AF_INET6, SOCK_DGRAM));
	say("netlink", try_socket(AF_NETLINK, SOCK_RAW));
	say("packet", try_socket(AF_PACKET, SOCK_RAW));
	say("bind", try_bind());
	say("listen", try_listen(bound));
	say("accept", try_accept(listening, false));
	say("accept4", try_accept(listening, true));
	say("engine_again", try_engine());
}

/* ------------------------------------------------------------------ worker and broker --------- */

/* As the monitor (agentd/monitor/brokers.c); of our user, so that we may kill it.  @return the worker's end. */
static int start_broker(const char *program, pid_t target)
{
	const struct ipc_connect_target m = { .type = IPC_CONNECT_TARGET, .pid = target, .permissive = permissive,
					      .pid_ns = PID_NS };
	int pair[2], pidfd = (int)syscall(SYS_pidfd_open, target, 0);

	if (pidfd < 0 || fd_socketpair(0, pair) < 0)
		die("broker");
	broker_pid = fork();
	if (broker_pid == 0) {
		if (dup2(pair[1], IPC_FD_CONNECT) < 0 || fd_set_cloexec(IPC_FD_CONNECT, false) < 0)
			_exit(1);
		execl(program, program, "--uid", "1000", "--gid", "1000", NULL);
		_exit(1);
	}
	close(pair[1]);
	if (fd_send(pair[0], &m, sizeof(m), &pidfd, 1) < 0)
		die("send");
	return pair[0];
}

static union ipc_connect_message await(int broker, enum ipc_connect_type type)
{
	union ipc_connect_message m = { 0 };
	ssize_t n;

	do {
		n = recv(broker, &m, sizeof(m), 0);
	} while (n > 0 && m.type != type);
	if (n == 0)
		m.type = 0; /* the broker has gone */
	return m;
}

static int claim(int broker, uint32_t what)
{
	const struct ipc_connect_claim m = { .type = IPC_CONNECT_CLAIM, .label = what };
	union ipc_connect_message answer;

	if (fd_send(broker, &m, sizeof(m), NULL, 0) < 0)
		return EPIPE;
	answer = await(broker, IPC_CONNECT_CLAIMED);
	return answer.type ? -answer.claim.status : EPIPE;
}

/* As a worker (agentd/worker/cuda/connect.c). */
static void enter_sandbox(int broker)
{
	const struct ipc_connect_plain m = { .type = IPC_CONNECT_WORKER };
	int notify, memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);

	if (memory < 0 || privileges_become(USER, USER) < 0 || sandbox_worker_driver(true, permissive, &notify) < 0)
		die("sandbox");
	if (fd_send(broker, &m, sizeof(m), (const int[]){ notify, memory }, 2) < 0)
		die("send");
	close(notify);
	close(memory);
	if (await(broker, IPC_CONNECT_READY).type != IPC_CONNECT_READY)
		die("no answer");
}

static void listen_as_squatter(void)
{
	const struct address at = abstract(IPC_CONNECT_NAME, label);

	listen_on(&at);
}

static void try_many_claims(int broker)
{
	for (uint32_t i = 0; i <= IPC_CONNECT_CLAIMS_MAX; i++)
		say("claim", claim(broker, label + 100 + i));
	say("engine", try_engine());
}

static int play(const char *program, const char *what, pid_t target, int bound, int listening)
{
	int broker;
	bool held = strcmp(what, "held") == 0, squatted = strcmp(what, "squatted") == 0;

	permissive = strcmp(what, "permissive") == 0;
	/* As all that the monitor starts. */
	if (sandbox_agent() < 0)
		die("sandbox");
	broker = start_broker(program, target);
	if (held)
		start_listener(listen_as_squatter);
	enter_sandbox(broker);
	if (strcmp(what, "claims") == 0) {
		try_many_claims(broker);
		return 0;
	}
	say("claim", claim(broker, label));
	if (squatted || held) {
		if (squatted)
			let_target_listen();
		say("engine", try_engine());
		if (squatted)
			say("failed", -await(broker, IPC_CONNECT_FAILED).claim.status);
		return 0;
	}
	let_target_listen();
	if (strcmp(what, "dead") == 0) {
		kill(broker_pid, SIGKILL);
		waitpid(broker_pid, NULL, 0);
		say("engine", try_engine());
		return 0;
	}
	if (stuck_page) {
		say("stuck", try_stuck_address());
		say("engine", try_engine());
		return 0;
	}
	try_library();
	try_all(bound, listening);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";
	struct address bound_at, listening_at;
	int bound, listening;
	pid_t target;

	if (argc < 2)
		return 2;
	if (argc == 4)
		map_stuck_page(argv[3]);
	alarm(60);
	signal(SIGPIPE, SIG_IGN);
	/* Nobody else's. */
	label = 0x40000000u + (uint32_t)getpid() * 1000;
	snprintf(place, sizeof(place), "/tmp/gpu-agent-connect.%d", (int)getpid());
	target = target_pid = start_target();
	start_listener(listen_as_others);
	bound_at = abstract("gpu-agent-test-bound-%u", label);
	listening_at = abstract("gpu-agent-test-listening-%u", label);
	bound = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(bound, (struct sockaddr *)&bound_at.a, bound_at.size) < 0)
		die("bind");
	listening = listen_on(&listening_at);
	fd_set_nonblock(listening, true);
	if (strcmp(argv[1], "none") == 0) {
		let_target_listen();
		try_all(bound, listening);
	} else if (strcmp(what, "squatted") == 0) {
		/* Whoever listens is not the process that the monitor has named. */
		pid_t bystander = fork();

		if (bystander == 0) {
			be_a_user();
			pause();
		}
		play(argv[1], what, bystander, bound, listening);
	} else {
		play(argv[1], what, target, bound, listening);
	}
	unlink(place);
	return 0;
}
