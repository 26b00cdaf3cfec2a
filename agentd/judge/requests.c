/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/audit.h"
#include "agentd/judge/judge.h"
#include "agentd/privileges.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"

/*
 * Do what a message asks for.
 * @param size  Of the message.
 * @param fds   What came along, -1 behind the last; what is left there is closed.  Where they were
 *              lost, because no descriptor was free, all are -1.
 * @return 0, -EPROTO.
 */
typedef int request_fn(struct judge *j, const void *msg, size_t size, int fds[]);

struct request {
	uint32_t type;
	size_t size;
	size_t fds_min, fds_max;
	request_fn *take;
};

static const struct request *find_request(const struct request *table, size_t n, uint32_t type)
{
	for (size_t i = 0; i < n; i++)
		if (table[i].type == type)
			return &table[i];
	return NULL;
}

/* ------------------------------------------------------------------ of the frontend ---------- */

static int lies(const char *what, uint64_t client)
{
	audit_lie(what, client);
	return -EPROTO;
}

/* An adapter gets the socket of its client, and no other; nobody else gets any. */
static bool has_its_fds(const struct ipc_start *m, const struct client *client, const int fds[])
{
	if (m->kind != IPC_KIND_ADAPTER)
		return fds[0] < 0;
	/* All were lost, for want of a free descriptor. */
	if (fds[0] < 0)
		return true;
	return clients_is_socket_of(client, fds[0]) && fd_is_memfd(fds[1]);
}

static int on_start(struct judge *j, const void *msg, size_t size, int fds[])
{
	const struct ipc_start *m = msg;
	struct client *client = clients_find(&j->clients, m->client);

	if (!client)
		return lies("start", m->client);
	if (!has_its_fds(m, client, fds))
		return lies("socket", m->client);
	return j->is_stopping ? 0 : candidates_start(j, m, client, fds);
}

static int on_clients(struct judge *j, const void *msg, size_t size, int fds[])
{
	const struct ipc_clients *m = msg;

	return clients_told(&j->clients, m) ? 0 : lies("close", m->n_closed ? m->closed[0] : 0);
}

static int on_idle(struct judge *j, const struct ipc_note *m)
{
	struct ipc_limits serve_on = j->limits;

	/* It has said so before. */
	if (j->is_front_idle)
		return 0;
	/* Somebody may have connected meanwhile. */
	if (j->clients.n || j->clients.n_untold) {
		serve_on.serve_on = 1;
		judge_tell_front(j, &serve_on, sizeof(serve_on), -1);
		return 0;
	}
	j->is_front_idle = true;
	judge_tell_manager(j, m, sizeof(*m), -1);
	return 0;
}

static int on_note(struct judge *j, const void *msg, size_t size, int fds[])
{
	const struct ipc_note *m = msg;

	switch (m->kind) {
	case IPC_NOTE_IDLE:
		return on_idle(j, m);
	case IPC_NOTE_DROPPED:
		closers_go(&j->closers);
		return 0;
	case IPC_NOTE_READY:
		j->front_serves = true;
		break;
	case IPC_NOTE_KILL:
		judge_tell_monitor(j, m, sizeof(*m), -1);
		return 0;
	case IPC_NOTE_RELEASE: /* Nobody would be named. */
		return -EPROTO;
	}
	judge_tell_manager(j, m, sizeof(*m), -1);
	return 0;
}

/*
 * The name of whoever may control the process of that session, or NULL.  That is no lie of the frontend's: the
 * client may have lost the right a moment ago.
 */
static const struct name *find_controller(const struct judge *j, uint64_t client, uint32_t worker)
{
	const struct name *name = names_find(&j->names, client, worker);

	return name && name->rights >= IPC_RIGHT_CONTROL ? name : NULL;
}

static int on_release(struct judge *j, const void *msg, size_t size, int fds[])
{
	const struct ipc_release *m = msg;
	const struct ipc_note note = { .type = IPC_NOTE, .kind = IPC_NOTE_RELEASE, .value = m->worker };
	const struct name *name = find_controller(j, m->client, m->worker);

	if (!clients_find(&j->clients, m->client))
		return lies("release", m->client);
	if (!name)
		return 0;
	uses_release(&j->uses, name, clock_now_ns());
	judge_tell_manager(j, &note, sizeof(note), -1);
	return 0;
}

static int on_taken(struct judge *j, const void *msg, size_t size, int fds[])
{
	const struct ipc_taken *m = msg;
	const struct name *name = find_controller(j, m->client, m->worker);
	struct judge_used q = { .worker = m->worker,
				.used = { .kind = m->is_forced ? IPC_USE_TAKEN_FORCED : IPC_USE_TAKEN_SILENT,
					  .client = m->client, .from = m->from, .idle_ms = m->idle_ms,
					  .method = "session.control" } };

	if (!name)
		return 0;
	q.session = name->session;
	q.pid = (uint32_t)name->target;
	q.uid = name->target_uid;
	uses_record(&j->uses, &j->names, &j->clients, &q, clock_now_ns());
	return 0;
}

