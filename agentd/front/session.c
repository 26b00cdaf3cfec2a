/* SPDX-License-Identifier: MIT */
#include "agentd/front/session.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/front/lease.h"
#include "agentd/front/net.h"
#include "agentd/front/rules.h"
#include "agentd/front/spawner.h"
#include "agentd/front/start.h"
#include "agentd/front/suspensions.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/out.h"
#include "base/str.h"
#include "protocol/rpc_message.h"

/* More than undoing takes, less than the client of session.detach waits. */
#define END_MS 7000
/* Text of unanswered calls, which waits in memfds while the worker is busy. */
#define CALL_BYTES_MAX ((size_t)8 << 20)
/* Timers are a little early; what a worker may take for one call is that much shorter at least. */
#define TIMER_SLACK_MS 1000
/* Then others get their turn. */
#define MESSAGES_AT_ONCE 64
/* Of a core on its way to a client; the system may allow less. */
#define STREAM_BYTES (512 << 10)
/* A store process that has had nothing to do for so long is sent away. */
#define STORE_IDLE_S 30

static void channel_readable(int fd, short what, void *user);

static void channel_writable(int fd, short what, void *user)
{
	struct session *s = user;

	/* A dead link shows as end of file on the reading side. */
	if (ipc_link_flush(&s->channel) == 0 && ipc_link_has_queued(&s->channel))
		event_add(s->write_event, NULL);
}

void session_kill(struct session *s)
{
	if (!s->killed)
		spawner_note(s->all->spawner, IPC_NOTE_KILL, s->worker);
	s->killed = true;
}

static void session_free(struct session *s)
{
	struct event *const events[] = { s->read_event, s->write_event, s->end_timer,
					 s->undo_timer };

	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (events[i])
			event_free(events[i]);
	ipc_link_deinit(&s->channel);
	free(s->suspension);
	free(s->attach_error);
	free(s);
}

/* The worker sees end of file, undoes everything and exits; spawn then tells us. */
static void close_channel(struct session *s)
{
	const struct timeval tv = { .tv_sec = END_MS / 1000, .tv_usec = END_MS % 1000 * 1000 };

	s->closing = true;
	if (s->client)
		s->client->store = NULL;
	s->client = NULL;
	event_del(s->read_event);
	event_del(s->write_event);
	ipc_link_deinit(&s->channel);
	event_add(s->end_timer, &tv);
}

static void end_expired(int fd, short what, void *user)
{
	struct session *s = user;

	if (!s->closing) {
		close_channel(s); /* a store that has had nothing to do */
		return;
	}

	log_warning("worker for process %u does not leave: killed", s->pid);
	session_kill(s);
}

void session_close(struct session *s)
{
	if (!s->closing)
		close_channel(s);
}

static void tell_status(const struct sessions *all)
{
	spawner_status(all->spawner, all->n, all->net->n_conns);
}

struct session *session_create(struct sessions *all, const struct ipc_started *started,
			       enum ipc_kind kind, uint32_t number, uint32_t pid, int take_channel)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s) {
		close(take_channel);
		return NULL;
	}
	s->all = all;
	s->kind = kind;
	s->number = number;
	s->worker = started->worker;
	s->pid = pid;
	s->uid = started->target_uid;
	memcpy(s->comm, started->comm, sizeof(s->comm));
	s->comm[sizeof(s->comm) - 1] = '\0';
	snprintf(s->id, sizeof(s->id), "s%u", number);
	s->since_ns = clock_now_ns();
	s->reason = RPC_END_REASON_DETACHED;
	ipc_link_init(&s->channel, take_channel);
	LIST_INIT(&s->attachments);
	LIST_INIT(&s->calls);
	LIST_INIT(&s->leavers);
	LIST_INIT(&s->comers);
	s->read_event = event_new(all->base, take_channel, EV_READ | EV_PERSIST, channel_readable, s);
	s->write_event = event_new(all->base, take_channel, EV_WRITE, channel_writable, s);
	s->end_timer = event_new(all->base, -1, 0, end_expired, s);
	s->undo_timer = event_new(all->base, -1, 0, lease_undo_expired, s);
	if (!s->read_event || !s->write_event || !s->end_timer || !s->undo_timer ||
	    event_add(s->read_event, NULL) < 0) {
		session_free(s);
		return NULL;
	}
	LIST_INSERT_HEAD(&all->list, s, link);
	if (kind == IPC_KIND_SESSION) {
		all->n++;
		tell_status(all);
	}
	return s;
}

