/* SPDX-License-Identifier: MIT */
#include "agentd/spawn/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/spawn/recovery.h"
#include "agentd/spawn/release.h"
#include "agentd/spawn/worker_env.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

#define INSPECT_PER_USER_MAX 8
#define INSPECT_MAX 64
#define TIMEOUT_MS_MAX 60000
/* The worker gives up first and says why; this is for one that cannot. */
#define GUARD_GRACE_MS 1000
#define RELEASE_SECONDS_MAX 3
#define RESCUE_MS	    10000
#define RESCUE_SECONDS_MAX  20
/* It gives up first, and then puts back what it can; this is for one that hangs. */
#define RESCUE_WAIT_MS	    15000
/* Who waits is given his answer, or stopped, within a second. */
#define RESCUE_ANSWER_MS    150
#define RESCUE_DEATH_MS	    1000
/* One may be on his way in while the rescuer is on its way out. */
#define RESCUES_MAX	    16
#define EXIT_OWED	    1
#define RESCUE_PAUSE_MS	    50
#define RESCUE_PAUSE_MS_MAX 3200
#define WATCH_MS	    10000
#define LOOK_MS		    5000

static uint32_t count_of(const struct workers *w, enum ipc_kind kind, uid_t owner)
{
	uint32_t n = 0;

	for (const struct worker *i = w->first; i; i = i->next)
		n += i->kind == kind && i->owner == owner && !i->producer && !i->by_rule;
	return n;
}

uint32_t workers_count(const struct workers *w, enum ipc_kind kind)
{
	uint32_t n = 0;

	for (const struct worker *i = w->first; i; i = i->next)
		n += i->kind == kind;
	return n;
}

static bool quota_allows(const struct workers *w, enum ipc_kind kind, uid_t owner)
{
	/* An adapter opens one session at most. */
	if (kind != IPC_KIND_SESSION && kind != IPC_KIND_ADAPTER)
		return workers_count(w, kind) < INSPECT_MAX &&
		       count_of(w, kind, owner) < INSPECT_PER_USER_MAX;
	return workers_count(w, kind) < w->config->sessions &&
	       count_of(w, kind, owner) < w->config->sessions_per_user;
}

bool workers_is_own(const struct workers *w, pid_t pid)
{
	if (pid == getpid() || pid == w->front_pid)
		return true;
	for (const struct worker *i = w->first; i; i = i->next)
		if (i->pid == pid)
			return true;
	return false;
}

static _Noreturn void worker_exec(const struct workers *w, const struct worker *k,
				  const struct ipc_start *start, const struct access_peer *peer,
				  int guard, int channel)
{
	static const int to[] = { IPC_FD_SPAWN, IPC_FD_FRONT, IPC_FD_TARGET, IPC_FD_UNDO };
	static const char *const kinds[] = { [IPC_KIND_SESSION] = "session",
					     [IPC_KIND_INSPECT] = "inspect",
					     [IPC_KIND_RESCUE] = "rescue",
					     [IPC_KIND_LOOK] = "look" };
	const int from[] = { guard, channel, k->target_pidfd, k->undo_fd };
	char pid[12], session[12], timeout[12], uid[12], gid[12], suspended[12];
	const char *argv[] = { w->program, "--kind", kinds[start->kind],
			       "--pid", pid, "--session", session, "--timeout-ms", timeout,
			       "--peer-uid", uid, "--peer-gid", gid,
			       "--kfd", w->config->kfd_device, "--kfd-sysfs", w->config->kfd_sysfs,
			       "--cuda-library", w->config->cuda_library,
			       "--max-suspended-ms", suspended, NULL, NULL, NULL, NULL };
	size_t n = 21;

	snprintf(pid, sizeof(pid), "%u", start->pid);
	snprintf(session, sizeof(session), "%u", k->session);
	snprintf(timeout, sizeof(timeout), "%u", start->timeout_ms);
	snprintf(uid, sizeof(uid), "%u", peer->uid);
	snprintf(gid, sizeof(gid), "%u", peer->gid);
	snprintf(suspended, sizeof(suspended), "%u", w->config->max_suspended_ms);
	if (peer->admin)
		argv[n++] = "--admin";
	if (peer->observer)
		argv[n++] = "--observer";
	if (w->verbose)
		argv[n++] = "--verbose";
	child_place_fds(from, to, ARRAY_SIZE(to));
	worker_env_clean();
	/* SIGTERM waits until the worker can undo what it does. */
	child_exec(w->program, argv, SIGTERM);
}

