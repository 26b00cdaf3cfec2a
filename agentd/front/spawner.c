/* SPDX-License-Identifier: MIT */
#include "agentd/front/spawner.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/front/adapters.h"
#include "agentd/front/closing.h"
#include "agentd/front/cores.h"
#include "agentd/front/hooks.h"
#include "agentd/front/lease.h"
#include "agentd/front/rules.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

/* Beyond the method's own time: starting the worker, and the way back. */
#define START_GRACE_MS	1500
#define INSPECT_CALL_MS 10000
/*
 * The sockets hold some 270 messages in each direction, and starting a worker takes milliseconds:
 * no more than this is asked at a time, however much the clients want.
 */
#define ASKED_MAX 32

/* They may run for minutes, and nobody else shall wait for them. */
#define HOOKS_ASKED_MAX 16

static void send_with(struct front *f, const void *msg, size_t size, const int *fds, size_t n_fds)
{
	ssize_t n = f->spawn_fd < 0 ? 0 : fd_send(f->spawn_fd, msg, size, fds, n_fds);

	if (n < 0) {
		/* Without spawn nothing can be started or freed: leave, workers follow. */
		if (n != -EPIPE)
			log_error("the parent takes no messages (%s): exiting", strerror((int)-n));
		event_base_loopbreak(f->base);
	}
}

static void send_message(struct front *f, const void *msg, size_t size, int fd)
{
	send_with(f, msg, size, &fd, fd >= 0);
}

int spawner_ask_hooks(struct request *r, const char *rule, uint32_t uid, int document_fd)
{
	struct front *f = r->front;
	const int fds[] = { r->conn->peer_fd, document_fd };
	struct ipc_hooks m = { .type = IPC_HOOKS, .uid = uid };

	if (f->n_hooks_asked >= HOOKS_ASKED_MAX)
		return -EBUSY;
	f->n_hooks_asked++;
	m.request = r->start_id = ++f->last_request;
	str_copy(m.rule, sizeof(m.rule), rule);
	request_own(r, &f->starting);
	send_with(f, &m, sizeof(m), fds, document_fd >= 0 ? 2 : 1);
	return 0;
}

void spawner_note(struct front *f, enum ipc_note_kind kind, uint32_t value)
{
	const struct ipc_note m = { .type = IPC_NOTE, .kind = kind, .value = value };

	send_message(f, &m, sizeof(m), -1);
}

void spawner_drop(struct front *f, int fd, uid_t uid)
{
	const struct ipc_drop m = { .type = IPC_DROP, .uid = uid };

	send_message(f, &m, sizeof(m), fd);
}

void spawner_status(struct front *f)
{
	const struct ipc_note m = { .type = IPC_NOTE,
				    .kind = IPC_NOTE_STATUS,
				    .value = f->n_sessions << 16 | (f->n_conns & 0xffff) };

	/* Only figures: when the socket is full, later ones tell more. */
	if (f->spawn_fd >= 0)
		fd_send(f->spawn_fd, &m, sizeof(m), NULL, 0);
}

static void start_expired(int fd, short what, void *user)
{
	struct agent_err err = { 0 };

	agent_err_set(&err, RPC_ERROR_TIMEOUT, 0, "start worker", "try again",
		      "the agent could not start a worker in time");
	agent_err_set_resumed(&err, true);
	request_fail(user, &err);
}

static void ask(struct request *r)
{
	struct front *f = r->front;
	const int fds[] = { r->conn->peer_fd, r->early_fd };
	struct ipc_start m = { .type = IPC_START,
			       .request = ++f->last_request,
			       .kind = r->start_kind,
			       .pid = r->pid,
			       .timeout_ms = r->start_ms };

	r->start_id = m.request;
	request_own(r, &f->starting);
	f->n_asked++;
	send_with(f, &m, sizeof(m), fds, r->early_fd >= 0 ? 2 : 1);
}

