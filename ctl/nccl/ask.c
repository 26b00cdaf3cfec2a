/* SPDX-License-Identifier: MIT */
#include "ctl/nccl/ask.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "rpc_gen.h"

#define PIECE 65536
/* Bytes of a line that is no report; NCCL's longest is shorter. */
#define LINE_MAX_BYTES 256
#define PROTOCOL       "2"
/* Seconds that NCCL waits for ranks before it counts them as unresponsive: less than we wait for it. */
#define RANKS_WAIT "1"

/* A connection, and all that has come. */
struct asked {
	int fd;
	uint64_t deadline_ns;
	struct out *text;
	size_t taken; /* Bytes of it that were lines. */
	struct agent_err *err;
};

static int fail(struct agent_err *err, int e, const char *what)
{
	return agent_err_set(err, RPC_ERROR_FAILED, -e, "ask NCCL", NULL, "%s", what);
}

static int fail_errno(struct agent_err *err, int e, const char *what)
{
	return agent_err_set(err, RPC_ERROR_FAILED, -e, "ask NCCL", NULL, "%s: %s", what, strerror(-e));
}

/* ------------------------------------------------------------------ sockets ------------------ */

static bool is_same_address(const struct sockaddr *have, const struct sockaddr_storage *at)
{
	if (!have || have->sa_family != at->ss_family)
		return false;
	if (at->ss_family == AF_INET)
		return ((const struct sockaddr_in *)have)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)at)->sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)have)->sin6_addr,
				  &((const struct sockaddr_in6 *)at)->sin6_addr);
}

static bool is_loopback(const struct sockaddr_storage *at)
{
	if (at->ss_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)at)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)at)->sin6_addr);
}

/*
 * Only an address that an interface has is asked: the question leaves the machine for none.  bind() would not tell: it
 * takes any address where ip_nonlocal_bind is set (ip-sysctl), or where no interface has one (inet_addr_type()).
 * @return 0, -EADDRNOTAVAIL, other -errno.
 */
static int check_interfaces(const struct sockaddr_storage *at)
{
	struct ifaddrs *list = NULL;
	int r = -EADDRNOTAVAIL;

	if (is_loopback(at))
		return 0;
	if (getifaddrs(&list) < 0)
		return -errno;
	for (const struct ifaddrs *i = list; i && r < 0; i = i->ifa_next)
		if (is_same_address(i->ifa_addr, at))
			r = 0;
	freeifaddrs(list);
	return r;
}

