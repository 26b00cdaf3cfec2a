/* SPDX-License-Identifier: MIT */
#include "agentd/worker/session/session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agentd/worker/session/exception.h"
#include "agentd/worker/session/last_look.h"
#include "agentd/worker/process/late_memory.h"
#include "agentd/worker/wait/wait.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/out.h"

#define EVENTS_AT_ONCE 4096
#define FLUSH_MS 500
#define FIRST_CALL_MS 10000
/* Time that a core needs before and after its stop: for copies, threads, the list of code. */
#define AROUND_CORE_MS 2000
/* The longest stop.  The deadline would end a longer one, and there would be no result at all. */
#define STOP_MAX_MS (DEADLINE_CALL_MS - DEADLINE_LEASE_GRACE_MS - AROUND_CORE_MS)

void session_id(const struct session *s, char buf[16])
{
	snprintf(buf, 16, "s%u", s->options->session);
}

/* ------------------------------------------------------------------ deadlines ---------------- */

static uint32_t lease_left_ms(const struct session *s)
{
	return s->lease_end_ns ? (uint32_t)clock_left_ms(s->lease_end_ns) + DEADLINE_LEASE_GRACE_MS
			       : 0;
}

static void arm(struct session *s, uint32_t ms)
{
	deadline_arm(&s->deadline, ms);
	s->undo_armed_until_ns = 0;
}

static void disarm(struct session *s)
{
	deadline_disarm(&s->deadline);
	s->undo_armed_until_ns = 0;
}

static void arm_within_lease(struct session *s, uint32_t ms)
{
	uint32_t left = lease_left_ms(s);

	arm(s, left && left < ms ? left : ms);
}

void session_work_begin(struct session *s)
{
	arm_within_lease(s, DEADLINE_CALL_MS);
}

/*
 * An undo that follows closely upon another has the time that is left: the monitor need not hear of
 * each event.
 */
void session_undo_begin(struct session *s)
{
	if (clock_now_ns() < s->undo_armed_until_ns)
		return;
	arm_within_lease(s, DEADLINE_UNDO_MS);
	s->undo_armed_until_ns = clock_deadline_ms(DEADLINE_UNDO_MS / 4);
}

void session_undo_end(struct session *s)
{
	session_work_begin(s);
}

void session_work_end(struct session *s)
{
	uint32_t left = lease_left_ms(s);

	if (left)
		arm(s, left);
	else
		disarm(s);
}

void session_set_lease(struct session *s, uint32_t ms)
{
	const struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	if (!ms) {
		s->lease_end_ns = 0;
		event_del(s->lease);
		return;
	}
	s->lease_end_ns = clock_deadline_ms(ms);
	event_add(s->lease, &tv);
	session_work_begin(s);
}

/* @return how long queues may stand still, when @p around is needed besides. */
static uint32_t stop_begin(struct session *s, uint32_t ms, uint32_t around, uint32_t grace_ms)
{
	uint32_t all, left;

	if (ms > STOP_MAX_MS)
		ms = STOP_MAX_MS;
	all = ms + around;
	left = s->lease_end_ns ? (uint32_t)clock_left_ms(s->lease_end_ns) : all;
	if (left < all)
		all = left;
	arm(s, all + grace_ms);
	return ms < all ? ms : all;
}

uint32_t session_stop_begin(struct session *s, uint32_t ms)
{
	return stop_begin(s, ms, 0, DEADLINE_LEASE_GRACE_MS);
}

uint32_t session_look_begin(struct session *s, uint32_t ms)
{
	return stop_begin(s, ms, 0, DEADLINE_UNDO_MS);
}

uint32_t session_core_stop_begin(struct session *s, uint32_t ms)
{
	return stop_begin(s, ms, AROUND_CORE_MS, DEADLINE_LEASE_GRACE_MS);
}

uint32_t session_stop_end(struct session *s)
{
	uint32_t left =
		s->lease_end_ns ? (uint32_t)clock_left_ms(s->lease_end_ns) : DEADLINE_CALL_MS;

	session_work_begin(s);
	return left;
}

int session_core_begin(struct session *s, struct target_waves_from *from,
		       const struct target_core_wanted *what, uint32_t stop_ms, struct rpc_arena *a,
		       struct target_core *ret, struct agent_err *err)
{
	int r;