/* @return 0 or -errno; on success the worker is in the list. */
static int fork_worker(struct workers *w, const struct ipc_start *start,
		       const struct access_peer *peer, int *take_pidfd, uint32_t *ret_id,
		       int *ret_channel)
{
	int guard[2] = { -1, -1 }, channel[2] = { -1, -1 }, r;
	struct worker *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	*k = (struct worker){ .kind = (enum ipc_kind)start->kind,
			      .target = (pid_t)start->pid,
			      .owner = peer->uid,
			      .guard_fd = -1,
			      .undo_fd = -1,
			      .target_pidfd = *take_pidfd };
	if (k->kind == IPC_KIND_SESSION)
		k->session = ++w->last_session;
	r = k->kind == IPC_KIND_SESSION ?
		    recovery_record_create(w->records, k->target, k->record, &k->undo_fd) : 0;
	if (r == 0)
		r = fd_socketpair(SOCK_NONBLOCK, guard);
	if (r == 0)
		r = fd_socketpair(SOCK_NONBLOCK, channel);
	if (r == 0) {
		k->pid = fork();
		if (k->pid == 0)
			worker_exec(w, k, start, peer, guard[1], channel[1]);
		r = k->pid < 0 ? -errno : 0;
	}
	if (guard[1] >= 0)
		close(guard[1]);
	if (channel[1] >= 0)
		close(channel[1]);
	if (r < 0) {
		if (guard[0] >= 0)
			close(guard[0]);
		if (channel[0] >= 0)
			close(channel[0]);
		if (k->undo_fd >= 0)
			close(k->undo_fd);
		recovery_record_remove(w->records, k->record);
		free(k);
		return r;
	}
	*take_pidfd = -1;
	k->id = ++w->last_id;
	k->guard_fd = guard[0];
	k->kill_at = clock_deadline_ms(start->timeout_ms + GUARD_GRACE_MS);
	k->next = w->first;
	w->first = k;
	*ret_id = k->id;
	*ret_channel = channel[0];
	return 0;
}

int workers_fork(struct workers *w, const struct worker *like, uint32_t start_ms,
		 workers_exec_fn exec, const void *data, struct worker **ret)
{
	auto_free struct worker *k = malloc(sizeof(*k));
	auto_close int ours = -1, theirs = -1;
	int guard[2], r;

	if (!k)
		return -ENOMEM;
	r = fd_socketpair(SOCK_NONBLOCK, guard);
	if (r < 0)
		return r;
	ours = guard[0];
	theirs = guard[1];
	*k = *like;
	k->target_pidfd = k->undo_fd = -1;
	k->pid = fork();
	if (k->pid == 0) {
		exec(w, data, theirs);
		_exit(127);
	}
	if (k->pid < 0)
		return -errno;
	k->id = ++w->last_id;
	k->guard_fd = TAKE_FD(ours);
	k->kill_at = clock_deadline_ms(start_ms);
	k->next = w->first;
	w->first = *ret = TAKE_PTR(k);
	return 0;
}

static struct worker *find_target(struct workers *w, pid_t pid)
{
	for (struct worker *k = w->first; k; k = k->next)
		if (k->kind == IPC_KIND_SESSION && k->target == pid && access_is_alive(k->target_pidfd))
			return k;
	return NULL;
}

/* Judge the client against a target held by pidfd; fills the reply.  @return true to go on. */
static bool authorise(struct workers *w, const struct access_peer *peer, pid_t pid, int pidfd,
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
		verdict = access_decide(peer, &t, &rights);
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
	for (const struct release *i = w->releases; i; i = i->next)
		if (i->target == target && recovery_record_owes(i->undo_fd))
			return true;
	return recovery_owes(w->records, target);
}

