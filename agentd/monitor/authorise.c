/* SPDX-License-Identifier: MIT */
#include "agentd/monitor/authorise.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/monitor/adapters.h"
#include "agentd/monitor/stores.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

#define INSPECT_PER_USER_MAX 8
#define INSPECT_MAX	     64
#define WATCH_MS	     10000
/* Children that ask the kernel at a time; other clients wait for their turn. */
#define ASKING_MAX 16

/* A client who wants a session. */
struct candidate {
	struct candidate *next;
	struct ipc_start start;
	struct client *client; /* Held. */
	int pidfd;	      /* Of the target; -1: it could not be had. */
	struct oracle oracle; /* Its child is 0 as long as it waits for its turn. */
};

/* Administrators have a count of their own: a container that root has made counts for root. */
static uint32_t count_of(const struct workers *w, enum ipc_kind kind, const struct access_peer *peer)
{
	uint32_t n = 0;

	for (const struct worker *i = w->first; i; i = i->next)
		n += i->kind == kind && i->charge == peer->charge && i->by_admin == peer->admin && !i->producer &&
		     !i->by_rule;
	return n;
}

static bool quota_allows(const struct workers *w, enum ipc_kind kind, const struct access_peer *peer)
{
	/* An adapter opens one session at most. */
	const bool is_session = kind == IPC_KIND_SESSION || kind == IPC_KIND_ADAPTER;
	const uint32_t of_user = is_session ? w->setup.config->sessions_per_user : INSPECT_PER_USER_MAX;
	uint32_t all = is_session ? w->setup.config->sessions : INSPECT_MAX;

	if (!peer->admin && !w->setup.user_mode)
		all = clients_common_part(all);
	return workers_count(w, kind) < all && count_of(w, kind, peer) < of_user;
}

/*
 * Judge the client against a target held by pidfd; fills the reply.
 * @param kernel  As access_judge() has it.
 * @return true to go on; false also when the verdict is ACCESS_VERDICT_ASK.
 */
static bool judge(struct workers *w, const struct access_peer *peer, pid_t pid, int pidfd, int kernel,
		  struct ipc_started *ret)
{
	enum ipc_right rights = IPC_RIGHT_NONE;
	enum ipc_verdict verdict;
	struct access_target t;
	int r = access_target_read(pid, &t);

	if (r < 0 && r != -ESRCH) {
		ret->verdict = IPC_VERDICT_FAILED;
		ret->status = r;
		return false;
	}
	if (r < 0)
		verdict = IPC_VERDICT_NO_PROCESS;
	else if (workers_is_own(w, pid))
		verdict = IPC_VERDICT_OWN_PROCESS;
	else
		verdict = access_judge(peer, &t, kernel, &rights);
	/* The pidfd is older than the facts: alive now means that the facts are about it. */
	if (!access_is_alive(pidfd))
		verdict = IPC_VERDICT_NO_PROCESS;
	ret->verdict = verdict;
	if (verdict == IPC_VERDICT_NO_PROCESS)
		return false;
	ret->rights = rights;
	ret->target_uid = t.uids[0];
	memcpy(ret->comm, t.comm, sizeof(ret->comm));
	return ret->verdict == IPC_VERDICT_OK;
}

static bool is_being_rescued(const struct workers *w, pid_t target)
{
	return rescues_owe(&w->rescues, target) || undo_record_any_owes(w->rescue_host.records, target);
}

static void open_candidate(struct candidate *c, struct ipc_started *ret)
{
	c->pidfd = (int)syscall(SYS_pidfd_open, c->start.pid, 0);
	if (c->pidfd >= 0)
		return;
	/* EINVAL: a thread id (ENOENT from Linux 6.9 on). */
	ret->status = errno == ESRCH || errno == EINVAL || errno == ENOENT ? 0 : -errno;
	ret->verdict = ret->status ? IPC_VERDICT_FAILED : IPC_VERDICT_NO_PROCESS;
}

static void start_session(struct workers *w, struct candidate *c, int kernel, struct ipc_started *ret,
			  int *ret_channel)
{
	const struct ipc_start *start = &c->start;
	const struct access_peer *peer = &c->client->peer;
	struct worker *found, *k;

	if (!judge(w, peer, (pid_t)start->pid, c->pidfd, kernel, ret))
		return;
	ret->user_ns = peer->user_ns;
	found = workers_find_target(w, (pid_t)start->pid);
	if (found) {
		ret->worker = found->id;
		ret->session = found->session;
		ret->joined = 1;
		return;
	}
	if (start->judge) {
		/* The session has ended in the meantime. */
		ret->verdict = IPC_VERDICT_NO_PROCESS;
		return;
	}
	if (is_being_rescued(w, (pid_t)start->pid)) {
		ret->verdict = IPC_VERDICT_RESCUE;
		return;
	}
	if (!quota_allows(w, IPC_KIND_SESSION, peer)) {
		ret->verdict = IPC_VERDICT_LIMIT;
		return;
	}
	ret->status = workers_start(w, start, peer, &c->pidfd, &k, ret_channel);
	if (ret->status < 0) {
		ret->verdict = IPC_VERDICT_FAILED;
		return;
	}
	k->target_uid = ret->target_uid;
	ret->worker = k->id;
	ret->session = k->session;
}