	from->max_stop_ms = session_core_stop_begin(s, stop_ms);
	r = s->target->ops->core_begin(s->target, from, what, a, ret, err);
	session_stop_end(s);
	if (r == 0)
		session_note_stop(s, ret->stopped_us);
	return r;
}

/* ------------------------------------------------------------------ sending ------------------ */

static void over(struct session *s, enum rpc_end_reason reason)
{
	if (!s->over_known) {
		s->over_known = true;
		s->reason = reason;
	}
	event_base_loopbreak(s->base);
}

static void send_text(struct session *s, struct ipc_head *head, const struct out *text)
{
	int r;

	head->size = text ? text->size : 0;
	head->stopped_us = s->stopped_us;
	s->stopped_us = 0;
	r = ipc_link_send(&s->link, head, text ? text->data : NULL);
	if (r < 0) {
		log_debug("session %u: front is gone: %s", s->options->session, strerror(-r));
		over(s, RPC_END_REASON_DETACHED);
	} else if (ipc_link_has_queued(&s->link)) {
		event_add(s->writable, NULL);
	}
}

static void answer(struct session *s, struct out *text, const struct agent_err *err)
{
	struct ipc_head head = { .type = err ? IPC_ERROR : IPC_REPLY,
				 .number = s->call.number,
				 .id = s->call.id };

	if (err) {
		out_reset(text);
		agent_err_encode(text, err);
	}
	if (out_error(text)) {
		struct agent_err no_memory = { 0 };

		agent_err_set(&no_memory, RPC_ERROR_INTERNAL, -out_error(text), NULL, NULL,
			      "the reply does not fit into memory");
		out_deinit(text);
		out_init(text, 0);
		agent_err_encode(text, &no_memory);
		head.type = IPC_ERROR;
	}
	send_text(s, &head, text);
}

void session_tell(struct session *s, enum ipc_frontend_worker_type type, const struct out *text)
{
	struct ipc_head head = { .type = type };

	send_text(s, &head, text);
}

static void tell_vendor(struct session *s)
{
	struct ipc_head head = { .type = IPC_TARGET, .number = s->target->ops->vendor };

	send_text(s, &head, NULL);
}

void session_note_stop(struct session *s, uint64_t stopped_us)
{
	s->stopped_us = stopped_us < UINT32_MAX ? (uint32_t)stopped_us : UINT32_MAX;
	s->looks_ns += stopped_us * 1000;
}

void session_notify(struct session *s, enum rpc_notification n, uint64_t exceptions, const struct out *text)
{
	struct ipc_head head = { .type = IPC_NOTIFY, .number = n, .id = exceptions };

	if (out_error(text))
		log_error("session %u: notification lost: out of memory", s->options->session);
	else
		send_text(s, &head, text);
}

/* @param n  How many queues run again. */
static void notify_resumed(struct session *s, enum rpc_resume_reason reason, size_t n,
			   uint64_t since_ns)
{
	auto_out struct out text;
	char id[16];
	const struct rpc_gpu_resumed_params p = {
		.session = id,
		.reason = reason,
		.queues = (uint32_t)n,
		.stopped_us = (clock_now_ns() - since_ns) / 1000,
	};

	session_id(s, id);
	out_init(&text, 0);
	rpc_gpu_resumed_params_encode(&text, &p);
	session_notify(s, RPC_NOTIFICATION_GPU_RESUMED, 0, &text);
}

/* ------------------------------------------------------------------ calls -------------------- */

static void check_ended(struct session *s)
{
	if (s->target && s->target->ended)
		over(s, s->target->end_reason);
	/* The runtime may have been disabled, which resumes everything. */
	if (s->lease_end_ns && !s->target->n_suspended) {
		session_set_lease(s, 0);
		disarm(s);
	}
	if (s->target)
		suspension_sync(s);
}

void session_lease_taken(struct session *s)
{
	usage_takes(&s->usage, s->call.client, (enum rpc_method)s->call.number, s->call.flags & IPC_FLAG_FORCED,
		    clock_now_ns());
}