/* Who is told apart by it has a user of the same number elsewhere. */
static uint64_t user_ns_of(const struct access_peer *peer)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)peer->pid);
	/* Looked at while the peer lived: the number was not somebody else's. */
	return stat(path, &st) == 0 && access_is_alive(peer->pidfd) ? st.st_ino : 0;
}

static void start_session(struct workers *w, const struct ipc_start *start,
			  const struct access_peer *peer, struct ipc_started *ret, int *ret_channel)
{
	auto_close int pidfd = -1;
	struct worker *found;

	pidfd = (int)syscall(SYS_pidfd_open, start->pid, 0);
	if (pidfd < 0) {
		/* EINVAL: a thread id (ENOENT from Linux 6.9 on). */
		if (errno == ESRCH || errno == EINVAL || errno == ENOENT) {
			ret->verdict = IPC_VERDICT_NO_PROCESS;
		} else {
			ret->verdict = IPC_VERDICT_FAILED;
			ret->status = -errno;
		}
		return;
	}
	if (!authorise(w, peer, (pid_t)start->pid, pidfd, ret))
		return;
	ret->user_ns = user_ns_of(peer);
	found = find_target(w, (pid_t)start->pid);
	if (found) {
		ret->worker = found->id;
		ret->session = found->session;
		ret->joined = 1;
		return;
	}
	if (is_being_rescued(w, (pid_t)start->pid)) {
		ret->verdict = IPC_VERDICT_RESCUE;
		return;
	}
	if (!quota_allows(w, IPC_KIND_SESSION, peer->uid)) {
		ret->verdict = IPC_VERDICT_LIMIT;
		return;
	}
	ret->status = fork_worker(w, start, peer, &pidfd, &ret->worker, ret_channel);
	if (ret->status < 0) {
		ret->verdict = IPC_VERDICT_FAILED;
		return;
	}
	w->first->target_uid = ret->target_uid;
	ret->session = w->first->session;
}

/* A look without a session, or the store. */
static void start_inspect(struct workers *w, const struct ipc_start *start,
			  const struct access_peer *peer, struct ipc_started *ret, int *ret_channel)
{
	int no_pidfd = -1;

	if (!quota_allows(w, (enum ipc_kind)start->kind, peer->uid)) {
		ret->verdict = IPC_VERDICT_LIMIT;
		return;
	}
	ret->rights = IPC_RIGHT_READ;
	ret->status = start->kind == IPC_KIND_STORE ?
			      stores_start(w, start, peer, &ret->worker, ret_channel) :
			      fork_worker(w, start, peer, &no_pidfd, &ret->worker, ret_channel);
	ret->verdict = ret->status < 0 ? IPC_VERDICT_FAILED : IPC_VERDICT_OK;
}

static void start_adapter(struct workers *w, const struct access_peer *peer, int client_sock,
			  int early_fd, struct ipc_started *ret, int *ret_channel)
{
	if (!peer->known || !peer->near_user || !peer->near_pid) {
		/* As the same user out here it would be more than he is in there. */
		ret->verdict = IPC_VERDICT_USER_NAMESPACE;
		return;
	}
	if (!quota_allows(w, IPC_KIND_ADAPTER, peer->uid)) {
		ret->verdict = IPC_VERDICT_LIMIT;
		return;
	}
	ret->status = early_fd < 0 ? -EBADF
				   : adapters_start(w, peer, client_sock, early_fd, &ret->worker,
						    ret_channel);
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

	if (start->kind != IPC_KIND_SESSION)
		return;
	snprintf(target, sizeof(target), "%u", start->pid);
	snprintf(uid, sizeof(uid), "%u", peer->uid);
	snprintf(peer_pid, sizeof(peer_pid), "%d", (int)peer->pid);
	log_record(LOG_LEVEL_INFO, LOG_MESSAGE_ATTACH, fields,
		   "attach to %u asked by uid %u (pid %s): %s%s", start->pid, peer->uid, peer_pid,
		   verdicts[answer->verdict], answer->joined ? ", joins the open session" : "");
}