static void ask_waiting(struct front *f)
{
	while (f->n_asked < ASKED_MAX && !LIST_EMPTY(&f->waiting)) {
		struct request *r = LIST_FIRST(&f->waiting), *next;
		struct agent_err nobody_hears = { 0 };

		/* The oldest is the last. */
		while ((next = LIST_NEXT(r, in_owner)))
			r = next;
		if (r->conn)
			ask(r);
		else
			request_fail(r, &nobody_hears);
	}
}

void spawner_start(struct request *r, enum ipc_kind kind, uint32_t timeout_ms)
{
	r->start_kind = kind;
	r->start_ms = timeout_ms;
	r->start_end_ns = clock_deadline_ms(timeout_ms);
	request_own(r, &r->front->waiting);
	request_deadline(r, timeout_ms + START_GRACE_MS, start_expired);
	ask_waiting(r->front);
}

void spawner_start_again(struct request *r)
{
	int left = clock_left_ms(r->start_end_ns);

	spawner_start(r, r->start_kind, left > 0 ? (uint32_t)left : 1);
}

static int refuse(const struct ipc_started *m, uint32_t pid, struct agent_err *err)
{
	static const struct {
		int32_t code;
		const char *message, *hint;
	} verdicts[IPC_VERDICT_COUNT] = {
		[IPC_VERDICT_NO_PROCESS] = { RPC_ERROR_NO_SUCH_PROCESS, "there is no process %u",
					     "check the number: a thread id or a pid of another pid namespace does not count" },
		[IPC_VERDICT_KERNEL_THREAD] = { RPC_ERROR_NOT_DEBUGGABLE,
						"process %u is a kernel thread", "choose a user process" },
		[IPC_VERDICT_OTHER_USER] = { RPC_ERROR_NOT_PERMITTED,
					     "process %u belongs to another user",
					     "run as its owner or root, or become a member of the agent's admin group" },
		[IPC_VERDICT_NOT_DUMPABLE] = { RPC_ERROR_NOT_PERMITTED,
					       "process %u does not let itself be debugged (not dumpable)",
					       "run as root, or let the program call prctl(PR_SET_DUMPABLE, 1)" },
		[IPC_VERDICT_USER_NAMESPACE] = { RPC_ERROR_NOT_PERMITTED,
						 "process %u lives in a user namespace that is not yours",
						 "ask as root of the host" },
		[IPC_VERDICT_PID_NAMESPACE] = { RPC_ERROR_NOT_PERMITTED,
						"process %u is none that you can see: it lives outside your pid namespace",
						"ask as its owner outside, or as root of the host" },
		[IPC_VERDICT_CAPABILITIES] = { RPC_ERROR_NOT_PERMITTED,
					       "process %u has capabilities that you have not",
					       "ask as root, or become a member of the agent's admin group" },
		[IPC_VERDICT_OTHER_GROUP] = { RPC_ERROR_NOT_PERMITTED,
					      "process %u runs with other group ids than you",
					      "connect with its group (newgrp), or ask as root" },
		[IPC_VERDICT_KERNEL] = { RPC_ERROR_NOT_PERMITTED,
					 "the kernel does not let you look into process %u",
					 "ask as root; the policy of a security module may say more" },
		[IPC_VERDICT_UNKNOWN_PEER] = { RPC_ERROR_NOT_PERMITTED,
					       "who asks about process %u is not known: whoever connected has ended, or is not visible from here",
					       "connect from the process that asks" },
		[IPC_VERDICT_OWN_PROCESS] = { RPC_ERROR_NOT_PERMITTED,
					      "process %u is part of the agent", "choose another process" },
		[IPC_VERDICT_LIMIT] = { RPC_ERROR_LIMIT, "too many sessions are open (process %u)",
					"detach from another process, or raise [limits] in agentd.conf" },
		[IPC_VERDICT_RESCUE] = { RPC_ERROR_BUSY,
					 "the agent is still undoing what an earlier session did to process %u",
					 "try again in a second" },
		[IPC_VERDICT_FAILED] = { RPC_ERROR_FAILED, "cannot start a worker for process %u",
					 "see the agent's log" },
	};

	if (m->verdict == IPC_VERDICT_OK)
		return 0;
	if (m->verdict >= IPC_VERDICT_COUNT || !verdicts[m->verdict].code)
		return agent_err_set(err, RPC_ERROR_INTERNAL, 0, NULL, NULL, "unknown verdict %u",
				     m->verdict);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	return agent_err_set(err, verdicts[m->verdict].code, -m->status, "authorise",
			     verdicts[m->verdict].hint, verdicts[m->verdict].message, pid);
#pragma GCC diagnostic pop
}