static void serve_attach(struct session *s)
{
	auto_out struct out text;
	char id[16];

	out_init(&text, 0);
	session_id(s, id);
	if (s->target && s->call.flags & IPC_FLAG_WRITER)
		session_lease_taken(s);
	if (s->target) {
		const struct access_target *facts = &s->target->facts;
		const struct rpc_session_attach_result result = {
			.session = id,
			.pid = (uint32_t)facts->pid,
			.comm = facts->comm,
			.uid = facts->uids[0],
			.vendor = s->target->ops->vendor,
			.joined = s->call.flags & IPC_FLAG_JOINED,
			.control = s->call.flags & IPC_FLAG_CONTROL,
			.runtime = s->target->runtime,
		};

		rpc_session_attach_result_encode(&text, &result);
	}
	answer(s, &text, s->target ? NULL : &s->attach_err);
	if (!s->target)
		over(s, RPC_END_REASON_DETACHED);
}

/* The frontend has seen to it already, unless it is not itself any more. */
static int check_right(const struct session *s, struct agent_err *err)
{
	if (s->call.number >= RPC_METHOD_COUNT || rpc_methods[s->call.number].right != RPC_RIGHT_CONTROL ||
	    s->call.flags & IPC_FLAG_CONTROL)
		return 0;
	return agent_err_set(err, RPC_ERROR_NOT_PERMITTED, 0, NULL, "ask the owner of the process or an administrator",
			     "you may look at process %d, but not control it", (int)s->options->pid);
}

/* Whoever calls that has the lease; the handler of session.control sees to the other way to get it. */
static bool uses_lease(uint32_t method)
{
	return method < RPC_METHOD_COUNT && (rpc_methods[method].lease || method == RPC_METHOD_GPU_RESUME);
}

static void serve_method(struct session *s, struct ipc_message *m)
{
	auto_rpc_arena struct rpc_arena arena;
	auto_out struct out text;
	struct agent_err err = { 0 };
	int r;

	rpc_arena_init(&arena, 0);
	out_init(&text, 0);
	s->call_fd = TAKE_FD(m->fd);
	session_work_begin(s);
	r = check_right(s, &err);
	if (r == 0) {
		if (uses_lease(m->head.number))
			session_lease_taken(s);
		usage_called(&s->usage, s->call.client, (enum rpc_method)m->head.number, clock_now_ns());
		r = rpc_session_dispatch(&session_handlers, s, NULL, &arena,
					 (enum rpc_method)m->head.number, m->text, (size_t)m->head.size,
					 &text, &err);
	}
	session_work_end(s);
	suspension_sync(s);
	/* No handler wanted the descriptor. */
	if (s->call_fd >= 0)
		close(TAKE_FD(s->call_fd));
	if (r < 0)
		log_debug("session %u: %s: %s", s->options->session,
			  m->head.number < RPC_METHOD_COUNT ? rpc_methods[m->head.number].name : "?",
			  err.message);
	answer(s, &text, r < 0 ? &err : NULL);
}

int session_subscribe(struct session *s, struct agent_err *err)
{
	const struct subscriber all = subscribers_sum(&s->subscribers);
	struct target *t = s->target;
	int r = t->ops->subscribe(t, all.exceptions, all.hold, err);

	if (t->event_swallowed)
		event_active(s->target_event, EV_READ, 1);
	t->event_swallowed = false;
	return r;
}

void session_subscribe_again(struct session *s)
{
	struct agent_err err = { 0 };
	unsigned tries = 0;
	int r;

	do
		r = session_subscribe(s, &err);
	while (r < 0 && !s->target->ended && undo_again(&tries));
	if (r == 0)
		return;
	log_error("session %u: subscriptions that stay: %s", s->options->session, err.message);
	target_undo_failed(s->target, r);
}

/* A client has left: its subscription ends, and those of the others go on. */
static void client_left(struct session *s, uint64_t client)
{
	usage_left(&s->usage, client, clock_now_ns());
	if (!subscribers_remove(&s->subscribers, client))
		return;
	session_undo_begin(s);
	session_subscribe_again(s);
	session_work_end(s);
}

