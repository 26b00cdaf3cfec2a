/* SPDX-License-Identifier: MIT */
#include "agentd/monitor/authorise.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agentd/audit.h"
#include "agentd/monitor/adapters.h"
#include "agentd/monitor/repairs.h"
#include "agentd/monitor/stores.h"
#include "base/cleanup.h"
#include "base/str.h"

#define INSPECT_PER_USER_MAX 8
#define INSPECT_MAX	     64
#define WATCH_MS	     10000

/* Administrators have a count of their own: a container that root has made counts for root. */
static uint32_t count_of(const struct workers *w, enum ipc_kind kind, const struct ipc_identity *client)
{
	uint32_t n = 0;

	for (const struct worker *i = w->first; i; i = i->next)
		n += i->kind == kind && i->charge == client->charge && i->by_admin == client->admin && !i->producer &&
		     !i->by_rule;
	return n;
}

static bool quota_allows(const struct workers *w, enum ipc_kind kind, const struct ipc_identity *client)
{
	/* An adapter opens one session at most. */
	const bool is_session = kind == IPC_KIND_SESSION || kind == IPC_KIND_ADAPTER;
	const uint32_t of_user = is_session ? w->setup.config->sessions_per_user : INSPECT_PER_USER_MAX;
	uint32_t all = is_session ? w->setup.config->sessions : INSPECT_MAX;

	if (!client->admin && !w->setup.user_mode)
		all = ipc_common_part(all);
	return workers_count(w, kind) < all && count_of(w, kind, client) < of_user;
}

static bool is_being_rescued(const struct workers *w, pid_t target)
{
	return rescues_owe(&w->rescues, target) || repairs_has(w, target) ||
	       undo_record_any_owes(w->setup.records, target);
}

/* Nothing is against it but this process's own affairs.  @return the worker that the target has, or NULL. */
static enum ipc_verdict judge_session(struct workers *w, const struct judge_start *m, int pidfd,
				      struct worker **ret_found)
{
	const pid_t pid = (pid_t)m->start.pid;

	*ret_found = NULL;
	if (workers_is_own(w, pid))
		return IPC_VERDICT_OWN_PROCESS;
	/* It lived when it was judged: alive now means that what the judge says is about it. */
	if (!access_is_alive(pidfd))
		return IPC_VERDICT_NO_PROCESS;
	*ret_found = workers_find_target(w, pid);
	if (*ret_found)
		return IPC_VERDICT_OK;
	/* The session has ended in the meantime. */
	if (m->start.judge)
		return IPC_VERDICT_NO_PROCESS;
	if (is_being_rescued(w, pid))
		return IPC_VERDICT_RESCUE;
	return quota_allows(w, IPC_KIND_SESSION, &m->client) ? IPC_VERDICT_OK : IPC_VERDICT_LIMIT;
}

/* The worker hears of the client, and so does who reads the log.  @return 0, -errno: the worker does not hear it. */
static int let_in(struct worker *k, const struct judge_start *m, bool joined)
{
	const struct audit_client who = { .pid = m->client.pid, .uid = m->client.uid };
	const struct ipc_let_in client = { .type = IPC_LET_IN, .rights = m->target.rights, .client = m->start.client,
					   .uid = m->client.uid, .admin = m->client.admin };
	int r = workers_let_in(k, &client);

	if (r == 0)
		audit_attach(&who, m->start.pid, IPC_VERDICT_OK, joined);
	return r;
}

static void start_session(struct workers *w, const struct judge_start *m, int *take_pidfd, struct ipc_started *ret,
			  int *ret_channel)
{
	struct worker *k;

	if (*take_pidfd < 0) {
		ret->status = -EMFILE;
		return;
	}
	ret->verdict = judge_session(w, m, *take_pidfd, &k);
	ret->rights = m->target.rights;
	ret->target_uid = m->target.uid;
	ret->user_ns = m->client.user_ns;
	memcpy(ret->comm, m->target.comm, sizeof(ret->comm));
	if (ret->verdict != IPC_VERDICT_OK)
		return;
	ret->joined = k != NULL;
	if (!k)
		ret->status = workers_start(w, &m->start, &m->client, take_pidfd, &k, ret_channel);
	if (ret->status < 0)
		return;
	if (!ret->joined)
		k->target_uid = m->target.uid;
	ret->worker = k->id;
	ret->session = k->session;
	/* Who is only judged again was let in before. */
	if (!m->start.judge)
		ret->status = let_in(k, m, ret->joined);
}

