/* SPDX-License-Identifier: MIT */
#include "agentd/monitor/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/ipc/link.h"
#include "agentd/closers.h"
#include "agentd/monitor/repairs.h"
#include "agentd/privileges.h"
#include "agentd/ipc/undo_record.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

/* Of a worker that has ended, so many messages more than the kernel holds for a healthy one are taken. */
#define LAST_WORDS_MAX 1024
/* The worker gives up first and says why; this is for one that cannot. */
#define GUARD_GRACE_MS 1000
#define ARM_MS_MAX     (10 * WORKERS_TIMEOUT_MS_MAX)
#define LOOK_MS	       5000
/* A reader of threads gives up by itself before; a worker asks for one after the other. */
#define READER_MS	       6000
#define READERS_MAX    2
/* Looks take the processor from a client that attaches again at once. */
#define LOOK_DELAY_MS  100
/* Time for whoever stopped a worker to let it go on. */
#define STOPPED_MS     10000

uint32_t workers_count(const struct workers *w, enum ipc_kind kind)
{
	uint32_t n = 0;

	for (const struct worker *i = w->first; i; i = i->next)
		n += i->kind == kind;
	return n;
}

bool workers_is_own(const struct workers *w, pid_t pid)
{
	if (pid == getpid() || pid == getppid())
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(w->others); i++)
		if (pid == w->others[i])
			return true;
	for (const struct worker *i = w->first; i; i = i->next)
		if (i->pid == pid)
			return true;
	return false;
}

struct worker *workers_find_target(struct workers *w, pid_t pid)
{
	for (struct worker *k = w->first; k; k = k->next)
		if (k->kind == IPC_KIND_SESSION && k->target == pid && access_is_alive(k->target_pidfd))
			return k;
	return NULL;
}

/* ------------------------------------------------------------------ starting ----------------- */

struct place {
	const struct ipc_start *start;
	const struct ipc_identity *client;
	uint32_t session;
	int channel, target, undo;
};

static void worker_exec(const struct workers *w, const void *data, int guard)
{
	static const int to[] = { IPC_FD_MONITOR, IPC_FD_FRONT, IPC_FD_TARGET, IPC_FD_UNDO };
	static const char *const kinds[] = { [IPC_KIND_SESSION] = "session",
					     [IPC_KIND_INSPECT] = "inspect",
					     [IPC_KIND_LOOK] = "look",
					     [IPC_KIND_HOST] = "host",
					     [IPC_KIND_REPAIR] = "repair" };
	const struct place *p = data;
	const struct ipc_start *start = p->start;
	const struct ipc_identity *client = p->client;
	const struct config *config = w->setup.config;
	const int from[] = { guard, p->channel, p->target, p->undo };
	char pid[12], session[12], timeout[12], uid[12], gid[12], suspended[12];
	char stops[12], stop_rate[12];
	const char *program = w->setup.programs->path[PROGRAM_WORKER];
	const char *argv[] = { program, "--kind", kinds[start->kind],
			       "--pid", pid, "--session", session, "--timeout-ms", timeout,
			       "--peer-uid", uid, "--peer-gid", gid,
			       "--kfd", config->kfd_device, "--kfd-sysfs", config->kfd_sysfs,
			       "--cuda-library", config->cuda_library,
			       "--max-suspended-ms", suspended, "--observer-stops-ms", stops,
			       "--observer-stop-rate-ms", stop_rate, NULL, NULL, NULL, NULL, NULL, NULL, NULL };
	const struct {
		const char *name;
		bool is_set;
	} flags[] = { { "--admin", client->admin },	     { "--observer", client->observer },
		      { "--near", client->near },	     { "--stops", start->stops },
		      { "--permissive", w->setup.permissive }, { "--verbose", w->setup.verbose } };
	size_t n = 25;

	snprintf(pid, sizeof(pid), "%u", start->pid);
	snprintf(session, sizeof(session), "%u", p->session);
	snprintf(timeout, sizeof(timeout), "%u", start->timeout_ms);
	snprintf(uid, sizeof(uid), "%u", client->uid);
	snprintf(gid, sizeof(gid), "%u", client->gid);
	snprintf(suspended, sizeof(suspended), "%u", config->max_suspended_ms);
	snprintf(stops, sizeof(stops), "%u", config->observer_stops_ms);
	snprintf(stop_rate, sizeof(stop_rate), "%u", config->observer_stop_rate_ms);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (flags[i].is_set)
			argv[n++] = flags[i].name;
	child_place_fds(from, to, ARRAY_SIZE(to));
	child_die_first();
	/* SIGTERM waits until the worker can undo what it does. */
	child_exec(program, argv, SIGTERM);
}