/* A look without a session, or the store. */
static void start_inspect(struct workers *w, const struct ipc_start *start,
			  const struct access_peer *peer, struct ipc_started *ret, int *ret_channel)
{
	int no_pidfd = -1;
	struct worker *k = NULL;

	if (!quota_allows(w, (enum ipc_kind)start->kind, peer)) {
		ret->verdict = IPC_VERDICT_LIMIT;
		return;
	}
	ret->rights = IPC_RIGHT_READ;
	ret->status = start->kind == IPC_KIND_STORE ?
			      stores_start(w, peer, &k, ret_channel) :
			      workers_start(w, start, peer, &no_pidfd, &k, ret_channel);
	ret->worker = k ? k->id : 0;
	ret->verdict = ret->status < 0 ? IPC_VERDICT_FAILED : IPC_VERDICT_OK;
}

static void start_adapter(struct workers *w, const struct access_peer *peer, int *take_sock,
			  int early_fd, struct ipc_started *ret, int *ret_channel)
{
	struct worker *k = NULL;

	if (!peer->known || !peer->near_user || !peer->near_pid) {
		/* As the same user out here the adapter could do more than its client can in there. */
		ret->verdict = IPC_VERDICT_USER_NAMESPACE;
		return;
	}
	if (!quota_allows(w, IPC_KIND_ADAPTER, peer)) {
		ret->verdict = IPC_VERDICT_LIMIT;
		return;
	}
	ret->status = early_fd < 0 ? -EMFILE
				   : adapters_start(w, peer, take_sock, early_fd, &k, ret_channel);
	ret->worker = k ? k->id : 0;
	ret->verdict = ret->status < 0 ? IPC_VERDICT_FAILED : IPC_VERDICT_OK;
}

static void audit(const struct ipc_start *start, const struct access_peer *peer,
		  const struct ipc_started *answer)
{
	static const char *const verdicts[IPC_VERDICT_COUNT] = {
		[IPC_VERDICT_OK] = "allowed",
		[IPC_VERDICT_NO_PROCESS] = "no such process",
		[IPC_VERDICT_KERNEL_THREAD] = "kernel thread",
		[IPC_VERDICT_OTHER_USER] = "refused: not the owner",
		[IPC_VERDICT_NOT_DUMPABLE] = "refused: not dumpable",
		[IPC_VERDICT_USER_NAMESPACE] = "refused: other user namespace",
		[IPC_VERDICT_PID_NAMESPACE] = "refused: other pid namespace",
		[IPC_VERDICT_CAPABILITIES] = "refused: more capabilities than the client",
		[IPC_VERDICT_OTHER_GROUP] = "refused: other groups",
		[IPC_VERDICT_KERNEL] = "refused: the kernel would",
		[IPC_VERDICT_UNKNOWN_PEER] = "refused: the client is not known",
		[IPC_VERDICT_OWN_PROCESS] = "refused: the agent itself",
		[IPC_VERDICT_LIMIT] = "refused: limit",
		[IPC_VERDICT_RESCUE] = "refused: being rescued",
		[IPC_VERDICT_FAILED] = "failed",
	};
	char target[12], uid[12], peer_pid[12];
	const struct log_field fields[] = { { "OBJECT_PID", target },
					    { "GPU_AGENT_PEER_UID", uid },
					    { "GPU_AGENT_PEER_PID", peer_pid },
					    { "GPU_AGENT_VERDICT", verdicts[answer->verdict] },
					    { NULL, NULL } };

	if (start->judge && answer->verdict == IPC_VERDICT_OK)
		return;
	snprintf(target, sizeof(target), "%u", start->pid);
	snprintf(uid, sizeof(uid), "%u", peer->uid);
	snprintf(peer_pid, sizeof(peer_pid), "%d", (int)peer->pid);
	log_record(LOG_LEVEL_INFO, LOG_MESSAGE_ATTACH, fields,
		   "attach to %u asked by uid %u (pid %s): %s%s", start->pid, peer->uid, peer_pid,
		   verdicts[answer->verdict], answer->joined ? ", joins the open session" : "");
}

/* Answer that there will be no worker. */
static void refuse(const struct ipc_start *start, int status, struct ipc_started *ret)
{
	*ret = (struct ipc_started){ .type = IPC_STARTED,
				     .request = start->request,
				     .verdict = IPC_VERDICT_FAILED,
				     .status = status };
}