void session_create_orphan(struct sessions *all, const struct ipc_started *started, int take_channel)
{
	struct session *s = session_create(all, started, IPC_KIND_INSPECT, 0, 0, take_channel);

	if (s)
		close_channel(s);
}

struct session *session_find_worker(struct sessions *all, uint32_t worker)
{
	struct session *s;

	LIST_FOREACH(s, &all->list, link)
		if (s->worker == worker)
			return s;
	return NULL;
}

struct attachment *session_find_attachment(struct conn *c, const char *id)
{
	struct attachment *a;

	LIST_FOREACH(a, &c->attachments, in_conn)
		if (!strcmp(a->session->id, id) && !a->session->over && !a->session->closing)
			return a;
	return NULL;
}

struct attachment *session_attach(struct session *s, struct conn *conn, enum ipc_right rights)
{
	struct attachment *a;

	LIST_FOREACH(a, &s->attachments, in_session)
		if (a->conn == conn)
			return a;
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->conn = conn;
	a->session = s;
	a->rights = rights;
	a->number = ++s->last_client;
	a->asked_ns = clock_now_ns();
	notices_init(&a->notices);
	LIST_INSERT_HEAD(&s->attachments, a, in_session);
	LIST_INSERT_HEAD(&conn->attachments, a, in_conn);
	return a;
}

static void attachment_free(struct attachment *a)
{
	LIST_REMOVE(a, in_session);
	LIST_REMOVE(a, in_conn);
	notices_deinit(&a->notices);
	free(a);
}

/* @return 0, or negative when it was not sent; a worker that is gone shows on the reading side. */
static int send_head(struct session *s, const struct ipc_head *head, const char *text, int take_fd)
{
	auto_close int fd = take_fd;
	int r = s->closing ? -EPIPE :
		fd < 0	   ? ipc_link_send(&s->channel, head, text) :
			     ipc_link_send_fd(&s->channel, head, text, TAKE_FD(fd));

	if (r == 0 && ipc_link_has_queued(&s->channel))
		event_add(s->write_event, NULL);
	return r == -EPIPE ? 0 : r;
}

/* Without these a target would stay suspended, or withhold faults, for somebody who is gone. */
static void send_or_kill(struct session *s, const struct ipc_head *head)
{
	int r = send_head(s, head, NULL, -1);

	if (r < 0) {
		log_warning("session %s: worker takes no messages (%s): killed", s->id,
			    strerror(-r));
		session_kill(s);
	}
}

void session_lease_lost(struct session *s, enum rpc_resume_reason why)
{
	send_or_kill(s, &(struct ipc_head){ .type = IPC_LEASE_LOST, .number = why });
}

static void tell_left(struct session *s, uint32_t client, bool was_writer)
{
	send_or_kill(s, &(struct ipc_head){ .type = IPC_CLIENT_LEFT, .client = client });
	if (was_writer)
		session_lease_lost(s, RPC_RESUME_REASON_CLIENT_LOST);
}

void session_leave(struct attachment *a)
{
	struct session *s = a->session;
	bool was_writer = s->writer == a->conn;
	uint32_t number = a->number;

	attachment_free(a);
	if (was_writer)
		s->writer = NULL;
	if (s->closing || s->over)
		return;
	if (LIST_EMPTY(&s->attachments) && !s->rule[0])
		close_channel(s);
	else
		tell_left(s, number, was_writer);
}

void session_check_needed(struct session *s)
{
	if (LIST_EMPTY(&s->attachments) && !s->rule[0] && !s->closing && !s->over)
		close_channel(s);
}

int session_check_control(const struct attachment *a, struct agent_err *err)
{
	if (a->rights >= IPC_RIGHT_CONTROL)
		return 0;
	return agent_err_set(err, RPC_ERROR_NOT_PERMITTED, 0, NULL,
			     "ask the owner of the process or an administrator",
			     "you may look at process %u, but not control it", a->session->pid);
}