void workers_refuse(const struct ipc_start *start, int status, struct ipc_started *ret)
{
	*ret = (struct ipc_started){ .type = IPC_STARTED,
				     .request = start->request,
				     .verdict = IPC_VERDICT_FAILED,
				     .status = status };
}

static bool is_sane(const struct ipc_start *start)
{
	return start->timeout_ms <= TIMEOUT_MS_MAX && start->pid <= INT32_MAX &&
	       (start->kind == IPC_KIND_SESSION || start->kind == IPC_KIND_INSPECT ||
		start->kind == IPC_KIND_STORE || start->kind == IPC_KIND_ADAPTER);
}

void workers_start(struct workers *w, const struct ipc_start *start, int client_sock, int early_fd,
		   struct ipc_started *ret, int *ret_channel)
{
	struct access_peer peer;
	int r;

	*ret_channel = -1;
	*ret = (struct ipc_started){ .type = IPC_STARTED, .request = start->request };
	r = is_sane(start) ? access_peer_read(client_sock, w->rules, &peer) : -EINVAL;
	if (r < 0) {
		workers_refuse(start, r, ret);
		return;
	}
	access_peer_look(&peer);
	if (start->kind == IPC_KIND_SESSION)
		start_session(w, start, &peer, ret, ret_channel);
	else if (start->kind == IPC_KIND_ADAPTER)
		start_adapter(w, &peer, client_sock, early_fd, ret, ret_channel);
	else
		start_inspect(w, start, &peer, ret, ret_channel);
	audit(start, &peer, ret);
	access_peer_deinit(&peer);
}

/* ------------------------------------------------------------------ by rules ----------------- */

/* Of the agent itself: root, or in user mode nobody but that user. */
static struct access_peer agent_peer(void)
{
	return (struct access_peer){ .pid = getpid(), .uid = getuid(), .gid = getgid(),
				     .admin = getuid() == 0, .pidfd = -1, .known = true,
				     .near_user = true, .near_pid = true };
}

static int tell_rule(struct worker *k, const struct ipc_rule *rule)
{
	ssize_t n;

	str_copy(k->rule, sizeof(k->rule), rule->name);
	n = fd_send(k->guard_fd, rule, sizeof(*rule), NULL, 0);
	return n < 0 ? (int)n : 0;
}

int workers_tell_rule(struct workers *w, uint32_t id, const struct ipc_rule *rule)
{
	for (struct worker *k = w->first; k; k = k->next)
		if (k->id == id)
			return tell_rule(k, rule);
	return -ESRCH;
}

static int start_by_rule(struct workers *w, pid_t pid, int pidfd, int *ret_channel)
{
	const struct ipc_start start = { .kind = IPC_KIND_SESSION,
					 .pid = (uint32_t)pid,
					 .timeout_ms = WATCH_MS };
	const struct access_peer agent = agent_peer();
	auto_close int taken = fcntl(pidfd, F_DUPFD_CLOEXEC, 0);
	uint32_t id;
	int r = taken < 0 ? -errno : fork_worker(w, &start, &agent, &taken, &id, ret_channel);

	if (r == 0)
		w->first->by_rule = true;
	return r;
}

int workers_watch(struct workers *w, const struct ipc_rule *rule, pid_t pid, int pidfd,
		  struct ipc_watch *ret, int *ret_channel)
{
	const struct access_peer agent = agent_peer();
	struct ipc_started facts = { 0 };
	struct access_target t;
	struct worker *k;
	int r = 0;

	if (!authorise(w, &agent, pid, pidfd, &facts))
		return facts.status < 0 ? facts.status : -EPERM;
	if (access_target_read(pid, &t) < 0 || !access_is_alive(pidfd))
		return -ESRCH;
	k = find_target(w, pid);
	if (!k && is_being_rescued(w, pid))
		return -EBUSY;
	if (!k && workers_count(w, IPC_KIND_SESSION) >= w->config->sessions)
		return -EMFILE;
	if (!k) {
		r = start_by_rule(w, pid, pidfd, ret_channel);
		k = w->first;
	}
	if (r < 0)
		return r;
	k->target_uid = t.uids[0];
	k->target_gid = t.gids[0];
	*ret = (struct ipc_watch){ .type = IPC_WATCH, .worker = k->id, .session = k->session,
				   .pid = (uint32_t)pid, .target_uid = facts.target_uid };
	memcpy(ret->comm, facts.comm, sizeof(ret->comm));
	str_copy(ret->rule, sizeof(ret->rule), rule->name);
	return tell_rule(k, rule);
}

