/* SPDX-License-Identifier: MIT */
#include "agentd/monitor/brokers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/ipc/connect.h"
#include "agentd/privileges.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"

/* ------------------------------------------------------------------ a service manager's ------- */

/* @return 0, -ENOENT: this agent has no such socket; -errno. */
static int make_address(const char *socket, struct sockaddr_un *ret)
{
	const char *slash = strrchr(socket, '/');
	int n = snprintf(ret->sun_path, sizeof(ret->sun_path), "%.*s/" IPC_CONNECT_SOCKET,
			 slash ? (int)(slash - socket) : 0, socket);

	ret->sun_family = AF_UNIX;
	return (size_t)n < sizeof(ret->sun_path) ? 0 : -ENOENT;
}

static int connect_service(const struct workers *w, int *ret)
{
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;
	int r = fd < 0 ? -errno : make_address(w->setup.config->socket, &address);

	if (r == 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		r = -errno;
	/* Who made the socket gets descriptors from us. */
	if (r == 0)
		r = privileges_check_peer(fd);
	if (r == 0)
		*ret = TAKE_FD(fd);
	return r;
}

/* ------------------------------------------------------------------ a child ------------------- */

static void broker_exec(const struct workers *w, const void *data, int guard)
{
	static const int to[] = { IPC_FD_CONNECT };
	const int *channel = data;
	char uid[12], gid[12];
	const char *argv[] = { w->setup.programs->path[PROGRAM_CONNECT], "--uid", uid, "--gid", gid, NULL, NULL };

	snprintf(uid, sizeof(uid), "%u", w->setup.store_uid);
	snprintf(gid, sizeof(gid), "%u", w->setup.store_gid);
	if (w->setup.verbose)
		argv[5] = "--verbose";
	child_place_fds(channel, to, ARRAY_SIZE(to));
	child_exec(w->setup.programs->path[PROGRAM_CONNECT], argv, 0);
}

static int fork_broker(struct workers *w, const struct worker *worker, int *ret)
{
	const struct worker like = { .kind = IPC_KIND_CONNECT, .owner = worker->owner };
	auto_close int ours = -1, theirs = -1;
	struct worker *k;
	int pair[2], r = fd_socketpair(SOCK_NONBLOCK, pair);

	if (r < 0)
		return r;
	ours = pair[0];
	theirs = pair[1];
	r = workers_fork(w, &like, 0, broker_exec, &theirs, &k);
	if (r < 0)
		return r;
	/* It ends with the worker, and waits for nobody else without a limit. */
	workers_disarm(k);
	*ret = TAKE_FD(ours);
	return 0;
}

/* ------------------------------------------------------------------ both ---------------------- */

/* The worker gets the connection after this, and can say nothing else about the target. */
static int introduce(const struct workers *w, const struct worker *worker, int broker)
{
	struct ipc_connect_target m = { .type = IPC_CONNECT_TARGET,
					.pid = worker->target,
					.permissive = w->setup.permissive };
	auto_lower bool raised = privileges_raise();
	char path[40];
	auto_close int net = -1;
	struct stat st;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)worker->target);
	if (stat(path, &st) == 0)
		m.pid_ns = st.st_ino;
	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)worker->target);
	net = open(path, O_RDONLY | O_CLOEXEC);
	n = fd_send(broker, &m, sizeof(m), (const int[]){ worker->target_pidfd, net }, net < 0 ? 1 : 2);
	return n < 0 ? (int)n : 0;
}

int brokers_start(struct workers *w, struct worker *worker, int reply)
{
	auto_close int broker = -1;
	int r;

	if (worker->has_broker)
		return -EPROTO;
	worker->has_broker = true;
	r = connect_service(w, &broker);
	if (r == -ENOENT)
		r = fork_broker(w, worker, &broker);
	if (r == 0)
		r = introduce(w, worker, broker);
	if (r == 0)
		r = (int)fd_send_now(reply, "", 1, &broker, 1);
	if (r < 0)
		log_warning("no connect broker for process %d: %s", (int)worker->target, strerror(-r));
	return 0;
}