static bool is_sane(const struct ipc_start *start)
{
	return start->timeout_ms <= WORKERS_TIMEOUT_MS_MAX && start->pid <= INT32_MAX &&
	       (!start->judge || start->kind == IPC_KIND_SESSION) &&
	       (start->kind == IPC_KIND_SESSION || start->kind == IPC_KIND_INSPECT ||
		start->kind == IPC_KIND_STORE || start->kind == IPC_KIND_ADAPTER);
}

/* ------------------------------------------------------------------ asking the kernel -------- */

static void free_candidate(struct candidate *c)
{
	clients_release(c->client);
	if (c->pidfd >= 0)
		close(c->pidfd);
	free(c);
}

static void remove_candidate(struct authorise *a, struct candidate *c)
{
	struct candidate **link = &a->first;

	while (*link && *link != c)
		link = &(*link)->next;
	if (*link)
		*link = c->next;
}

static size_t count_asking(const struct authorise *a)
{
	size_t n = 0;

	for (const struct candidate *c = a->first; c; c = c->next)
		n += c->oracle.child != 0;
	return n;
}

/* @return 0: the kernel is being asked; else its answer, or -errno. */
static int begin_asking(struct candidate *c)
{
	struct access_target t;
	int r = access_target_read((pid_t)c->start.pid, &t);

	return r < 0 ? r : access_ask(&c->client->peer, &t, &c->oracle);
}

static void tell(struct authorise *a, const struct ipc_start *start, struct client *client,
		 const struct ipc_started *m, int channel)
{
	const bool is_refusal = start->kind == IPC_KIND_SESSION && m->verdict != IPC_VERDICT_OK;
	const uint64_t now = is_refusal ? clock_now_ns() : 0;

	if (start->kind == IPC_KIND_SESSION && (!is_refusal || refusals_add(&a->refusals, client->peer.charge, now)))
		audit(start, &client->peer, m);
	a->answer(a->ctx, m, channel);
	if (is_refusal && clients_refused(client, now))
		a->over(a->ctx, client);
}

static void check(struct authorise *a, struct client *client)
{
	struct ipc_client m;

	if (clients_check(client, &m))
		a->changed(a->ctx, &m);
}

/* The kernel has answered, or need not. */
static void finish(struct authorise *a, struct candidate *c, int kernel)
{
	struct ipc_started m = { .type = IPC_STARTED, .request = c->start.request };
	auto_close int channel = -1;

	remove_candidate(a, c);
	check(a, c->client);
	start_session(a->workers, c, kernel, &m, &channel);
	tell(a, &c->start, c->client, &m, channel);
	free_candidate(c);
}

/* Ask for those whose turn it is, the oldest first. */
static void ask_for_next(struct authorise *a)
{
	struct candidate *c = a->first, *next;

	for (; c && count_asking(a) < ASKING_MAX; c = next) {
		int r = c->oracle.child ? 0 : begin_asking(c);

		next = c->next;
		if (r < 0) {
			finish(a, c, r);
			/* An answer that cannot be sent stops the agent, which forgets all candidates. */
			next = a->first;
		}
	}
}

/* @return 0; ret->verdict is ACCESS_VERDICT_ASK if the answer comes later.  -EPROTO: too many wait. */
static int start_candidate(struct authorise *a, const struct ipc_start *start, struct client *client,
			   struct ipc_started *ret, int *ret_channel)
{
	struct candidate *c = malloc(sizeof(*c)), **link = &a->first;
	size_t n = 0;

	if (!c) {
		refuse(start, -ENOMEM, ret);
		return 0;
	}
	*c = (struct candidate){ .start = *start, .client = clients_hold(client) };
	open_candidate(c, ret);
	if (c->pidfd >= 0)
		start_session(a->workers, c, ACCESS_NOT_ASKED, ret, ret_channel);
	for (; *link; link = &(*link)->next)
		n++;
	if (ret->verdict != ACCESS_VERDICT_ASK || n >= IPC_STARTS_MAX) {
		free_candidate(c);
		return ret->verdict == ACCESS_VERDICT_ASK ? -EPROTO : 0;
	}
	*link = c;
	return 0;
}

bool authorise_reaped(struct authorise *a, pid_t pid, int wait_status)
{
	struct candidate *c = a->first;

	while (c && c->oracle.child != pid)
		c = c->next;
	if (!c)
		return false;
	finish(a, c, oracle_answer(wait_status));
	ask_for_next(a);
	return true;
}

/* It may have answered in time, and this process looks late. */
static int late_answer(struct oracle *o)
{
	int status;

	return waitpid(o->child, &status, WNOHANG) == o->child ? oracle_answer(status) : oracle_give_up(o);
}

