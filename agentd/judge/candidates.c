/* SPDX-License-Identifier: MIT */
#include "agentd/judge/candidates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/audit.h"
#include "agentd/judge/judge.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

/* Children that ask the kernel at a time; other clients wait for their turn. */
#define ASKING_MAX 16

struct candidate {
	struct candidate *next;
	struct ipc_start start;
	struct client *client; /* Held. */
	int pidfd;	      /* Of the target; -1: there is none, or it could not be had. */
	struct oracle oracle; /* Its child is 0 as long as it waits for its turn, */
	bool is_sent;	      /* or the monitor has it. */
};

/* ------------------------------------------------------------------ judging ------------------ */

/*
 * Judge the client against a target held by pidfd; fills the reply.
 * @param kernel  As access_judge() has it.
 * @return true: it may; false also when the verdict is ACCESS_VERDICT_ASK.
 */
static bool judge_target(const struct access_peer *peer, pid_t pid, int pidfd, int kernel, struct ipc_started *ret,
			 gid_t *ret_gid)
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
	verdict = r < 0 ? IPC_VERDICT_NO_PROCESS : access_judge(peer, &t, kernel, &rights);
	/* The pidfd is older than the facts: alive now means that the facts are about it. */
	if (!access_is_alive(pidfd))
		verdict = IPC_VERDICT_NO_PROCESS;
	ret->verdict = verdict;
	if (verdict == IPC_VERDICT_NO_PROCESS)
		return false;
	ret->rights = rights;
	ret->target_uid = t.uids[0];
	*ret_gid = t.gids[0];
	memcpy(ret->comm, t.comm, sizeof(ret->comm));
	return verdict == IPC_VERDICT_OK;
}

/* Of the agent itself: root, or in user mode nobody but that user. */
static struct access_peer agent_peer(void)
{
	return (struct access_peer){ .pid = getpid(), .uid = getuid(), .gid = getgid(),
				     .admin = getuid() == 0, .pidfd = -1, .known = true,
				     .near_user = true, .near_pid = true };
}

static struct ipc_target_facts facts_of(const struct ipc_started *judged, gid_t gid)
{
	struct ipc_target_facts facts = { .rights = judged->rights, .uid = judged->target_uid, .gid = gid };

	memcpy(facts.comm, judged->comm, sizeof(facts.comm));
	return facts;
}

int candidates_judge_for_rule(struct judge_watch *m)
{
	const struct access_peer agent = agent_peer();
	const pid_t pid = (pid_t)m->asked.pid;
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct ipc_started judged = { 0 };
	gid_t gid = 0;

	if (pidfd < 0) {
		m->status = -errno;
		return -1;
	}
	if (!judge_target(&agent, pid, pidfd, ACCESS_NOT_ASKED, &judged, &gid)) {
		m->status = judged.status < 0 ? judged.status : -EPERM;
		return -1;
	}
	m->status = 0;
	m->target = facts_of(&judged, gid);
	return TAKE_FD(pidfd);
}

/* ------------------------------------------------------------------ answering ---------------- */

static void tell_over(struct judge *j, const struct client *client)
{
	const struct ipc_client m = { .type = IPC_CLIENT, .class = IPC_CLASS_OVER, .id = client->id };

	judge_tell_front(j, &m, sizeof(m), -1);
}

static void audit_refusal(struct judge *j, const struct ipc_start *start, const struct client *client,
			  enum ipc_verdict verdict, uint64_t now)
{
	const struct audit_client who = { .pid = client->peer.pid, .uid = client->peer.uid };

	if (budgets_add(&j->candidates.refusals, client->peer.charge, "session.attach", 1, now))
		audit_attach(&who, start->pid, verdict, false);
}

/* Nothing was said about its rights. */
static bool is_unknown(const struct ipc_started *m)
{
	return m->verdict == IPC_VERDICT_NO_PROCESS || m->verdict == IPC_VERDICT_LIMIT ||
	       m->verdict == IPC_VERDICT_RESCUE || m->verdict == IPC_VERDICT_FAILED;
}

/* Whom it lets in the monitor writes down itself. */
static void tell(struct judge *j, const struct ipc_start *start, struct client *client,
		 const struct ipc_started *m, int channel)
{
	const bool is_refusal = IPC_KIND_HAS_TARGET(start->kind) && m->verdict != IPC_VERDICT_OK;
	const uint64_t now = is_refusal ? clock_now_ns() : 0;

	if (is_refusal)
		audit_refusal(j, start, client, (enum ipc_verdict)m->verdict, now);
	if (start->judge && !is_unknown(m))
		names_judged(&j->names, client->id, (pid_t)start->pid,
			     is_refusal ? IPC_RIGHT_NONE : (enum ipc_right)m->rights);
	judge_tell_front(j, m, sizeof(*m), channel);
	if (is_refusal && clients_refused(client, now))
		tell_over(j, client);
}