/* They may even be what they were again, as far as that can be seen: the manager is told once, and for good. */
static bool are_replaced(struct workers *w)
{
	if (!programs_are_replaced(w->setup.programs))
		return false;
	if (w->replaced)
		return true;
	w->replaced = true;
	w->setup.on_replaced(w->setup.ctx);
	return true;
}

int workers_fork(struct workers *w, const struct worker *like, uint32_t start_ms,
		 workers_exec_fn exec, const void *data, struct worker **ret)
{
	auto_free struct worker *k = malloc(sizeof(*k));
	auto_close int ours = -1, theirs = -1;
	int guard[2], r;

	if (!k)
		return -ENOMEM;
	/* A rescue is started all the same: without one its target would stay as it is. */
	if (are_replaced(w))
		return -ESTALE;
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

int workers_start(struct workers *w, const struct ipc_start *start, const struct ipc_identity *client,
		  int *take_pidfd, struct worker **ret, int *ret_channel)
{
	auto_close int undo = -1;
	char record[UNDO_RECORD_NAME_MAX] = "";
	int r = 0;

	if (start->kind == IPC_KIND_SESSION) {
		r = undo_record_reuse(w->setup.records, (pid_t)start->pid, record, &undo);
		if (r < 0)
			r = undo_record_create(w->setup.records, (pid_t)start->pid, record, &undo);
	}
	return r < 0 ? r : workers_start_with(w, start, client, take_pidfd, &undo, record, ret, ret_channel);
}

int workers_start_with(struct workers *w, const struct ipc_start *start, const struct ipc_identity *client,
		       int *take_pidfd, int *take_undo, const char *record, struct worker **ret, int *ret_channel)
{
	struct worker like = { .kind = (enum ipc_kind)start->kind, .target = (pid_t)start->pid,
			       .owner = client->uid, .charge = client->charge, .by_admin = client->admin };
	auto_close int ours = -1, theirs = -1;
	int pair[2], r = fd_socketpair(SOCK_NONBLOCK, pair);

	str_copy(like.record, sizeof(like.record), record);
	if (like.kind == IPC_KIND_SESSION)
		like.session = ++w->last_session;
	if (r == 0) {
		const struct place place = { start, client, like.session, pair[1], *take_pidfd, *take_undo };

		ours = pair[0];
		theirs = pair[1];
		r = workers_fork(w, &like, start->timeout_ms + GUARD_GRACE_MS, worker_exec, &place, ret);
	}
	if (r < 0) {
		undo_record_drop(w->setup.records, like.record, *take_undo);
		return r;
	}
	(*ret)->target_pidfd = TAKE_FD(*take_pidfd);
	(*ret)->undo_fd = TAKE_FD(*take_undo);
	*ret_channel = TAKE_FD(ours);
	return 0;
}

static unsigned count_readers(const struct workers *w, uint32_t session)
{
	unsigned n = 0;

	for (const struct worker *i = w->first; i; i = i->next)
		n += i->kind == IPC_KIND_HOST && i->producer == session;
	return n;
}

int workers_start_reader(struct workers *w, const struct worker *session, int channel)
{
	const struct ipc_start start = { .kind = IPC_KIND_HOST, .pid = (uint32_t)session->target,
					 .timeout_ms = READER_MS };
	const struct ipc_identity owner = { .uid = session->target_uid, .gid = session->target_gid };
	const struct worker like = { .kind = IPC_KIND_HOST, .target = session->target, .owner = session->target_uid,
				     .producer = session->id };
	auto_close int pidfd = fcntl(session->target_pidfd, F_DUPFD_CLOEXEC, 0);
	const struct place place = { &start, &owner, 0, channel, pidfd, -1 };
	struct worker *k;
	int r = pidfd < 0 ? -errno : count_readers(w, session->id) >= READERS_MAX ? -EBUSY : 0;

	if (r == 0)
		r = workers_fork(w, &like, READER_MS + GUARD_GRACE_MS, worker_exec, &place, &k);
	if (r < 0)
		return r;
	k->target_pidfd = TAKE_FD(pidfd);
	k->target_uid = session->target_uid;
	return 0;
}

int workers_look(struct workers *w, uint32_t *ret_id)
{
	/* It may see what every process has mapped, and is nobody otherwise. */
	const struct ipc_identity looker = {
		.uid = w->setup.store_uid, .gid = w->setup.store_gid, .admin = true
	};
	const struct ipc_start start = { .kind = IPC_KIND_LOOK, .timeout_ms = LOOK_MS };
	int no_pidfd = -1, channel = -1, r;
	struct worker *k;

	r = workers_start(w, &start, &looker, &no_pidfd, &k, &channel);
	if (r < 0)
		return r;
	close(channel);
	*ret_id = k->id;
	return 0;
}

void workers_init(struct workers *w, const struct workers_setup *setup)
{
	*w = (struct workers){ .setup = *setup };
	w->rescue_setup = (struct rescue_setup){ .program = setup->programs->path[PROGRAM_HEIR],
						 .config = setup->config,
						 .records = setup->records,
						 .verbose = setup->verbose };
}

/* ------------------------------------------------------------------ messages ----------------- */

int workers_tell_rule(struct workers *w, uint32_t id, const struct ipc_rule *rule)
{
	ssize_t n;

	for (struct worker *k = w->first; k; k = k->next)
		if (k->id == id) {
			str_copy(k->rule, sizeof(k->rule), rule->name);
			n = fd_send(k->guard_fd, rule, sizeof(*rule), NULL, 0);
			return n < 0 ? (int)n : 0;
		}
	return -ESRCH;
}

int workers_let_in(struct worker *k, const struct ipc_let_in *m)
{
	ssize_t n = k->guard_fd < 0 ? 0 : fd_send(k->guard_fd, m, sizeof(*m), NULL, 0);

	/* One that is about to end serves nobody any more. */
	return n < 0 && n != -EPIPE ? (int)n : 0;
}

bool workers_arm(struct worker *k, uint32_t ms)
{
	if (ms > ARM_MS_MAX)
		return false;
	k->kill_at = clock_deadline_ms(ms);
	return true;
}

void workers_disarm(struct worker *k)
{
	k->kill_at = 0;
}

/* @return 1: there may be more; 0: end of file; -EAGAIN: nothing now; other -errno: it breaks the protocol. */
static int take_message(struct workers *w, struct worker *k)
{
	union ipc_child_message m = { 0 };
	int fds[FD_RIGHTS_MAX] = { -1 }, r = -EPROTO;
	size_t n_fds;
	ssize_t n = fd_recv_foreign(k->guard_fd, &m, sizeof(m), fds, &n_fds);

	if (n > 0 && n_fds <= 1)
		r = w->setup.ask(w->setup.ctx, k, &m, (size_t)n, &fds[0]);
	else if (n <= 0 && n != -EMSGSIZE)
		r = (int)n;
	for (size_t i = 0; i < n_fds; i++)
		closers_close_foreign(fds[i]);
	return n > 0 && r >= 0 ? 1 : r;
}

/* What lies in it unread may bring descriptors, which closing it would close. */
static void close_guard(struct worker *k)
{
	closers_close_socket(TAKE_FD(k->guard_fd));
}

void workers_guard(struct workers *w, struct worker *k)
{
	int r = 1, max = k->reaped ? LAST_WORDS_MAX : IPC_TURN;

	/* What a dead one has said is little, and read to the end, unless somebody whom it left behind goes on. */
	for (int n = 0; r == 1 && n < max; n++)
		r = take_message(w, k);
	if (r == 1 || r == -EAGAIN)
		return;
	/* End of file: it exits, SIGCHLD follows.  Anything else breaks the protocol. */
	if (r < 0 && !k->reaped) {
		k->was_killed = true;
		privileges_kill(k->pid, SIGKILL);
	}
	close_guard(k);
}

static void kill_stuck(struct worker *k)
{
	log_warning("worker %d for process %d passed its deadline: killed, the kernel releases the target",
		    (int)k->pid, (int)k->target);
	k->how = IPC_HOW_STUCK;
	k->kill_at = 0;
	k->was_killed = true;
	privileges_kill(k->pid, SIGKILL);
}

static void kill_stopped(struct worker *k)
{
	log_warning("worker %d for process %d was stopped by signal %d for %d ms: killed, the kernel releases the target; a process of uid %u may have sent it",
		    (int)k->pid, (int)k->target, k->stop_signal, STOPPED_MS, k->target_uid);
	k->stop_end = 0;
	privileges_kill(k->pid, SIGKILL);
}

void workers_paused(struct workers *w, pid_t pid, int wait_status)
{
	for (struct worker *k = w->first; k; k = k->next)
		if (k->pid == pid) {
			k->stop_signal = WIFSTOPPED(wait_status) ? WSTOPSIG(wait_status) : 0;
			k->stop_end = k->stop_signal ? clock_deadline_ms(STOPPED_MS) : 0;
		}
}

static void rescue_target(struct workers *w, struct worker *k)
{
	const struct orphan o = { .target = k->target, .pidfd = k->target_pidfd, .session = k->session,
				  .owner = k->owner, .stuck = k->how == IPC_HOW_STUCK,
				  .ended = k->how == IPC_HOW_CLEAN,
				  .is_repair = k->kind == IPC_KIND_REPAIR };
	int r = rescues_start(&w->rescues, &w->rescue_setup, &o, &k->undo_fd, k->record);

	if (r < 0)
		log_error("cannot check process %d after its worker died: %s", (int)k->target,
			  strerror(-r));
	k->record[0] = '\0'; /* with the rescue; without one recovery shall find it */
}

static void free_worker(const struct workers *w, struct worker *k)
{
	undo_record_drop(w->setup.records, k->record, k->undo_fd);
	if (k->guard_fd >= 0)
		close_guard(k);
	if (k->target_pidfd >= 0)
		close(k->target_pidfd);
	if (k->undo_fd >= 0)
		close(k->undo_fd);
	free(k);
}

/* One look is enough for all sessions that ended since the first of them. */
static void look_later(struct workers *w, struct worker *k)
{
	for (const struct worker *i = w->looks; i; i = i->next)
		if (i->target == k->target && access_is_alive(i->target_pidfd)) {
			free_worker(w, k);
			return;
		}
	k->look_at = clock_deadline_ms(LOOK_DELAY_MS);
	k->next = w->looks;
	w->looks = k;
}

/* @return when the next one is due, 0: none is. */
static uint64_t look_at_targets(struct workers *w, uint64_t now)
{
	struct worker **link = &w->looks;
	uint64_t next = 0;

	while (*link) {
		struct worker *k = *link;
		bool alive = access_is_alive(k->target_pidfd);
		/* A worker that has attached has answered whom it found; one that may yet fail to has not. */
		bool waits = alive && workers_find_target(w, k->target);

		if (waits || (alive && k->look_at > now)) {
			next = waits ? next : clock_earlier(next, k->look_at);
			link = &k->next;
			continue;
		}
		*link = k->next;
		if (alive)
			rescue_target(w, k);
		free_worker(w, k);
	}
	return next;
}

void workers_look_now(struct workers *w)
{
	look_at_targets(w, UINT64_MAX);
}

uint64_t workers_deadlines(struct workers *w)
{
	uint64_t now = clock_now_ns(), next = look_at_targets(w, now);

	for (struct worker *k = w->first; k; k = k->next) {
		if (k->kill_at && k->kill_at <= now)
			kill_stuck(k);
		if (k->stop_end && k->stop_end <= now)
			kill_stopped(k);
		if (k->kill_at && (!next || k->kill_at < next))
			next = k->kill_at;
		if (k->stop_end && (!next || k->stop_end < next))
			next = k->stop_end;
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
	bool repairs = workers_count(w, IPC_KIND_REPAIR);

	for (struct worker *k = w->first; k; k = k->next) {
		/* It ends by itself, or by its guard; so does what connects it. */
		if (k->kind == IPC_KIND_REPAIR || (k->kind == IPC_KIND_CONNECT && repairs))
			continue;
		k->was_killed |= sig == SIGKILL;
		privileges_kill(k->pid, sig);
	}
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

/*
 * Which signal has somebody else sent that ended the worker?  Others it has made itself, by a fault or
 * its own clock.
 */
static int signal_from_outside(const struct worker *k, int wait_status)
{
	if (k->kind != IPC_KIND_SESSION || !WIFSIGNALED(wait_status) || k->was_killed)
		return 0;
	switch (WTERMSIG(wait_status)) {
	case SIGSEGV:
	case SIGBUS:
	case SIGILL:
	case SIGFPE:
	case SIGTRAP:
	case SIGABRT:
	case SIGSYS:
	case SIGALRM:
		return 0;
	default:
		return k->stop_signal ? k->stop_signal : WTERMSIG(wait_status);
	}
}

bool workers_reaped(struct workers *w, pid_t pid, int wait_status, struct ipc_ended *ret)
{
	bool look = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == IPC_EXIT_LOOK;
	struct rescue_left left;
	struct worker **link, *k;

	read_last_words(w, pid);
	link = &w->first;
	while (*link && (*link)->pid != pid)
		link = &(*link)->next;
	k = *link;
	if (!k) {
		if (rescues_reaped(&w->rescues, w->setup.records, pid, wait_status, &left))
			w->setup.on_owed(w->setup.ctx);
		repairs_after(w, &left);
		return false;
	}
	*link = k->next;
	if (k->unsaid.kind)
		log_warning("worker %d for process %d: %llu calls are not in the log: the judge took no messages",
			    (int)pid, (int)k->target, 1ull + k->unsaid.more);
	if (wait_status && !look && k->how == IPC_HOW_CLEAN)
		k->how = IPC_HOW_DIED;
	*ret = (struct ipc_ended){ .type = IPC_ENDED,
				   .worker = k->id,
				   .how = k->how,
				   .wait_status = wait_status,
				   .signal = signal_from_outside(k, wait_status),
				   .uid = k->target_uid };
	if (ret->signal)
		log_warning("worker %d for process %d was ended by signal %d from outside; a process of uid %u may have sent it",
			    (int)pid, (int)k->target, ret->signal, k->target_uid);
	else if (k->kind == IPC_KIND_SESSION && k->how != IPC_HOW_CLEAN)
		log_warning("worker %d for process %d died (status 0x%x); the kernel released the target",
			    (int)pid, (int)k->target, (unsigned)wait_status);
	/* One that ends well may leave a record, too: something in the target outlasted its patience. */
	if (k->kind == IPC_KIND_SESSION && (k->how != IPC_HOW_CLEAN || undo_record_owes(k->undo_fd))) {
		rescue_target(w, k);
	} else if (k->kind == IPC_KIND_REPAIR && undo_record_owes(k->undo_fd)) {
		rescue_target(w, k);
	} else if (k->kind == IPC_KIND_REPAIR) {
		repairs_ended(k);
	} else if (k->kind == IPC_KIND_SESSION && look) {
		look_later(w, k);
		return true;
	}
	free_worker(w, k);
	return true;
}

void workers_leave(struct workers *w)
{
	for (struct worker *k = w->first; k; k = k->next)
		k->record[0] = '\0';
	w->are_left = true;
}

void workers_deinit(struct workers *w)
{
	while (w->first) {
		struct worker *k = w->first;

		w->first = k->next;
		free_worker(w, k);
	}
	while (w->looks) {
		struct worker *k = w->looks;

		w->looks = k->next;
		k->record[0] = '\0';
		free_worker(w, k);
	}
	rescues_deinit(&w->rescues, w->setup.records);
}