static void lease_lost(struct session *s, enum rpc_resume_reason why)
{
	struct target *t = s->target;
	size_t n = t->n_suspended;
	uint64_t since_ns = t->suspended_since_ns;
	struct agent_err err = { 0 };

	session_undo_begin(s);
	if (s->core_user == CORE_CLIENT)
		s->core_user = CORE_NOBODY;
	/* A client that stays, without the lease, holds nothing back any more. */
	subscribers_release(&s->subscribers);
	if (target_undo(t, t->lease_mark, &err) < 0)
		log_error("session %u: undo after the writer left: %s: the session ends, the kernel undoes it",
			  s->options->session, err.message);
	/* What the writer held back is sent on; those who only listen miss nothing. */
	else if (s->subscribers.n)
		session_subscribe_again(s);
	session_set_lease(s, 0);
	session_work_end(s);
	suspension_sync(s);
	if (n > t->n_suspended)
		notify_resumed(s, why, n - t->n_suspended, since_ns);
}

static void take_rule(struct session *s, const struct ipc_rule *rule)
{
	struct agent_err err = { 0 };
	int r = -ESRCH;

	event_del(s->no_call);
	if (s->target) {
		session_work_begin(s);
		r = rule_engine_set(&s->rule, rule, &err);
		session_work_end(s);
	}
	if (r == 0)
		return;
	log_line(rule->again ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING,
		 "rule %s: process %d is not watched: %s", rule->name, (int)s->options->pid,
		 s->target ? err.message : s->attach_err.message);
	over(s, s->target && s->target->ended ? s->target->end_reason : RPC_END_REASON_DETACHED);
}

/* Take a message of the monitor.  @return 1, 0 at end of file, -EAGAIN, other -errno. */
static int read_guard(struct session *s)
{
	int fds[FD_MESSAGE_MAX];
	union ipc_worker_message m = { 0 };
	size_t n_fds;
	ssize_t n = fd_recv(s->deadline.fd, &m, sizeof(m), fds, &n_fds);

	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
	if (n <= 0)
		return (int)n;
	if (m.type == IPC_LET_IN && (size_t)n == sizeof(m.let_in))
		return usage_let_in(&s->usage, &m.let_in) < 0 ? -ENOMEM : 1;
	if (m.type != IPC_RULE || (size_t)n != sizeof(m.rule))
		return -EPROTO;
	take_rule(s, &m.rule);
	return 1;
}

/*
 * Does the call come from somebody whom the monitor has let in?  It may do what the monitor says, and
 * what the frontend says.
 */
static bool admit(struct session *s)
{
	struct usage_client *client = usage_admit(&s->usage, s->call.client);

	/* The monitor says it before the frontend knows, so that it is there by now. */
	while (!client && read_guard(s) == 1)
		client = usage_admit(&s->usage, s->call.client);
	if (!client)
		return false;
	if (client->rights < IPC_RIGHT_CONTROL)
		s->call.flags &= ~IPC_FLAG_CONTROL;
	if (!client->admin)
		s->call.flags &= ~IPC_FLAG_ADMIN;
	return true;
}

/* It is nobody's fault if that client was forgotten, and those who use the session go on. */
static void refuse_stranger(struct session *s)
{
	auto_out struct out text;
	struct agent_err err = { 0 };

	out_init(&text, 0);
	if (s->usage.has_forgotten) {
		agent_err_set(&err, RPC_ERROR_LIMIT, 0, NULL, "attach again",
			      "too many clients use the session on process %d", (int)s->options->pid);
		answer(s, &text, &err);
		return;
	}
	log_error("session %u: front speaks for a client that the monitor has not let in", s->options->session);
	over(s, RPC_END_REASON_STOPPED);
}

static void on_message(struct session *s, struct ipc_message *m)
{
	if (m->head.type == IPC_CALL) {
		s->call = m->head;
		if (!admit(s)) {
			refuse_stranger(s);
			return;
		}
		event_del(s->no_call);
		if (!s->target || m->head.number == RPC_METHOD_SESSION_ATTACH)
			serve_attach(s);
		else
			serve_method(s, m);
	} else if (m->head.type == IPC_LEASE_LOST) {
		if (s->target)
			lease_lost(s, (enum rpc_resume_reason)m->head.number);
	} else if (m->head.type == IPC_CLIENT_LEFT) {
		client_left(s, m->head.client);
	} else if (m->head.type == IPC_READERS) {
		readers_take(s, m);
	} else {
		log_error("session %u: unknown message %u", s->options->session, m->head.type);
		over(s, RPC_END_REASON_STOPPED);
	}
}