static int on_hooks(struct judge *j, const void *msg, size_t size, int fds[])
{
	struct judge_hooks m = { .type = JUDGE_HOOKS, .asked = *(const struct ipc_hooks *)msg };
	struct client *client = clients_find(&j->clients, m.asked.client);
	struct ipc_client now;

	if (!client)
		return lies("hooks", m.asked.client);
	if (fds[0] >= 0 && !fd_is_memfd(fds[0]))
		return -EPROTO;
	if (clients_check(client, &now))
		judge_tell_client(j, &now);
	m.client = judge_identity(&client->peer);
	judge_tell_manager(j, &m, sizeof(m), fds[0]);
	return 0;
}

static bool is_unix_socket(int fd)
{
	int domain = 0;
	socklen_t size = sizeof(domain);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

/* The frontend keeps its own copy until the answer has come, so that ours is not the last. */
static int on_drop(struct judge *j, const void *msg, size_t size, int fds[])
{
	const struct ipc_drop *m = msg;
	struct ipc_closer answer = { .type = IPC_CLOSER, .kind = IPC_CLOSER_FAILED, .uid = m->uid };

	/* A copy of another file than a Unix socket may block when it is closed here. */
	if (fds[0] >= 0 && !is_unix_socket(fds[0]))
		return -EPROTO;
	if (fds[0] >= 0 && closers_start(&j->closers, fds[0], m->uid) == 0) {
		fds[0] = -1;
		answer.kind = IPC_CLOSER_HOLDS;
	}
	judge_tell_front(j, &answer, sizeof(answer), -1);
	return 0;
}

/* What is not here breaks the protocol: whoever sends it is killed. */
static const struct request of_front[] = {
	{ IPC_START, sizeof(struct ipc_start), 0, 2, on_start },
	{ IPC_NOTE, sizeof(struct ipc_note), 0, 0, on_note },
	{ IPC_HOOKS, sizeof(struct ipc_hooks), 0, 1, on_hooks },
	{ IPC_DROP, sizeof(struct ipc_drop), 1, 1, on_drop },
	{ IPC_CLIENTS, sizeof(struct ipc_clients), 0, 0, on_clients },
	{ IPC_RELEASE, sizeof(struct ipc_release), 0, 0, on_release },
	{ IPC_TAKEN, sizeof(struct ipc_taken), 0, 0, on_taken },
};

/* Is that what the message needs?  Of one whose descriptors are lost the size is, too. */
static bool fits(const struct request *r, ssize_t size, size_t n_fds)
{
	if (size == -EMFILE)
		return r->fds_max > 0;
	return (size_t)size == r->size && n_fds >= r->fds_min && n_fds <= r->fds_max;
}

static void close_foreign(int *fds, size_t *n_fds)
{
	while (*n_fds) {
		--*n_fds;
		closers_close_foreign(TAKE_FD(fds[*n_fds]));
	}
}

int requests_read_front(struct judge *j)
{
	int fds[FD_RIGHTS_MAX] = { -1, -1, -1, -1 }, r = -EPROTO;
	union {
		uint32_t type;
		struct ipc_start start;
		struct ipc_hooks hooks;
		struct ipc_note note;
		struct ipc_drop drop;
		struct ipc_clients clients;
		struct ipc_release release;
		struct ipc_taken taken;
	} m;
	const struct request *request;
	size_t n_fds;
	ssize_t n;

	memset(&m, 0, sizeof(m));
	n = fd_recv_foreign(j->front.sock, &m, sizeof(m), fds, &n_fds);
	if (n < 0)
		close_foreign(fds, &n_fds);
	if (n <= 0 && n != -EMFILE)
		return n == 0 ? -EPIPE : (int)n;
	request = find_request(of_front, ARRAY_SIZE(of_front), m.type);
	if (request && fits(request, n, n_fds))
		r = request->take(j, &m, request->size, fds);
	close_foreign(fds, &n_fds);
	return r;
}

/* ------------------------------------------------------------------ of the manager and the monitor */

static int on_rules(struct judge *j, const void *msg, size_t size, int fds[])
{
	const struct judge_rules *m = msg;

	j->groups = m->groups;
	j->closers.uid = m->uid;
	j->closers.gid = m->gid;
	clients_judge(&j->clients, &j->groups, judge_tell_client, j);
	return 0;
}

static int on_limits(struct judge *j, const void *msg, size_t size, int fds[])
{
	j->limits = *(const struct ipc_limits *)msg;
	if (j->limits.serve_on)
		j->is_front_idle = false;
	j->limits.serve_on = 0;
	judge_tell_front(j, msg, size, -1);
	return 0;
}

static int on_started(struct judge *j, const void *msg, size_t size, int fds[])
{
	candidates_answered(j, msg, fds[0]);
	return 0;
}

/* The rules process holds the process, and sees whether it was still there when the answer came. */
static void read_facts(pid_t pid, struct rules_facts *ret, char **ret_cgroup, size_t *ret_size)
{
	auto_lower bool raised = privileges_raise();
	struct access_target facts;
	char path[64];
	ssize_t n;

	ret->status = access_target_read(pid, &facts);
	if (ret->status < 0)
		return;
	ret->uid = facts.uids[0];
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, ret->exe, sizeof(ret->exe) - 1);
	ret->exe[n > 0 ? n : 0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	ret->has_cgroup = fd_read_file(path, JUDGE_CGROUP_MAX - 1, ret_cgroup, ret_size) == 0;
}

static int on_read(struct judge *j, const void *msg, size_t size, int fds[])
{
	const struct judge_read *m = msg;
	/* Without memory the agent would end with all sessions. */
	static struct judge_facts facts;
	struct judge_facts *a = &facts;
	auto_free char *cgroup = NULL;
	size_t used = 0;

	*a = (struct judge_facts){ .type = JUDGE_FACTS, .run = m->run };
	read_facts((pid_t)m->pid, &a->facts, &cgroup, &used);
	if (a->facts.has_cgroup)
		memcpy(a->cgroup, cgroup, ++used);
	judge_tell_manager(j, a, offsetof(struct judge_facts, cgroup) + used, -1);
	return 0;
}

static int on_watch(struct judge *j, const void *msg, size_t size, int fds[])
{
	struct judge_watch m = *(const struct judge_watch *)msg;
	auto_close int pidfd = candidates_judge_for_rule(&m);

	m.type = JUDGE_WATCH;
	judge_tell_monitor(j, &m, sizeof(m), pidfd);
	return 0;
}

static int on_used(struct judge *j, const void *msg, size_t size, int fds[])
{
	uses_record(&j->uses, &j->names, &j->clients, msg, clock_now_ns());
	return 0;
}

static int on_record_used(struct judge *j, const void *msg, size_t size, int fds[])
{
	uses_record_store(&j->uses, &j->names, msg, clock_now_ns());
	return 0;
}

static int on_ended(struct judge *j, const void *msg, size_t size, int fds[])
{
	const struct ipc_ended *m = msg;

	names_worker_ended(&j->names, m->worker);
	judge_tell_front(j, m, sizeof(*m), -1);
	return 0;
}

static int on_stop(struct judge *j, const void *msg, size_t size, int fds[])
{
	j->is_stopping = true;
	candidates_cancel(j);
	return 0;
}

/* What is in neither table is for the frontend. */
static const struct request of_manager[] = {
	{ JUDGE_RULES, sizeof(struct judge_rules), 0, 0, on_rules },
	{ JUDGE_READ, sizeof(struct judge_read), 0, 0, on_read },
	{ JUDGE_WATCH_ASKED, sizeof(struct judge_watch), 0, 0, on_watch },
	{ JUDGE_STOP, sizeof(struct judge_stop), 0, 0, on_stop },
	{ IPC_LIMITS, sizeof(struct ipc_limits), 0, 0, on_limits },
};

static const struct request of_monitor[] = {
	{ JUDGE_USED, sizeof(struct judge_used), 0, 0, on_used },
	{ JUDGE_RECORD_USED, sizeof(struct judge_record_used), 0, 0, on_record_used },
	{ IPC_ENDED, sizeof(struct ipc_ended), 0, 0, on_ended },
	{ IPC_STARTED, sizeof(struct ipc_started), 0, 1, on_started },
};

/* The size of a message that brought a descriptor, and lost it for want of a free one. */
static size_t size_without_fd(uint32_t type)
{
	return type == IPC_STARTED ? sizeof(struct ipc_started) :
	       type == IPC_WATCH   ? sizeof(struct ipc_watch) : sizeof(struct ipc_hooked);
}

/* @param table  What is for this process. */
static int read_trusted(struct judge *j, int sock, const struct request *table, size_t n_table)
{
	int fds[FD_MESSAGE_MAX] = { -1, -1, -1, -1 }, r = -EPROTO;
	union {
		uint32_t type;
		struct judge_watch watch;
		char bytes[1024];
	} m;
	const struct request *request;
	size_t n_fds;
	ssize_t n;

	memset(&m, 0, sizeof(m));
	n = fd_recv(sock, &m, sizeof(m), fds, &n_fds);
	if (n == -EMFILE)
		n = (ssize_t)size_without_fd(m.type);
	if (n <= 0)
		return n == 0 ? -EPIPE : (int)n;
	request = find_request(table, n_table, m.type);
	if (!request) {
		judge_tell_front(j, &m, (size_t)n, fds[0]);
		r = 0;
	} else if (fits(request, n, n_fds)) {
		r = request->take(j, &m, (size_t)n, fds);
	}
	/* What they send is their own, or a memory file. */
	for (size_t i = 0; i < n_fds; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return r;
}

int requests_read_manager(struct judge *j)
{
	return read_trusted(j, j->manager.sock, of_manager, ARRAY_SIZE(of_manager));
}

int requests_read_monitor(struct judge *j)
{
	return read_trusted(j, j->monitor.sock, of_monitor, ARRAY_SIZE(of_monitor));
}