static struct attachment *attachment_of(struct session *s, const struct conn *c)
{
	struct attachment *a;

	LIST_FOREACH(a, &s->attachments, in_session)
		if (a->conn == c)
			return a;
	return NULL;
}

/* The session may be another client's, whose patience is greater: it is left, not ended. */
static void attach_expired(struct session *s, struct request *r)
{
	struct attachment *a = r->conn ? attachment_of(s, r->conn) : NULL;
	struct agent_err err = { 0 };

	agent_err_set(&err, RPC_ERROR_TIMEOUT, 0, "attach", "allow more time: timeout_ms",
		      "attaching to process %u took too long", r->pid);
	request_fail(r, &err);
	if (a && !a->established)
		session_leave(a);
}

static void call_expired(int fd, short what, void *user)
{
	struct request *r = user;
	struct session *s = r->owner; /* NULL: it waits for another session */
	/* The worker bounds each call itself: with no answer to any for so long, it is stuck. */
	bool stuck =
		s && (clock_now_ns() - s->heard_ns) / 1000000 + TIMER_SLACK_MS >= r->timeout_ms;
	struct agent_err err = { 0 };

	if (s && r->method == RPC_METHOD_SESSION_ATTACH) {
		attach_expired(s, r);
		return;
	}
	if (stuck)
		session_kill(s);
	agent_err_set(&err, RPC_ERROR_TIMEOUT, 0, rpc_methods[r->method].name,
		      !stuck ? "other calls came first: send fewer at once"
		      : s->kind == IPC_KIND_STORE
			      ? "is the disk with the store very busy?"
			      : "the worker is killed; the kernel lets the target run",
		      "no answer in time");
	if (stuck && s->kind != IPC_KIND_STORE)
		agent_err_set_resumed(&err, true);
	request_fail(r, &err);
}

static size_t unanswered_bytes(const struct session *s)
{
	const struct request *r;
	size_t sum = 0;

	LIST_FOREACH(r, &s->calls, in_owner)
		sum += r->params_size;
	return sum;
}

static int refuse_call(const struct session *s, size_t size, struct agent_err *err)
{
	if (s->closing || s->over)
		return agent_err_set(err, RPC_ERROR_SESSION_ENDED, 0, NULL, "attach again",
				     "session %s is over", s->id);
	if (size + unanswered_bytes(s) > CALL_BYTES_MAX)
		return agent_err_set(err, RPC_ERROR_FAILED, 0, NULL,
				     "wait for answers before asking more",
				     "too many large requests wait for session %s", s->id);
	return 0;
}

/* @param take_fd  Goes to the worker; -1: none. */
static void call_with(struct session *s, struct request *r, const char *params, size_t size,
		      uint32_t flags, uint32_t timeout_ms, int take_fd)
{
	auto_close int fd = take_fd;
	const struct attachment *a = r->conn ? attachment_of(s, r->conn) : NULL;
	struct ipc_head head = { .type = IPC_CALL,
				 .number = r->method,
				 .id = ++s->all->last_call,
				 .flags = flags | (fd >= 0 ? IPC_FLAG_FD : 0) |
					  (s->writer ? IPC_FLAG_HOLDER : 0) |
					  (r->conn && r->conn->admin ? IPC_FLAG_ADMIN : 0) |
					  (s->writer && s->writer == r->conn ? IPC_FLAG_WRITER : 0),
				 .client = a ? a->number : 0,
				 .holder_uid = s->writer ? s->writer->uid : 0,
				 .size = size };
	struct agent_err err = { 0 };
	int e = refuse_call(s, size, &err);

	r->timeout_ms = timeout_ms;
	if (e == 0)
		e = request_deadline(r, timeout_ms, call_expired);
	if (e == 0)
		e = send_head(s, &head, params, TAKE_FD(fd));
	if (e < 0) {
		if (!err.code)
			agent_err_set(&err, RPC_ERROR_FAILED, -e, rpc_methods[r->method].name,
				      e == -EMSGSIZE ? "send fewer blanks" :
						       "wait for answers before asking more",
				      "the request cannot be passed on");
		request_fail(r, &err);
		return;
	}
	if (LIST_EMPTY(&s->calls))
		s->heard_ns = clock_now_ns();
	if (s->kind == IPC_KIND_STORE)
		event_del(s->end_timer);
	r->call_id = head.id;
	r->params_size = size;
	request_own(r, &s->calls);
	r->owner = s;
}