static void on_readable(evutil_socket_t fd, short what, void *user)
{
	struct session *s = user;
	struct ipc_message m;
	int r = ipc_link_recv(&s->link, &m);

	/*
	 * One call at a time is served, so that a stop of the leader never waits for a queue of
	 * calls.
	 */
	if (r == 1) {
		on_message(s, &m);
		ipc_message_deinit(&m);
		check_ended(s);
	} else if (r != -EAGAIN) {
		if (r < 0)
			log_error("session %u: bad message: %s", s->options->session, strerror(-r));
		over(s, RPC_END_REASON_DETACHED);
	}
}

static void on_writable(evutil_socket_t fd, short what, void *user)
{
	struct session *s = user;

	if (ipc_link_flush(&s->link) < 0)
		over(s, RPC_END_REASON_DETACHED);
	else if (ipc_link_has_queued(&s->link))
		event_add(s->writable, NULL);
}

static void on_guard(evutil_socket_t fd, short what, void *user)
{
	int r = read_guard(user);

	if (r != 1 && r != -EAGAIN)
		over(user, RPC_END_REASON_STOPPED);
}

static void on_term(evutil_socket_t fd, short what, void *user)
{
	over(user, RPC_END_REASON_STOPPED);
}

static void on_no_call(evutil_socket_t fd, short what, void *user)
{
	over(user, RPC_END_REASON_DETACHED);
}

static void lease_ends(struct session *s)
{
	struct target *t = s->target;
	size_t n = t->n_suspended, n_results;
	uint64_t since_ns = t->suspended_since_ns;
	struct rpc_queue_result *results;
	auto_rpc_arena struct rpc_arena arena;
	struct agent_err err = { 0 };
	int r;

	rpc_arena_init(&arena, 0);
	session_undo_begin(s);
	r = n ? t->ops->resume(t, NULL, 0, &arena, &results, &n_results, &err) : 0;
	session_set_lease(s, 0);
	session_work_end(s);
	suspension_sync(s);
	if (r < 0)
		log_error("session %u: queues do not resume at the end of the lease: %s: the session ends, the kernel resumes them",
			  s->options->session, err.message);
	if ((r < 0 || t->n_suspended) && !t->ended)
		target_undo_failed(t, r);
	if (n > t->n_suspended)
		notify_resumed(s, suspension_end_reason(s), n - t->n_suspended, since_ns);
	check_ended(s);
}

/* libevent counts from a coarse clock, which may be a few milliseconds behind: so much earlier its timers end. */
static bool waits_for_rest(struct session *s)
{
	const int left = s->lease_end_ns ? clock_left_ms(s->lease_end_ns) : 0;
	const struct timeval tv = { .tv_sec = left / 1000, .tv_usec = left % 1000 * 1000 };

	return left && event_add(s->lease, &tv) == 0;
}

static void on_lease_end(evutil_socket_t fd, short what, void *user)
{
	if (!waits_for_rest(user))
		lease_ends(user);
}

/* ------------------------------------------------------------------ the target --------------- */

static void announce_runtime(struct session *s)
{
	auto_out struct out text;
	char id[16];
	const struct rpc_runtime_changed_params p = { .session = id,
						      .runtime = s->target->runtime };

	session_id(s, id);
	out_init(&text, 0);
	rpc_runtime_changed_params_encode(&text, &p);
	session_notify(s, RPC_NOTIFICATION_RUNTIME_CHANGED, 0, &text);
}

/* @return 1 when an event was handled, 0 when there is none, or negative. */
static int handle_event(struct session *s, struct agent_err *err)
{
	struct target *t = s->target;
	struct target_event e;
	bool kept = false;
	int r;

	if (t->ops->slow_events)
		session_work_begin(s);
	else
		session_undo_begin(s);
	r = t->ops->event_next(t, &e, err);
	if (r <= 0)
		return r;
	/*
	 * The target waits in the runtime handshake: it is answered first, clients are told later.
	 */
	if (e.kind == TARGET_EVENT_EXCEPTION)
		kept = session_exception(s, &e);
	session_undo_begin(s);
	r = kept ? 0 : t->ops->event_done(t, &e, err);
	if (e.kind == TARGET_EVENT_RUNTIME)
		announce_runtime(s);
	return r < 0 ? r : 1;
}