int workers_look(struct workers *w, uint32_t *ret_id)
{
	/* It may see what every process has mapped, and is nobody otherwise. */
	const struct access_peer looker = {
		.uid = w->store_uid, .gid = w->store_gid, .admin = true, .pidfd = -1
	};
	const struct ipc_start start = { .kind = IPC_KIND_LOOK, .timeout_ms = LOOK_MS };
	int no_pidfd = -1, channel = -1;
	int r = fork_worker(w, &start, &looker, &no_pidfd, ret_id, &channel);

	if (channel >= 0)
		close(channel);
	return r;
}

/* ------------------------------------------------------------------ messages ----------------- */

/* @return false when it is none of these, or not for this kind of worker. */
static bool take_message(struct workers *w, struct worker *k, const struct ipc_guard *m,
			 int *take_fd)
{
	switch (m->type) {
	case IPC_STORE:
		if (*take_fd < 0 || k->kind != IPC_KIND_SESSION)
			return false;
		stores_start_producer(w, k, TAKE_FD(*take_fd));
		return true;
	case IPC_HOOK:
		if (*take_fd < 0 || k->kind != IPC_KIND_SESSION)
			return false;
		w->on_hook(w->ctx, k, &m->fault, *take_fd);
		return true;
	case IPC_FOUND:
		if (k->kind != IPC_KIND_LOOK || !m->pid || m->pid > INT32_MAX)
			return false;
		w->on_found(w->ctx, (pid_t)m->pid, (enum ipc_vendor)m->vendor);
		return true;
	case IPC_ARM:
		if (m->ms > 10 * TIMEOUT_MS_MAX)
			return false;
		k->kill_at = clock_deadline_ms(m->ms);
		return true;
	case IPC_DISARM:
		k->kill_at = 0;
		return true;
	}
	return false;
}

void workers_guard(struct workers *w, struct worker *k)
{
	struct ipc_guard m;
	int fd, r;

	while ((r = ipc_recv_fixed(k->guard_fd, &m, sizeof(m), &fd)) == 1) {
		if (!take_message(w, k, &m, &fd))
			r = -EPROTO;
		if (fd >= 0)
			close(fd);
		if (r < 0)
			break;
	}
	if (r == -EAGAIN)
		return;
	/* End of file: it exits, SIGCHLD follows.  Anything else breaks the protocol. */
	if (r < 0 && !k->reaped)
		kill(k->pid, SIGKILL);
	close(k->guard_fd);
	k->guard_fd = -1;
}

static void kill_stuck(struct worker *k)
{
	log_warning("worker %d for process %d passed its deadline: killed, the kernel releases the target",
		    (int)k->pid, (int)k->target);
	k->how = IPC_HOW_STUCK;
	k->kill_at = 0;
	kill(k->pid, SIGKILL);
}

uint64_t workers_deadlines(struct workers *w)
{
	uint64_t next = 0, now = clock_now_ns();

	for (struct worker *k = w->first; k; k = k->next) {
		if (k->kill_at && k->kill_at <= now)
			kill_stuck(k);
		if (k->kill_at && (!next || k->kill_at < next))
			next = k->kill_at;
	}
	return next;
}

void workers_kill(struct workers *w, uint32_t id)
{
	for (struct worker *k = w->first; k; k = k->next)
		if (k->id == id)
			kill_stuck(k);
}

void workers_signal(struct workers *w, int sig)
{
	for (struct worker *k = w->first; k; k = k->next)
		kill(k->pid, sig);
}