void session_call(struct session *s, struct request *r, const char *params, size_t size,
		  uint32_t flags, uint32_t timeout_ms)
{
	call_with(s, r, params, size, flags, timeout_ms, -1);
}

/*
 * Not a pipe: its reader holds the pipe's lock while it copies into memory of its own, which may
 * be a file that never answers, and the writer then waits for that lock even when it is killed.
 * Shut down for reading, so that nothing the client sends, a descriptor above all, gets to the worker.
 */
static int make_stream(int *ret_write_fd, int *ret_read_fd)
{
	const int bytes = STREAM_BYTES;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	/* Without more of it, writer and reader wait for each other more often. */
	(void)setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	*ret_write_fd = pair[0];
	*ret_read_fd = pair[1];
	return shutdown(pair[0], SHUT_RD) < 0 ? -errno : 0;
}

void session_call_stream(struct session *s, struct request *r, const char *params, size_t size,
			 uint32_t flags, uint32_t timeout_ms)
{
	auto_close int write_fd = -1;
	struct agent_err err = { 0 };
	int e = make_stream(&write_fd, &r->answer_fd);

	if (e == 0) {
		call_with(s, r, params, size, flags, timeout_ms, TAKE_FD(write_fd));
		return;
	}
	agent_err_set(&err, RPC_ERROR_FAILED, -e, rpc_methods[r->method].name,
		      "close connections you no longer need", "there is no socket for it");
	request_fail(r, &err);
}

static struct request *find_call(struct session *s, uint64_t id)
{
	struct request *r;

	LIST_FOREACH(r, &s->calls, in_owner)
		if (r->call_id == id)
			return r;
	return NULL;
}

/* A call was answered: nothing more to do for a look, for a store perhaps. */
static void rest(struct session *s)
{
	const struct timeval tv = { .tv_sec = STORE_IDLE_S };

	if (s->kind == IPC_KIND_INSPECT)
		close_channel(s);
	else if (s->kind == IPC_KIND_STORE && !s->closing && LIST_EMPTY(&s->calls))
		event_add(s->end_timer, &tv);
}

static void answered(struct session *s, struct ipc_message *m)
{
	struct request *r = find_call(s, m->head.id);
	struct attachment *a = r && r->conn ? attachment_of(s, r->conn) : NULL;
	bool attach = r && r->method == RPC_METHOD_SESSION_ATTACH;

	s->heard_ns = clock_now_ns();
	if (!lease_answered(s, m->head.id) || !r)
		return; /* not true, or answered with a timeout already */
	if (m->head.type == IPC_REPLY) {
		if (attach && a)
			a->established = true;
		lease_reply(r, m);
		rest(s);
		return;
	}
	if (attach && !s->attach_error && (s->attach_error = malloc((size_t)m->head.size + 1))) {
		memcpy(s->attach_error, m->text, (size_t)m->head.size);
		s->attach_error_size = (size_t)m->head.size;
	}
	request_fail_text(r, m->text, (size_t)m->head.size);
	if (attach && a && !a->established)
		session_leave(a);
	rest(s);
}

/* Its text is lost: there was no descriptor for the memfd. */
static void not_received(struct session *s, const struct ipc_head *head)
{
	struct request *r = find_call(s, head->id);
	struct agent_err err = { 0 };

	log_warning("session %s: a message is lost: %s", s->id, strerror(EMFILE));
	s->heard_ns = clock_now_ns();
	if ((head->type != IPC_REPLY && head->type != IPC_ERROR) || !r)
		return;
	if (s->kind == IPC_KIND_INSPECT)
		close_channel(s);
	agent_err_set(&err, RPC_ERROR_FAILED, EMFILE, rpc_methods[r->method].name,
		      "close connections you no longer need", "the agent has no descriptor left");
	request_fail(r, &err);
}