static void on_target_event(evutil_socket_t fd, short what, void *user)
{
	struct session *s = user;
	struct target *t = s->target;
	struct agent_err err = { 0 };
	/* First empty the descriptor, then ask: the other order loses wake-ups. */
	int drained = t->ops->event_drain(t), r = 1;

	for (int i = 0; i < EVENTS_AT_ONCE && r == 1; i++) {
		r = handle_event(s, &err);
		leader_poll(&t->leader, t->leader_sys);
	}
	session_work_end(s);
	if (r == 1)
		event_active(s->target_event, EV_READ, 1);
	if (r < 0 && !t->ended)
		log_warning("session %u: %s", s->options->session, err.message);
	/* End of file: the kernel has dropped the session, whatever else it said. */
	if (drained < 0 && !t->ended)
		target_end(t, target_why_gone(t), "events", NULL);
	check_ended(s);
}

static void on_child(evutil_socket_t fd, short what, void *user)
{
	struct session *s = user;
	enum leader_state state = leader_poll(&s->target->leader, s->target->leader_sys);

	if (state == LEADER_EXEC)
		over(s, RPC_END_REASON_EXEC);
	else if (state == LEADER_GONE)
		over(s, target_why_gone(s->target));
}

static void on_target_exit(evutil_socket_t fd, short what, void *user)
{
	over(user, RPC_END_REASON_EXITED);
}

/* ------------------------------------------------------------------ life --------------------- */

static bool add(struct session *s, struct event **ret, int fd, short what, event_callback_fn fn,
		bool on)
{
	*ret = event_new(s->base, fd, what, fn, s);
	return *ret && (!on || event_add(*ret, NULL) == 0);
}

/*
 * libevent ends the process where it cannot have a descriptor for its signals.  Nothing is to be done
 * at such an end: whoever watches this process releases what it held.
 */
static void on_fatal(int error)
{
	_exit(1);
}

/* Make what is needed before the target is touched; the signals are caught from here on. */
static int setup(struct session *s)
{
	const struct timeval first = { .tv_sec = FIRST_CALL_MS / 1000 };
	sigset_t none;

	event_set_fatal_callback(on_fatal);
	s->base = event_base_new();
	if (!s->base || event_base_priority_init(s->base, 2) < 0)
		return -ENOMEM;
	if (!add(s, &s->term, SIGTERM, EV_SIGNAL | EV_PERSIST, on_term, true) ||
	    !add(s, &s->child, SIGCHLD, EV_SIGNAL | EV_PERSIST, on_child, false) ||
	    !add(s, &s->readable, s->link.fd, EV_READ | EV_PERSIST, on_readable, true) ||
	    !add(s, &s->writable, s->link.fd, EV_WRITE, on_writable, false) ||
	    !add(s, &s->deadline_read, s->deadline.fd, EV_READ | EV_PERSIST, on_guard, true) ||
	    !add(s, &s->lease, -1, 0, on_lease_end, false) ||
	    !add(s, &s->no_call, -1, 0, on_no_call, false) || event_add(s->no_call, &first) < 0)
		return -ENOMEM;
	/* The monitor has blocked SIGTERM until this handler is there. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	return event_priority_set(s->child, 0) < 0 ? -EINVAL : 0;
}

static int watch_target(struct session *s)
{
	if (!add(s, &s->target_exit, IPC_FD_TARGET, EV_READ | EV_PERSIST, on_target_exit, true) ||
	    !add(s, &s->target_event, s->target->event_fd, EV_READ | EV_PERSIST, on_target_event,
		 true) ||
	    event_add(s->child, NULL) < 0)
		return -ENOMEM;
	/* Stops and events may have come before these were watched. */
	event_active(s->child, EV_SIGNAL, 1);
	event_active(s->target_event, EV_READ, 1);
	return 0;
}

static void flush(struct session *s)
{
	uint64_t deadline = clock_deadline_ms(FLUSH_MS);

	while (ipc_link_has_queued(&s->link) && clock_left_ms(deadline)) {
		struct pollfd p = { .fd = s->link.fd, .events = POLLOUT };

		if (poll(&p, 1, clock_left_ms(deadline)) <= 0 || ipc_link_flush(&s->link) < 0)
			return;
	}
}