/* It reads once, and nobody joins it. */
static void start_host(struct workers *w, const struct judge_start *m, int *take_pidfd, struct ipc_started *ret,
		       int *ret_channel)
{
	const struct audit_client who = { .pid = m->client.pid, .uid = m->client.uid };
	const struct audit_use use = { .method = "host.stacks", .pid = m->start.pid, .uid = m->target.uid, .n = 1 };
	struct worker *k = NULL;

	ret->rights = m->target.rights;
	ret->target_uid = m->target.uid;
	memcpy(ret->comm, m->target.comm, sizeof(ret->comm));
	if (*take_pidfd < 0)
		ret->status = -EMFILE;
	else if (workers_is_own(w, (pid_t)m->start.pid))
		ret->verdict = IPC_VERDICT_OWN_PROCESS;
	else if (!access_is_alive(*take_pidfd))
		ret->verdict = IPC_VERDICT_NO_PROCESS;
	else if (m->start.stops && m->target.rights < IPC_RIGHT_CONTROL)
		ret->verdict = IPC_VERDICT_LOOK_ONLY;
	else if (!quota_allows(w, IPC_KIND_HOST, &m->client))
		ret->verdict = IPC_VERDICT_LIMIT;
	else
		ret->status = workers_start(w, &m->start, &m->client, take_pidfd, &k, ret_channel);
	if (!k)
		return;
	k->target_uid = m->target.uid;
	ret->worker = k->id;
	if (m->target.uid != m->client.uid)
		audit_read(&who, &use);
}

/* A look without a session, the store, or an adapter. */
static void start_other(struct workers *w, const struct judge_start *m, int fds[2], struct ipc_started *ret,
			int *ret_channel)
{
	const enum ipc_kind kind = (enum ipc_kind)m->start.kind;
	int no_pidfd = -1;
	struct worker *k = NULL;

	if (!quota_allows(w, kind, &m->client)) {
		ret->verdict = IPC_VERDICT_LIMIT;
		return;
	}
	ret->rights = kind == IPC_KIND_ADAPTER ? IPC_RIGHT_NONE : IPC_RIGHT_READ;
	if (kind == IPC_KIND_STORE)
		ret->status = stores_start(w, &m->client, &k, ret_channel);
	else if (kind == IPC_KIND_INSPECT)
		ret->status = workers_start(w, &m->start, &m->client, &no_pidfd, &k, ret_channel);
	else
		ret->status = fds[1] < 0 ? -EMFILE : adapters_start(w, &m->client, &fds[0], fds[1], &k, ret_channel);
	ret->worker = k ? k->id : 0;
}

void authorise_start(struct workers *w, const struct judge_start *m, int fds[2], struct ipc_started *ret,
		     int *ret_channel)
{
	*ret = (struct ipc_started){ .type = IPC_STARTED, .request = m->start.request, .verdict = IPC_VERDICT_OK };
	if (m->start.timeout_ms > WORKERS_TIMEOUT_MS_MAX)
		ret->status = -EINVAL;
	else if (m->start.kind == IPC_KIND_SESSION)
		start_session(w, m, &fds[0], ret, ret_channel);
	else if (m->start.kind == IPC_KIND_HOST)
		start_host(w, m, &fds[0], ret, ret_channel);
	else
		start_other(w, m, fds, ret, ret_channel);
	if (ret->status < 0)
		ret->verdict = IPC_VERDICT_FAILED;
}

/* ------------------------------------------------------------------ by rules ----------------- */

static int start_by_rule(struct workers *w, pid_t pid, int pidfd, struct worker **ret, int *ret_channel)
{
	const struct ipc_start start = { .kind = IPC_KIND_SESSION,
					 .pid = (uint32_t)pid,
					 .timeout_ms = WATCH_MS };
	const struct ipc_identity agent = { .pid = getpid(), .uid = getuid(), .gid = getgid(),
					    .admin = getuid() == 0 };
	auto_close int taken = fcntl(pidfd, F_DUPFD_CLOEXEC, 0);
	int r = taken < 0 ? -errno : workers_start(w, &start, &agent, &taken, ret, ret_channel);

	if (r == 0)
		(*ret)->by_rule = true;
	return r;
}

int authorise_watch(struct workers *w, const struct judge_watch *m, int pidfd, struct ipc_watch *ret,
		    int *ret_channel)
{
	const pid_t pid = (pid_t)m->asked.pid;
	struct ipc_rule rule = m->asked.rule;
	struct worker *k;
	int r = 0;

	if (workers_is_own(w, pid))
		return -EPERM;
	if (!access_is_alive(pidfd))
		return -ESRCH;
	k = workers_find_target(w, pid);
	if (!k && is_being_rescued(w, pid))
		return -EBUSY;
	if (!k && workers_count(w, IPC_KIND_SESSION) >= w->setup.config->sessions)
		return -EMFILE;
	if (!k)
		r = start_by_rule(w, pid, pidfd, &k, ret_channel);
	if (r < 0)
		return r;
	k->target_uid = m->target.uid;
	k->target_gid = m->target.gid;
	k->vendor = (enum ipc_vendor)m->asked.vendor;
	*ret = (struct ipc_watch){ .type = IPC_WATCH, .worker = k->id, .session = k->session,
				   .pid = (uint32_t)pid, .target_uid = m->target.uid };
	memcpy(ret->comm, m->target.comm, sizeof(ret->comm));
	rule.type = IPC_RULE;
	rule.name[sizeof(rule.name) - 1] = '\0';
	str_copy(ret->rule, sizeof(ret->rule), rule.name);
	return workers_tell_rule(w, k->id, &rule);
}