static void broadcast(struct session *s, const struct out *text)
{
	struct attachment *a, *next;

	for (a = LIST_FIRST(&s->attachments); a; a = next) {
		auto_out struct out copy = { 0 };

		next = LIST_NEXT(a, in_session);
		if (!a->established)
			continue;
		notices_flush(&a->notices, a->conn, true);
		out_init(&copy, 0);
		out_bytes(&copy, text->data, text->size);
		conn_send(a->conn, &copy);
	}
}

static bool has_filter(const struct session *s)
{
	const struct attachment *a;

	LIST_FOREACH(a, &s->attachments, in_session)
		if (notices_has_filter(&a->notices))
			return true;
	return false;
}

/* @return false when it cannot be read: then nobody's filter leaves it out. */
static bool decode_raised(const struct ipc_message *m, struct rpc_arena *arena,
			  struct rpc_exception_raised_params *ret)
{
	struct json_object *params = NULL;
	struct rpc_decoder d;
	int r = rpc_json_parse(m->text, (size_t)m->head.size, &params, NULL);

	rpc_decoder_init_lenient(&d, "params", arena, NULL);
	if (r == 0)
		r = rpc_exception_raised_params_decode(&d, params, ret);
	rpc_json_put(params);
	return r == 0;
}

static void raised(struct session *s, const struct ipc_message *m)
{
	auto_rpc_arena struct rpc_arena arena;
	struct rpc_exception_raised_params p;
	struct attachment *a, *next;
	bool known;

	rpc_arena_init(&arena, 0);
	known = has_filter(s) && decode_raised(m, &arena, &p);
	for (a = LIST_FIRST(&s->attachments); a; a = next) {
		next = LIST_NEXT(a, in_session);
		if (a->established && (!known || notices_wants(&a->notices, &p)))
			notices_send(&a->notices, a->conn, m->text, (size_t)m->head.size);
	}
}

static void notified(struct session *s, const struct ipc_message *m)
{
	auto_out struct out text = { 0 };

	if (m->head.number >= RPC_NOTIFICATION_COUNT)
		return;
	if (m->head.number == RPC_NOTIFICATION_EXCEPTION_RAISED) {
		raised(s, m);
		return;
	}
	out_init(&text, 0);
	rpc_message_notification(&text, rpc_notifications[m->head.number].name, m->text,
				 (size_t)m->head.size);
	broadcast(s, &text);
}

static void record_end(const struct session *s)
{
	char target[12];
	const char *reason = rpc_end_reason_name(s->reason);
	const struct log_field fields[] = { { "OBJECT_PID", target },
					    { "GPU_AGENT_SESSION", s->id },
					    { "GPU_AGENT_REASON", reason },
					    { NULL, NULL } };

	snprintf(target, sizeof(target), "%u", s->pid);
	log_record(LOG_LEVEL_INFO, LOG_MESSAGE_END, fields, "session %s on process %u is over: %s",
		   s->id, s->pid, reason);
}

/* What a call is told that the worker did not answer any more. */
static void end_error(const struct session *s, enum rpc_method method, struct agent_err *err)
{
	const char *reason = rpc_end_reason_name(s->reason);

	if (s->kind != IPC_KIND_SESSION)
		agent_err_set(err, RPC_ERROR_FAILED, 0, rpc_methods[method].name, "try again",
			      "the process that was to answer has ended");
	else if (method == RPC_METHOD_SESSION_ATTACH && s->reason == RPC_END_REASON_STUCK)
		agent_err_set(err, RPC_ERROR_TIMEOUT, 0, "attach", "allow more time: timeout_ms",
			      "attaching to process %u took too long", s->pid);
	else if (method == RPC_METHOD_SESSION_ATTACH)
		agent_err_set(err, RPC_ERROR_FAILED, 0, "attach", "try again",
			      "the session on process %u ended at once: %s", s->pid, reason);
	else
		agent_err_set(err, RPC_ERROR_SESSION_ENDED, 0, NULL, NULL, "session %s is over: %s",
			      s->id, reason);
	if (s->kind == IPC_KIND_SESSION)
		agent_err_set_resumed(err, true);
}