/*
 * @return whether the target is free: where the kernel does not do what it is told, the end of this
 *         process frees the target, and must not wait for anything.
 */
static bool undo_all(struct session *s)
{
	struct target *t = s->target;
	struct agent_err err = { 0 };
	int r;

	arm(s, DEADLINE_UNDO_MS);
	rule_engine_stop(&s->rule);
	arm(s, DEADLINE_UNDO_MS);
	r = undo_run(&t->undo, 0, &err);
	if (r >= 0 || s->reason == RPC_END_REASON_EXITED || s->reason == RPC_END_REASON_EXEC)
		return true;
	if (r == -ESRCH && target_why_gone(t) != RPC_END_REASON_LOST)
		return true;
	log_warning("session %u: release of process %d: %s: left to the kernel", s->options->session,
		    (int)t->facts.pid, err.message);
	return false;
}

/* Undo everything, say that it is over.  @return exit status. */
static int end(struct session *s)
{
	struct target *t = s->target;
	struct ipc_head head = { .type = IPC_OVER, .number = s->reason };
	bool is_free;

	if (!t) {
		flush(s);
		return s->look ? IPC_EXIT_LOOK : 0;
	}
	is_free = undo_all(s);
	s->look = target_needs_nudge(t);
	if (is_free) {
		arm(s, DEADLINE_LEAVE_MS);
		rule_engine_finish(&s->rule);
	}
	suspension_sync(s);
	usage_end(&s->usage);
	ipc_link_send(&s->link, &head, NULL);
	flush(s);
	log_debug("session %u: over: %s", s->options->session, rpc_end_reason_name(s->reason));
	return s->look ? IPC_EXIT_LOOK : 0;
}

static void cleanup(struct session *s)
{
	struct event *const events[] = { s->readable,     s->writable,    s->deadline_read,
					 s->target_event, s->target_exit, s->child,
					 s->term,         s->lease,       s->no_call,
					 s->soon };

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (events[i])
			event_free(events[i]);
	rule_engine_deinit(&s->rule);
	if (s->base)
		event_base_free(s->base);
	target_destroy(s->target);
	subscribers_deinit(&s->subscribers);
	usage_deinit(&s->usage);
	last_look_free(s->last_look);
	wait_history_free(s->looks);
	late_memory_destroy(s->late_memory);
	ipc_link_deinit(&s->link);
}

int session_run(const struct worker_options *o)
{
	struct session s = { .options = o,
			     .deadline = { .fd = IPC_FD_MONITOR },
			     .store_fd = -1,
			     .usage = { .fd = IPC_FD_MONITOR },
			     .rule = RULE_ENGINE_NULL,
			     .reason = RPC_END_REASON_DETACHED };
	int status = 1, r;

	ipc_link_init(&s.link, IPC_FD_FRONT);
	readers_init(&s.readers, o->observer_stops_ms, o->observer_stop_rate_ms, clock_now_ns());
	/* libevent restores the default in cleanup(): a SIGTERM then must not look like a death. */
	signal(SIGTERM, SIG_IGN);
	r = setup(&s);
	if (r == 0)
		r = target_attach(o, &s.target, &s.look, &s.attach_err);
	else
		agent_err_set(&s.attach_err, RPC_ERROR_INTERNAL, -r, "attach", NULL,
			      "out of memory");
	if (r == 0 && watch_target(&s) < 0)
		over(&s, RPC_END_REASON_STOPPED);
	if (r == 0) {
		const struct rule_host host = session_rule_host(&s);

		s.usage.owner = s.target->facts.uids[0];
		rule_engine_init(&s.rule, &host);
		tell_vendor(&s);
	}
	deadline_disarm(&s.deadline);
	if (r < 0)
		log_debug("session %u: attach to %d: %s", o->session, (int)o->pid,
			  s.attach_err.message);
	if (s.base) {
		while (!s.over_known && event_base_loop(s.base, EVLOOP_ONCE) == 0)
			;
		status = end(&s);
	}
	cleanup(&s);
	return status;
}