static void started_inspect(struct request *r, const struct ipc_started *m, int take_channel)
{
	struct session *s = session_create(r->front, m, IPC_KIND_INSPECT, 0, r->pid, take_channel);
	struct agent_err err = { 0 };

	if (s) {
		session_call(s, r, r->params, r->params_size, 0, INSPECT_CALL_MS);
		return;
	}
	agent_err_set(&err, RPC_ERROR_INTERNAL, ENOMEM, NULL, NULL, "out of memory");
	request_fail(r, &err);
}

/* The client's place in the session, before the worker has said whether attaching worked. */
static int enter_session(struct request *r, const struct ipc_started *m, struct session *s,
			 struct agent_err *err)
{
	struct attachment *a;
	int e;

	if (!s)
		return agent_err_set(err, RPC_ERROR_INTERNAL, ENOMEM, NULL, NULL, "out of memory");
	a = session_attach(s, r->conn, (enum ipc_right)m->rights);
	if (!a)
		return agent_err_set(err, RPC_ERROR_INTERNAL, ENOMEM, NULL, NULL, "out of memory");
	a->user_ns = m->user_ns;
	e = r->control ? lease_take(a, (enum lease_want)r->want, r, err) : 0;
	if (e < 0 && !a->established)
		session_leave(a);
	return e;
}

static void started_session(struct request *r, const struct ipc_started *m, int take_channel)
{
	struct front *f = r->front;
	struct session *s;
	struct agent_err err = { 0 };
	uint32_t flags = m->joined ? IPC_FLAG_JOINED : 0;

	if (!r->conn) {
		if (!m->joined)
			session_create_orphan(f, m, take_channel);
		request_fail(r, &err);
		return;
	}
	if (m->joined)
		s = session_find_worker(f, m->worker);
	else
		s = session_create(f, m, IPC_KIND_SESSION, m->session, r->pid, take_channel);
	if (s && (s->closing || s->over)) {
		/* The worker is on its way out: ask again when spawn has reaped it. */
		request_own(r, &s->comers);
		return;
	}
	if (enter_session(r, m, s, &err) < 0) {
		request_fail(r, &err);
		return;
	}
	if (m->rights >= IPC_RIGHT_CONTROL)
		flags |= IPC_FLAG_CONTROL;
	session_call(s, r, NULL, 0, flags, r->start_ms + START_GRACE_MS);
}

static struct request *find_starting(struct front *f, uint32_t id)
{
	struct request *r;

	LIST_FOREACH(r, &f->starting, in_owner)
		if (r->start_id == id)
			return r;
	return NULL;
}

static void handle_started(struct front *f, const struct ipc_started *m, int take_channel)
{
	struct request *r = find_starting(f, m->request);
	struct agent_err err = { 0 };
	int e = !r				   ? -ETIMEDOUT :
		r->start_kind == IPC_KIND_ADAPTER ? adapters_refused(m, &err) :
						    refuse(m, r->pid, &err);

	if (e == 0 && !m->joined && take_channel < 0)
		e = agent_err_set(&err, RPC_ERROR_LIMIT, EMFILE, "start worker",
				  "close connections you no longer need",
				  "the agent has no descriptor left");
	/* Refused after all, or answered with a timeout already: the worker is sent away. */
	if (e < 0 && m->worker && !m->joined)
		session_create_orphan(f, m, take_channel);
	else if (e < 0 && take_channel >= 0)
		close(take_channel);
	if (e < 0 && r)
		request_fail(r, &err);
	if (e < 0)
		return;
	if (r->start_kind == IPC_KIND_ADAPTER) {
		adapters_started(r, take_channel);
	} else if (r->method == RPC_METHOD_SESSION_ATTACH) {
		started_session(r, m, take_channel);
	} else if (r->start_kind == IPC_KIND_STORE) {
		cores_started(r, m, take_channel);
	} else {
		started_inspect(r, m, take_channel);
	}
}

