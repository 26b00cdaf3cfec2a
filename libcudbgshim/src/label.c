/* SPDX-License-Identifier: MIT */
/*
 * The label of a session: a number in the name of the socket that the engine in the target listens
 * on.  The engine asks nobody who connects, and anybody may have taken a name that can be guessed.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "session.h"

#define TRIES 5

/* The engine prints it as a signed number in some places. */
static int draw(uint32_t *ret)
{
	uint32_t n = 0;

	while (!n) {
		if (getrandom(&n, sizeof(n), 0) != sizeof(n))
			return -errno;
		n &= INT32_MAX;
	}
	*ret = n;
	return 0;
}

/* A socket that cannot be bound tells of names that are taken but not listened on, too. */
static int claim_here(uint32_t label)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, CUDBGSHIM_SOCKET_NAME, label);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 || bind(fd, (const struct sockaddr *)&a, size) < 0 ? -errno : 0;
}

static int claim(const struct cudbgshim_session *s, uint32_t label)
{
	const struct cudbgshim_connector *c = s->o.connector;

	return c ? c->claim(c->user, label) : claim_here(label);
}

int label_fail(struct cudbgshim_session *s, int rc)
{
	if (rc == -EADDRINUSE)
		return session_fail(s, CUDBGSHIM_OUTCOME_NAME, rc, 0,
				    "another user holds the name of the debug engine's socket");
	if (rc == -ENOTCONN)
		return session_fail(s, CUDBGSHIM_OUTCOME_CONNECT, rc, 0, "the connect broker is not running");
	if (rc == -ETIMEDOUT)
		return session_fail(s, CUDBGSHIM_OUTCOME_TIMEOUT, rc, 0, "the connect broker does not answer");
	return session_fail(s, CUDBGSHIM_OUTCOME_API, rc, 0,
			    "the debug engine in process %d cannot be connected to: %s", s->o.pid,
			    strerror(-rc));
}

int label_choose(struct cudbgshim_session *s)
{
	uint32_t label = 0;
	int rc = -EADDRINUSE;

	if (s->o.label)
		return 0;
	for (unsigned i = 0; i < TRIES && rc == -EADDRINUSE; i++) {
		rc = draw(&label);
		if (rc == 0)
			rc = claim(s, label);
	}
	if (rc < 0)
		return label_fail(s, rc);
	s->o.label = label;
	return 0;
}

static bool is_where_we_connect(const struct cudbgshim_session *s, const struct stat *theirs)
{
	const struct cudbgshim_connector *c = s->o.connector;
	struct stat ours;

	if (c)
		return c->net_dev == theirs->st_dev && c->net_ino == theirs->st_ino;
	return stat("/proc/self/ns/net", &ours) < 0 ||
	       (ours.st_dev == theirs->st_dev && ours.st_ino == theirs->st_ino);
}

/* The name is one of the target's network namespace. */
int label_check_namespace(struct cudbgshim_session *s)
{
	const struct cudbgshim_tracer *t = s->o.tracer;
	auto_close int fd = t->network(t->ctx, s->o.proc_fd);
	struct stat theirs;

	/* Where it cannot be looked at, the connection will tell. */
	if (fd < 0 || fstat(fd, &theirs) < 0 || is_where_we_connect(s, &theirs))
		return 0;
	return session_fail(s, CUDBGSHIM_OUTCOME_NAMESPACE, -EHOSTUNREACH, 0,
			    "the debug engine of process %d would listen in another network namespace",
			    s->o.pid);
}