/* Front and workers must see the end of our sockets when we die, even while this child lives. */
static void keep_only(int a, int b /* or -1 */)
{
	int low = b < 0 || a < b ? a : b, high = a < b ? b : a;

	if (low > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, (unsigned)low - 1, 0);
	if (high > low + 1)
		close_range((unsigned)low + 1, (unsigned)high - 1, 0);
	close_range((unsigned)high + 1, ~0u, 0);
}

/* In the child: what the worker wrote into the target, or owes it, is put right by another one. */
static _Noreturn void exec_rescue(const struct workers *w, const struct worker *k)
{
	const struct ipc_start start = { .kind = IPC_KIND_RESCUE,
					 .pid = (uint32_t)k->target,
					 .timeout_ms = RESCUE_MS };
	/* For the agent itself: that the dead worker was allowed there is enough. */
	const struct access_peer agent = { .uid = k->owner, .gid = 0, .admin = true };

	alarm(RESCUE_SECONDS_MAX);
	worker_exec(w, k, &start, &agent, -1, -1);
}

static bool has_ended(pid_t pid, int ms, int *ret_status)
{
	auto_close int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return fd >= 0 && poll(&p, 1, ms) == 1 && waitpid(pid, ret_status, 0) == pid;
}

/* @return whether that is done. */
static bool rescue(const struct workers *w, const struct worker *dead, int ms)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		exec_rescue(w, dead);
	if (pid < 0)
		return false;
	if (has_ended(pid, ms, &status))
		return WIFEXITED(status) && WEXITSTATUS(status) == 0;
	/* It traces the target: who waits there could not be stopped. */
	kill(pid, SIGKILL);
	has_ended(pid, RESCUE_DEATH_MS, &status);
	return false;
}

/*
 * Whether anybody waits neither the dead worker nor a rescuer may see of every process; we do.  The answer is
 * noted before anything else can end the wait.
 * @param looks  As for release_look().
 */
static bool owes_answer(const struct workers *w, const struct worker *dead, int looks)
{
	int n = release_look(dead->target, dead->target_pidfd, looks), r;

	if (n < 0)
		log_warning("process %d: whether it waits for a debugger cannot be seen: %s",
			    (int)dead->target, strerror(-n));
	r = n > 0 ? recovery_owe_answer(w->records, dead->target, dead->undo_fd) : 0;
	if (r < 0)
		log_warning("process %d: that it waits cannot be written down: %s",
			    (int)dead->target, strerror(-r));
	return n > 0;
}

static void stop_who_waits(const struct worker *dead)
{
	int n = release_stop(dead->target, dead->target_pidfd);

	if (n > 0)
		log_info("process %d: stopped %d thread(s) waiting for an answer that nobody gives",
			 (int)dead->target, n);
}

_Noreturn void workers_look_after(const struct workers *w, const struct worker *dead)
{
	bool owed = recovery_record_owes(dead->undo_fd), waits = false, done = true;

	keep_only(dead->target_pidfd, dead->undo_fd);
	alarm(RESCUE_SECONDS_MAX + RELEASE_SECONDS_MAX);
	for (int i = 0; i < RESCUES_MAX && done; i++, owed = false) {
		/* What is written down already does not wait for more than one look. */
		waits = owes_answer(w, dead, owed ? 1 : RELEASE_LOOKS);
		if (!waits && !owed)
			break;
		/* What was not written down a rescuer does not know of; where a worker hung, most of the time is over. */
		done = recovery_record_owes(dead->undo_fd) && (!waits || dead->how != IPC_HOW_STUCK) &&
		       rescue(w, dead, waits ? RESCUE_ANSWER_MS : RESCUE_WAIT_MS);
	}
	if (waits && !done)
		stop_who_waits(dead);
	for (int ms = RESCUE_PAUSE_MS; !done && recovery_record_owes(dead->undo_fd) && ms <= RESCUE_PAUSE_MS_MAX;
	     ms *= 2) {
		poll(NULL, 0, ms);
		done = rescue(w, dead, RESCUE_WAIT_MS);
	}
	if (done || !recovery_record_owes(dead->undo_fd))
		_exit(0);
	log_error("process %d: what its dead worker owed it could not be given: it misses a fault, or waits at its next RUNTIME_ENABLE under a debugger",
		  (int)dead->target);
	_exit(EXIT_OWED);
}