static void free_candidate(struct candidate *c)
{
	clients_release(c->client);
	if (c->pidfd >= 0)
		close(c->pidfd);
	free(c);
}

static void remove_candidate(struct candidates *a, struct candidate *c)
{
	struct candidate **link = &a->first;

	while (*link && *link != c)
		link = &(*link)->next;
	if (*link)
		*link = c->next;
}

/* There will be no child. */
static void refuse(struct judge *j, struct candidate *c, const struct ipc_started *m)
{
	remove_candidate(&j->candidates, c);
	tell(j, &c->start, c->client, m, -1);
	free_candidate(c);
}

static struct ipc_started answer_to(const struct candidate *c)
{
	return (struct ipc_started){ .type = IPC_STARTED, .request = c->start.request };
}

static void fail(struct judge *j, struct candidate *c, int error)
{
	struct ipc_started m = answer_to(c);

	m.verdict = IPC_VERDICT_FAILED;
	m.status = error;
	refuse(j, c, &m);
}

void candidates_answered(struct judge *j, const struct ipc_started *m, int channel)
{
	struct candidate *c = j->candidates.first;

	while (c && !(c->is_sent && c->start.request == m->request))
		c = c->next;
	if (!c || m->verdict >= IPC_VERDICT_COUNT) {
		log_error("the monitor answers what nobody has asked: %u", m->request);
		return;
	}
	remove_candidate(&j->candidates, c);
	if ((c->start.kind == IPC_KIND_SESSION || c->start.kind == IPC_KIND_STORE) && !c->start.judge &&
	    m->verdict == IPC_VERDICT_OK)
		names_add(&j->names, &j->clients, c->client, m, (pid_t)c->start.pid);
	tell(j, &c->start, c->client, m, channel);
	free_candidate(c);
}

static void check(struct judge *j, struct client *client)
{
	struct ipc_client m;

	if (clients_check(client, &m))
		judge_tell_client(j, &m);
}

/* Hand it on to the monitor.  @param fds  Of an adapter. */
static void pass(struct judge *j, struct candidate *c, const struct ipc_target_facts *target, const int fds[2])
{
	struct judge_start m = { .type = JUDGE_START, .start = c->start,
				 .client = judge_identity(&c->client->peer) };
	int r = 0;

	if (target)
		m.target = *target;
	if (c->start.kind == IPC_KIND_ADAPTER && fds[0] >= 0)
		r = outbox_pass(&j->monitor, &m, sizeof(m), fds, 2);
	else
		judge_tell_monitor(j, &m, sizeof(m), c->pidfd);
	if (r < 0) {
		fail(j, c, r);
		return;
	}
	c->is_sent = true;
	/* The message has it. */
	if (c->pidfd >= 0)
		close(TAKE_FD(c->pidfd));
}

/* ------------------------------------------------------------------ asking the kernel -------- */

static size_t count_asking(const struct candidates *a)
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

/* @param kernel  As access_judge() has it.  @return false: the kernel must be asked first. */
static bool decide(struct judge *j, struct candidate *c, int kernel)
{
	struct ipc_started m = answer_to(c);
	struct ipc_target_facts facts;
	gid_t gid = 0;

	c->oracle.child = 0;
	if (judge_target(&c->client->peer, (pid_t)c->start.pid, c->pidfd, kernel, &m, &gid)) {
		facts = facts_of(&m, gid);
		pass(j, c, &facts, NULL);
		return true;
	}
	if (m.verdict == ACCESS_VERDICT_ASK)
		return false;
	refuse(j, c, &m);
	return true;
}

/* The kernel has answered, or cannot. */
static void finish(struct judge *j, struct candidate *c, int kernel)
{
	check(j, c->client);
	decide(j, c, kernel);
}

static struct candidate *next_to_ask(const struct candidates *a)
{
	struct candidate *c = a->first;

	while (c && (c->is_sent || c->oracle.child))
		c = c->next;
	return c;
}

/* Ask for those whose turn it is, the oldest first. */
static void ask_for_next(struct judge *j)
{
	struct candidate *c;

	while (count_asking(&j->candidates) < ASKING_MAX && (c = next_to_ask(&j->candidates))) {
		int r = begin_asking(c);

		if (r < 0)
			finish(j, c, r);
	}
}

void candidates_reaped(struct judge *j, pid_t pid, int wait_status)
{
	struct candidate *c = j->candidates.first;

	while (c && c->oracle.child != pid)
		c = c->next;
	if (!c)
		return;
	finish(j, c, oracle_answer(wait_status));
	ask_for_next(j);
}