static void tell_refusals(uid_t uid, uint32_t n, uint32_t seconds)
{
	char user[12], count[12];
	const struct log_field fields[] = { { "GPU_AGENT_PEER_UID", user },
					    { "GPU_AGENT_COUNT", count },
					    { NULL, NULL } };

	snprintf(user, sizeof(user), "%lld", uid == ACCESS_NOBODY ? -1LL : (long long)uid);
	snprintf(count, sizeof(count), "%u", n);
	log_record(LOG_LEVEL_WARNING, LOG_MESSAGE_REFUSED, fields, "uid %s: %u more attaches refused in %u s", user, n,
		   seconds);
}

uint64_t authorise_deadlines(struct authorise *a)
{
	uint64_t earliest;
	struct candidate *next;

	for (struct candidate *c = a->first; c; c = next) {
		next = c->next;
		if (c->oracle.child && !clock_left_ms(c->oracle.deadline)) {
			finish(a, c, late_answer(&c->oracle));
			/* As in ask_for_next(). */
			next = a->first;
		}
	}
	ask_for_next(a);
	earliest = refusals_due(&a->refusals, clock_now_ns(), false, tell_refusals);
	for (const struct candidate *c = a->first; c; c = c->next)
		if (c->oracle.child && (!earliest || c->oracle.deadline < earliest))
			earliest = c->oracle.deadline;
	return earliest;
}

void authorise_cancel(struct authorise *a)
{
	while (a->first) {
		struct candidate *c = a->first;

		a->first = c->next;
		oracle_give_up(&c->oracle);
		free_candidate(c);
	}
	refusals_due(&a->refusals, clock_now_ns(), true, tell_refusals);
}

int authorise_start(struct authorise *a, const struct ipc_start *start, struct client *client, int *take_sock,
		    int early_fd)
{
	struct ipc_started m = { .type = IPC_STARTED, .request = start->request };
	auto_close int channel = -1;
	int r = 0;

	/* The frontend may have asked before it was told. */
	if (client->is_over && ++client->n_late > IPC_STARTS_MAX)
		return -EPROTO;
	if (!is_sane(start) || client->is_over) {
		refuse(start, client->is_over ? -ECONNABORTED : -EINVAL, &m);
		a->answer(a->ctx, &m, -1);
		return 0;
	}
	check(a, client);
	if (start->kind == IPC_KIND_SESSION)
		r = start_candidate(a, start, client, &m, &channel);
	else if (start->kind == IPC_KIND_ADAPTER)
		start_adapter(a->workers, &client->peer, take_sock, early_fd, &m, &channel);
	else
		start_inspect(a->workers, start, &client->peer, &m, &channel);
	if (m.verdict != ACCESS_VERDICT_ASK)
		tell(a, start, client, &m, channel);
	else if (r == 0)
		ask_for_next(a);
	return r;
}

/* ------------------------------------------------------------------ by rules ----------------- */

/* Of the agent itself: root, or in user mode nobody but that user. */
static struct access_peer agent_peer(void)
{
	return (struct access_peer){ .pid = getpid(), .uid = getuid(), .gid = getgid(),
				     .admin = getuid() == 0, .pidfd = -1, .known = true,
				     .near_user = true, .near_pid = true };
}

static int start_by_rule(struct workers *w, pid_t pid, int pidfd, struct worker **ret, int *ret_channel)
{
	const struct ipc_start start = { .kind = IPC_KIND_SESSION,
					 .pid = (uint32_t)pid,
					 .timeout_ms = WATCH_MS };
	const struct access_peer agent = agent_peer();
	auto_close int taken = fcntl(pidfd, F_DUPFD_CLOEXEC, 0);
	int r = taken < 0 ? -errno : workers_start(w, &start, &agent, &taken, ret, ret_channel);

	if (r == 0)
		(*ret)->by_rule = true;
	return r;
}

int authorise_watch(struct workers *w, const struct ipc_rule *rule, pid_t pid, int pidfd,
		    enum ipc_vendor vendor, struct ipc_watch *ret, int *ret_channel)
{
	const struct access_peer agent = agent_peer();
	struct ipc_started facts = { 0 };
	struct access_target t;
	struct worker *k;
	int r = 0;

	if (!judge(w, &agent, pid, pidfd, ACCESS_NOT_ASKED, &facts))
		return facts.status < 0 ? facts.status : -EPERM;
	if (access_target_read(pid, &t) < 0 || !access_is_alive(pidfd))
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
	k->target_uid = t.uids[0];
	k->target_gid = t.gids[0];
	k->vendor = vendor;
	*ret = (struct ipc_watch){ .type = IPC_WATCH, .worker = k->id, .session = k->session,
				   .pid = (uint32_t)pid, .target_uid = facts.target_uid };
	memcpy(ret->comm, facts.comm, sizeof(ret->comm));
	str_copy(ret->rule, sizeof(ret->rule), rule->name);
	return workers_tell_rule(w, k->id, rule);
}