static void handle_ended(struct front *f, const struct ipc_ended *m)
{
	struct session *s = session_find_worker(f, m->worker);

	if (s)
		session_worker_ended(s, (enum ipc_how)m->how);
}

static int receive(struct front *f)
{
	union {
		uint32_t type;
		struct ipc_started started;
		struct ipc_ended ended;
		struct ipc_hooked hooked;
		struct ipc_watch watch;
		struct ipc_rule_name rule;
		struct ipc_limits limits;
		struct ipc_closer closer;
		struct ipc_ping ping;
		struct ipc_note note;
	} m;
	int fds[FD_MESSAGE_MAX];
	size_t n_fds;
	ssize_t n;

	memset(&m, 0, sizeof(m));
	n = fd_recv(f->spawn_fd, &m, sizeof(m), fds, &n_fds);
	/* What brings a descriptor, and lost it, is as good without. */
	if (n == -EMFILE)
		n = m.type == IPC_STARTED ? sizeof(m.started) :
		    m.type == IPC_WATCH	  ? sizeof(m.watch) : sizeof(m.hooked);
	if (n <= 0)
		return n == 0 ? -EPIPE : (int)n;
	while (n_fds > 1)
		close(fds[--n_fds]);
	if ((size_t)n == sizeof(m.started) && m.type == IPC_STARTED) {
		f->n_asked--;
		handle_started(f, &m.started, n_fds ? fds[0] : -1);
		ask_waiting(f);
	} else if ((size_t)n == sizeof(m.ended) && m.type == IPC_ENDED && !n_fds) {
		handle_ended(f, &m.ended);
	} else if ((size_t)n == sizeof(m.hooked) && m.type == IPC_HOOKED) {
		f->n_hooks_asked--;
		hooks_answered(find_starting(f, m.hooked.request), m.hooked.status, n_fds ? fds[0] : -1);
	} else if ((size_t)n == sizeof(m.watch) && m.type == IPC_WATCH) {
		rules_watch(f, &m.watch, n_fds ? fds[0] : -1);
	} else if ((size_t)n == sizeof(m.rule) && m.type == IPC_RULE_NAME && !n_fds) {
		rules_named(f, &m.rule);
	} else if ((size_t)n == sizeof(m.limits) && m.type == IPC_LIMITS && !n_fds) {
		conn_set_limits(f, &m.limits);
	} else if ((size_t)n == sizeof(m.closer) && m.type == IPC_CLOSER && !n_fds) {
		closing_received(f, &m.closer);
	} else if ((size_t)n == sizeof(m.ping) && m.type == IPC_PING && !n_fds) {
		spawner_note(f, IPC_NOTE_PONG, m.ping.number);
	} else if ((size_t)n == sizeof(m.note) && m.type == IPC_NOTE &&
		   m.note.kind == IPC_NOTE_OWED && !n_fds) {
		f->n_owed++;
	} else {
		return -EPROTO;
	}
	return 0;
}

static void spawn_readable(int fd, short what, void *user)
{
	struct front *f = user;
	int r;

	while ((r = receive(f)) == 0)
		;
	if (r == -EAGAIN)
		return;
	/* End of file is how spawn asks us to leave. */
	if (r != -EPIPE)
		log_error("message from the parent: %s", strerror(-r));
	event_base_loopbreak(f->base);
}

int spawner_init(struct front *f, int spawn_fd)
{
	f->spawn_fd = spawn_fd;
	f->spawn_event = event_new(f->base, spawn_fd, EV_READ | EV_PERSIST, spawn_readable, f);
	return f->spawn_event && event_add(f->spawn_event, NULL) == 0 ? 0 : -ENOMEM;
}

static void drop_all(struct request_list *list)
{
	struct agent_err nobody_hears = { 0 };

	while (!LIST_EMPTY(list))
		request_fail(LIST_FIRST(list), &nobody_hears);
}

void spawner_deinit(struct front *f)
{
	drop_all(&f->starting);
	drop_all(&f->waiting);
}