/* It may have answered in time, and this process looks late. */
static int late_answer(struct oracle *o)
{
	int status;

	return waitpid(o->child, &status, WNOHANG) == o->child ? oracle_answer(status) : oracle_give_up(o);
}

static struct candidate *find_late(const struct candidates *a)
{
	struct candidate *c = a->first;

	while (c && !(c->oracle.child && !clock_left_ms(c->oracle.deadline)))
		c = c->next;
	return c;
}

uint64_t candidates_deadlines(struct judge *j)
{
	struct candidate *late;
	uint64_t earliest;

	while ((late = find_late(&j->candidates)))
		finish(j, late, late_answer(&late->oracle));
	ask_for_next(j);
	earliest = budgets_due(&j->candidates.refusals, clock_now_ns(), false, audit_refusals);
	for (const struct candidate *c = j->candidates.first; c; c = c->next)
		if (c->oracle.child)
			earliest = clock_earlier(earliest, c->oracle.deadline);
	return earliest;
}

void candidates_cancel(struct judge *j)
{
	while (j->candidates.first) {
		struct candidate *c = j->candidates.first;

		j->candidates.first = c->next;
		oracle_give_up(&c->oracle);
		free_candidate(c);
	}
	budgets_due(&j->candidates.refusals, clock_now_ns(), true, audit_refusals);
}

/* ------------------------------------------------------------------ beginning ---------------- */

static bool is_sane(const struct ipc_start *start)
{
	return start->pid <= INT32_MAX && (!start->judge || start->kind == IPC_KIND_SESSION) &&
	       (IPC_KIND_HAS_TARGET(start->kind) || start->kind == IPC_KIND_INSPECT ||
		start->kind == IPC_KIND_STORE || start->kind == IPC_KIND_ADAPTER);
}

static void start_on_target(struct judge *j, struct candidate *c)
{
	struct ipc_started m = answer_to(c);

	c->pidfd = (int)syscall(SYS_pidfd_open, c->start.pid, 0);
	if (c->pidfd < 0) {
		/* EINVAL: a thread id (ENOENT from Linux 6.9 on). */
		m.status = errno == ESRCH || errno == EINVAL || errno == ENOENT ? 0 : -errno;
		m.verdict = m.status ? IPC_VERDICT_FAILED : IPC_VERDICT_NO_PROCESS;
		refuse(j, c, &m);
	} else if (!decide(j, c, ACCESS_NOT_ASKED)) {
		ask_for_next(j);
	}
}

static void start_adapter(struct judge *j, struct candidate *c, const int fds[2])
{
	const struct access_peer *peer = &c->client->peer;
	struct ipc_started m = answer_to(c);

	/* As the same user out here the adapter could do more than its client can in there. */
	m.verdict = IPC_VERDICT_USER_NAMESPACE;
	if (access_peer_is_near(peer))
		pass(j, c, NULL, fds);
	else
		refuse(j, c, &m);
}

static int add(struct candidates *a, const struct ipc_start *start, struct client *client, struct candidate **ret)
{
	struct candidate **link = &a->first, *c;
	size_t n = 0;

	for (; *link; link = &(*link)->next) {
		/* The answers would be told of each other's clients. */
		if ((*link)->start.request == start->request)
			return -EPROTO;
		n++;
	}
	if (n >= IPC_STARTS_MAX)
		return -EPROTO;
	c = malloc(sizeof(*c));
	if (!c)
		return -ENOMEM;
	*c = (struct candidate){ .start = *start, .client = clients_hold(client), .pidfd = -1 };
	*ret = *link = c;
	return 0;
}

static void answer_at_once(struct judge *j, const struct ipc_start *start, int error)
{
	const struct ipc_started m = { .type = IPC_STARTED, .request = start->request,
				       .verdict = IPC_VERDICT_FAILED, .status = error };

	judge_tell_front(j, &m, sizeof(m), -1);
}

int candidates_start(struct judge *j, const struct ipc_start *start, struct client *client, const int fds[2])
{
	struct candidate *c;
	int r;

	/* The frontend may have asked before it was told. */
	if (client->is_over && ++client->n_late > IPC_STARTS_MAX)
		return -EPROTO;
	if (!is_sane(start) || client->is_over) {
		answer_at_once(j, start, client->is_over ? -ECONNABORTED : -EINVAL);
		return 0;
	}
	r = add(&j->candidates, start, client, &c);
	if (r == -ENOMEM)
		answer_at_once(j, start, r);
	if (r < 0)
		return r == -ENOMEM ? 0 : r;
	check(j, client);
	if (IPC_KIND_HAS_TARGET(start->kind))
		start_on_target(j, c);
	else if (start->kind == IPC_KIND_ADAPTER)
		start_adapter(j, c, fds);
	else
		pass(j, c, NULL, fds);
	return 0;
}