static int local_socket(const struct sockaddr_storage *at)
{
	int r = check_interfaces(at), fd;

	if (r < 0)
		return r;
	fd = socket(at->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* A socket stays in the namespace in which it was made, so that the program leaves that again at once. */
static int socket_in(int net_fd, const struct sockaddr_storage *at)
{
	auto_close int own = net_fd < 0 ? -1 : open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), fd = -1;

	if (net_fd < 0)
		return local_socket(at);
	if (own < 0 || setns(net_fd, CLONE_NEWNET) < 0)
		return -errno;
	fd = local_socket(at);
	if (setns(own, CLONE_NEWNET) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static socklen_t size_of(const struct sockaddr_storage *at)
{
	return at->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

bool nccl_is_here(const struct nccl_place *p, const char *host)
{
	char text[NCCL_TEXT_MAX];
	struct nccl_address a;
	auto_close int fd = -1;
	int n = snprintf(text, sizeof(text), strchr(host, ':') ? "[%s]:1" : "%s:1", host);

	if (n < 0 || (size_t)n >= sizeof(text) || nccl_address_parse(text, (size_t)n, &a) < 0)
		return false;
	fd = socket_in(p->net_fd, &a.list[0]);
	return fd >= 0;
}

/* @return 0, -ETIMEDOUT, other -errno. */
static int wait_for(int fd, short events, uint64_t deadline_ns)
{
	struct pollfd p = { .fd = fd, .events = events };
	int left, r;

	do {
		left = clock_left_ms(deadline_ns);
		r = left ? poll(&p, 1, left) : 0;
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r ? 0 : -ETIMEDOUT;
}

static int finish_connect(int fd, uint64_t deadline_ns)
{
	int r = wait_for(fd, POLLOUT, deadline_ns), e = 0;
	socklen_t n = sizeof(e);

	if (r < 0)
		return r;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &n) < 0 ? -errno : -e;
}

/* @return the socket, -ECONNREFUSED (nobody is there), other -errno. */
static int connect_to(const struct nccl_place *p, const struct sockaddr_storage *at, uint64_t deadline_ns)
{
	auto_close int fd = -1;
	int r = socket_in(p->net_fd, at);

	if (r < 0)
		return r;
	fd = r;
	r = connect(fd, (const struct sockaddr *)at, size_of(at)) < 0 ? -errno : 0;
	if (r == -EINPROGRESS)
		r = finish_connect(fd, deadline_ns);
	return r < 0 ? r : TAKE_FD(fd);
}

static int connect_any(const struct nccl_place *p, uint64_t deadline_ns, struct agent_err *err)
{
	int r = -ECONNREFUSED, first = 0;

	for (size_t i = 0; i < p->address.n; i++) {
		r = connect_to(p, &p->address.list[i], deadline_ns);
		if (r >= 0)
			return r;
		/* What an older kernel or a container has not, as IPv6, is not why. */
		first = first ? first : r;
	}
	if (first == -EPERM && p->net_fd >= 0)
		return fail(err, first, "the process has another network namespace, which only root may enter");
	if (first == -EADDRNOTAVAIL)
		return agent_err_set(err, RPC_ERROR_FAILED, -first, "ask NCCL", NULL,
				     "%s is no address of this machine in the network namespace of the process", p->address.text);
	if (first == -ECONNREFUSED)
		return agent_err_set(err, RPC_ERROR_FAILED, -first, "ask NCCL", NULL,
				     "nobody answers at %s: NCCL has it from 2.24 on, once a communicator was made", p->address.text);
	return agent_err_set(err, RPC_ERROR_FAILED, -first, "ask NCCL", NULL, "%s: %s", p->address.text, strerror(-first));
}

/* ------------------------------------------------------------------ what is said ------------- */

static int too_late(struct agent_err *err)
{
	return fail(err, -ETIMEDOUT, "it did not answer in time");
}

/* @return bytes that have come, 0 at the end, negative with err. */
static int receive(struct asked *a)
{
	char piece[PIECE];
	ssize_t n;
	int r;

	do {
		r = wait_for(a->fd, POLLIN, a->deadline_ns);
		if (r == -ETIMEDOUT)
			return too_late(a->err);
		n = r < 0 ? r : recv(a->fd, piece, sizeof(piece), 0);
		n = r == 0 && n < 0 ? -errno : n;
	} while (n == -EAGAIN || n == -EINTR);
	if (n < 0)
		return fail_errno(a->err, (int)n, "the connection broke");
	out_bytes(a->text, piece, (size_t)n);
	if (out_error(a->text) == -EFBIG)
		return fail(a->err, -EFBIG, "the answer is larger than 16 MiB");
	return out_error(a->text) < 0 ? agent_err_no_memory(a->err, "ask NCCL") : (int)n;
}

static int send_line(struct asked *a, const char *line)
{
	const size_t size = strlen(line);
	size_t sent = 0;

	while (sent < size) {
		int r = wait_for(a->fd, POLLOUT, a->deadline_ns);
		ssize_t n;

		if (r == -ETIMEDOUT)
			return too_late(a->err);
		n = r < 0 ? r : send(a->fd, line + sent, size - sent, MSG_NOSIGNAL);
		n = r == 0 && n < 0 ? -errno : n;
		if (n < 0 && n != -EAGAIN && n != -EINTR)
			return fail_errno(a->err, (int)n, "the connection broke");
		sent += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* @param ret  LINE_MAX_BYTES. */
static int read_line(struct asked *a, char *ret)
{
	for (;;) {
		const char *from = a->text->data ? a->text->data + a->taken : "";
		const size_t n = a->text->size - a->taken;
		const char *end = memchr(from, '\n', n);
		int r;

		if (end && (size_t)(end - from) < LINE_MAX_BYTES) {
			memcpy(ret, from, (size_t)(end - from));
			ret[end - from] = 0;
			a->taken += (size_t)(end - from) + 1;
			return 0;
		}
		if (end || n >= LINE_MAX_BYTES)
			return fail(a->err, -EPROTO, "what answers is not NCCL's status socket");
		r = receive(a);
		if (r <= 0)
			return r < 0 ? r : fail(a->err, -EPROTO, "what answers has closed the connection");
	}
}

static int exchange(struct asked *a, const char *line, char *ret)
{
	int r = send_line(a, line);

	return r < 0 ? r : read_line(a, ret);
}

static int greet(struct asked *a)
{
	static const char server[] = "SERVER PROTOCOL ";
	char answer[LINE_MAX_BYTES];
	int r = exchange(a, "CLIENT PROTOCOL " PROTOCOL "\n", answer);

	if (r < 0)
		return r;
	if (strncasecmp(answer, server, strlen(server)) != 0)
		return fail(a->err, -EPROTO, "what answers is not NCCL's status socket");
	return strcmp(answer + strlen(server), PROTOCOL) ? fail(a->err, -EPROTO, "it speaks another protocol than 2") : 0;
}

static int ask(struct asked *a)
{
	char answer[LINE_MAX_BYTES];
	int r = greet(a);

	if (r == 0)
		r = exchange(a, "TIMEOUT " RANKS_WAIT "\n", answer);
	if (r == 0 && strcasecmp(answer, "OK") != 0)
		r = fail(a->err, -EPROTO, "it refuses to be asked with a time limit");
	if (r == 0)
		r = exchange(a, "SET FORMAT json\n", answer);
	if (r == 0 && strcasecmp(answer, "OK") != 0)
		r = fail(a->err, -EPROTO, "this NCCL is older than 2.28.7: it has no JSON, and its text is not read");
	if (r == 0)
		r = send_line(a, "VERBOSE STATUS\n");
	while (r == 0) {
		r = receive(a);
		if (r == 0)
			return 0;
		r = r < 0 ? r : 0;
	}
	return r;
}

int nccl_ask(const struct nccl_place *p, uint64_t deadline_ns, struct out *ret, struct agent_err *err)
{
	struct asked a = { .deadline_ns = deadline_ns, .text = ret, .err = err };
	auto_close int fd = connect_any(p, deadline_ns, err);
	int r;

	if (fd < 0)
		return fd;
	a.fd = fd;
	out_init(ret, NCCL_ANSWER_MAX);
	r = ask(&a);
	if (r < 0)
		return r;
	memmove(ret->data, ret->data + a.taken, ret->size - a.taken);
	ret->size -= a.taken;
	return 0;
}