static void release_target(struct workers *w, struct worker *k)
{
	struct release *release = malloc(sizeof(*release));
	pid_t pid = release ? fork() : -1;

	if (pid == 0)
		workers_look_after(w, k);
	if (pid < 0) {
		log_error("cannot check process %d after its worker died: %s", (int)k->target,
			  strerror(errno));
		free(release);
		k->record[0] = '\0'; /* recovery shall find it */
		return;
	}
	*release = (struct release){ .next = w->releases, .pid = pid, .target = k->target,
				     .undo_fd = TAKE_FD(k->undo_fd) };
	memcpy(release->record, k->record, sizeof(release->record));
	k->record[0] = '\0';
	w->releases = release;
}

static void free_release(const struct workers *w, struct release *r)
{
	recovery_record_remove(w->records, r->record);
	if (r->undo_fd >= 0)
		close(r->undo_fd);
	free(r);
}

static void release_reaped(struct workers *w, pid_t pid, int status)
{
	struct release **link = &w->releases, *found;

	while (*link && (*link)->pid != pid)
		link = &(*link)->next;
	found = *link;
	if (!found)
		return;
	*link = found->next;
	if (WIFEXITED(status) ? WEXITSTATUS(status) == EXIT_OWED : recovery_record_owes(found->undo_fd))
		w->on_owed(w->ctx);
	free_release(w, found);
}

static void free_worker(const struct workers *w, struct worker *k)
{
	recovery_record_remove(w->records, k->record);
	if (k->guard_fd >= 0)
		close(k->guard_fd);
	if (k->target_pidfd >= 0)
		close(k->target_pidfd);
	if (k->undo_fd >= 0)
		close(k->undo_fd);
	free(k);
}

/* What it said last may still be unread. */
static void read_last_words(struct workers *w, pid_t pid)
{
	for (struct worker *k = w->first; k; k = k->next)
		if (k->pid == pid) {
			k->reaped = true;
			if (k->guard_fd >= 0)
				workers_guard(w, k);
			return;
		}
}

bool workers_reaped(struct workers *w, pid_t pid, int wait_status, struct ipc_ended *ret)
{
	bool look = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == IPC_EXIT_LOOK;
	struct worker **link, *k;

	read_last_words(w, pid);
	link = &w->first;
	while (*link && (*link)->pid != pid)
		link = &(*link)->next;
	k = *link;
	if (!k) {
		release_reaped(w, pid, wait_status);
		return false;
	}
	*link = k->next;
	if (wait_status && !look && k->how == IPC_HOW_CLEAN)
		k->how = IPC_HOW_DIED;
	*ret = (struct ipc_ended){ .type = IPC_ENDED,
				   .worker = k->id,
				   .how = k->how,
				   .wait_status = wait_status };
	if (k->kind == IPC_KIND_SESSION && k->how != IPC_HOW_CLEAN)
		log_warning("worker %d for process %d died (status 0x%x); the kernel released the target",
			    (int)pid, (int)k->target, (unsigned)wait_status);
	/* One that ends well may leave a record, too: something in the target outlasted its patience. */
	if (k->kind == IPC_KIND_SESSION && (k->how != IPC_HOW_CLEAN || look || recovery_record_owes(k->undo_fd)))
		release_target(w, k);
	free_worker(w, k);
	return true;
}

void workers_leave(struct workers *w)
{
	for (struct worker *k = w->first; k; k = k->next)
		k->record[0] = '\0';
}

void workers_deinit(struct workers *w)
{
	while (w->first) {
		struct worker *k = w->first;

		w->first = k->next;
		free_worker(w, k);
	}
	while (w->releases) {
		struct release *r = w->releases;

		w->releases = r->next;
		/* Its child may be killed with us: the next start finds what is owed then. */
		if (recovery_record_owes(r->undo_fd))
			r->record[0] = '\0';
		free_release(w, r);
	}
}