/* Tell everybody, fail what waits, let go of the clients. */
static void finish(struct session *s)
{
	const struct rpc_session_ended_params params = { .session = s->id,
							 .pid = s->pid,
							 .reason = s->reason };
	auto_out struct out text = { 0 };

	lease_over(s);
	while (!LIST_EMPTY(&s->calls)) {
		struct request *r = LIST_FIRST(&s->calls);
		struct agent_err err = { 0 };

		if (lease_reply_killed(s, r))
			continue;
		end_error(s, r->method, &err);
		if (s->attach_error && r->method == RPC_METHOD_SESSION_ATTACH)
			request_fail_text(r, s->attach_error, s->attach_error_size);
		else
			request_fail(r, &err);
	}
	out_init(&text, 0);
	rpc_session_ended_notification(&text, &params);
	broadcast(s, &text);
	s->writer = NULL;
	while (!LIST_EMPTY(&s->attachments))
		attachment_free(LIST_FIRST(&s->attachments));
}

static void received(struct session *s, struct ipc_message *m)
{
	switch (m->head.type) {
	case IPC_REPLY:
	case IPC_ERROR:
		answered(s, m);
		break;
	case IPC_NOTIFY:
		notified(s, m);
		break;
	case IPC_COUNTS:
		rules_count(s, m);
		break;
	case IPC_SUSPENSION:
		suspensions_take(s, m);
		break;
	case IPC_TARGET:
		if (rpc_vendor_name((enum rpc_vendor)m->head.number))
			s->vendor = (enum rpc_vendor)m->head.number;
		break;
	case IPC_OVER:
		s->over = true;
		s->reason = (enum rpc_end_reason)m->head.number;
		finish(s);
		break;
	default:
		log_error("session %s: unknown message %u from its worker", s->id, m->head.type);
	}
}

/* @return false when there was nothing (more) to receive. */
static bool receive(struct session *s)
{
	struct ipc_message m;
	int r = ipc_link_recv(&s->channel, &m);

	if (r == -EAGAIN)
		return false;
	if (r == 1)
		received(s, &m);
	else if (r == -EMFILE)
		not_received(s, &m.head);
	if (r == 1 || r == -EMFILE) {
		ipc_message_deinit(&m);
		return true;
	}
	if (r < 0) {
		log_error("session %s: %s from its worker: killed", s->id, strerror(-r));
		session_kill(s);
	}
	/* End of file without IPC_OVER: spawn will say how the worker ended. */
	close_channel(s);
	return false;
}

static void channel_readable(int fd, short what, void *user)
{
	struct session *s = user;

	for (int i = 0; i < MESSAGES_AT_ONCE && !s->closing; i++)
		if (!receive(s))
			break;
}

void session_worker_ended(struct session *s, enum ipc_how how)
{
	/* What it said before it went may still be unread. */
	while (!s->closing && receive(s))
		;
	if (!s->over && how != IPC_HOW_CLEAN)
		s->reason = how == IPC_HOW_STUCK ? RPC_END_REASON_STUCK : RPC_END_REASON_WORKER_DIED;
	session_destroy(s);
}

void session_destroy(struct session *s)
{
	const struct rpc_session_detach_result left = { .ended = true };
	auto_out struct out text = { 0 };

	if (!s->closing)
		close_channel(s);
	suspensions_over(s);
	rules_over(s);
	finish(s);
	out_init(&text, 0);
	rpc_session_detach_result_encode(&text, &left);
	while (!LIST_EMPTY(&s->leavers))
		request_reply(LIST_FIRST(&s->leavers), text.data, text.size);
	LIST_REMOVE(s, link);
	if (s->kind == IPC_KIND_SESSION)
		record_end(s);
	while (!LIST_EMPTY(&s->comers))
		start_ask_again(s->all->starts, LIST_FIRST(&s->comers));
	if (s->kind == IPC_KIND_SESSION) {
		s->all->n--;
		tell_status(s->all);
	}
	session_free(s);
}
