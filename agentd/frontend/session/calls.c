/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/session/calls.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/frontend/net/conn.h"
#include "agentd/frontend/session/lease.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

/* Most bytes of unanswered calls of a session: they wait in memfds while the worker is busy. */
#define CALL_BYTES_MAX ((size_t)8 << 20)
/* Timers are a little early; what a worker may take for one call is that much shorter at least. */
#define TIMER_SLACK_MS 1000
/* Room in the socket for a core on its way to a client; the system may allow less. */
#define STREAM_BYTES (512 << 10)
/* A store process that has had nothing to do for so long is sent away. */
#define STORE_IDLE_S 30

/* Other clients may wait for the session with more patience: this one leaves it, and it goes on. */
static void attach_expired(struct session *s, struct request *r)
{
	struct attachment *a = r->conn ? attachment_of(s, r->conn) : NULL;
	struct agent_err err = { 0 };

	agent_err_set(&err, RPC_ERROR_TIMEOUT, 0, "attach", "allow more time: timeout_ms",
		      "attaching to process %u took too long", r->pid);
	request_fail(r, &err);
	if (a && !a->established)
		attachment_leave(a);
}

static void call_expired(int fd, short what, void *user)
{
	struct request *r = user;
	struct session *s = r->owner; /* NULL: the request waits for another session. */
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

/* @param take_fd  Descriptor that goes to the worker; -1: none. */
static void call_with(struct session *s, struct request *r, const char *params, size_t size,
		      uint32_t flags, uint32_t timeout_ms, int take_fd)
{
	auto_close int fd = take_fd;
	struct ipc_head head = { .type = IPC_CALL,
				 .number = r->method,
				 .id = ++s->all->last_call,
				 .flags = flags | (fd >= 0 ? IPC_FLAG_FD : 0) |
					  (s->writer ? IPC_FLAG_HOLDER : 0) |
					  (r->conn && r->conn->admin ? IPC_FLAG_ADMIN : 0) |
					  (s->writer && s->writer == r->conn ? IPC_FLAG_WRITER : 0) |
					  (r->has_taken && r->taken.reason == RPC_CONTROL_REASON_FORCED ?
						   IPC_FLAG_FORCED : 0),
				 .client = r->conn ? r->conn->id : 0,
				 .holder_uid = s->writer ? s->writer->uid : 0,
				 .size = size };
	struct agent_err err = { 0 };
	int e = refuse_call(s, size, &err);

	r->timeout_ms = timeout_ms;
	if (e == 0)
		e = request_deadline(r, timeout_ms, call_expired);
	if (e == 0)
		e = session_send(s, &head, params, TAKE_FD(fd));
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

void calls_send(struct session *s, struct request *r, const char *params, size_t size,
		uint32_t flags, uint32_t timeout_ms)
{
	call_with(s, r, params, size, flags, timeout_ms, -1);
}

/*
 * Make a pair of sockets.  A pipe would not do: its reader holds the pipe's lock while it copies into
 * memory of its own, which may be a file that never answers, and the writer then waits for that lock
 * even when it is killed.  The worker's end is shut down for reading, so that nothing the client
 * sends, a descriptor above all, gets to the worker.
 */
static int make_stream(int *ret_write_fd, int *ret_read_fd)
{
	const int bytes = STREAM_BYTES;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	/* With a smaller buffer, writer and reader wait for each other more often. */
	(void)setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	*ret_write_fd = pair[0];
	*ret_read_fd = pair[1];
	return shutdown(pair[0], SHUT_RD) < 0 ? -errno : 0;
}

void calls_send_stream(struct session *s, struct request *r, const char *params, size_t size,
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

/* A call was answered: an inspect worker has nothing more to do, and a store perhaps. */
static void rest(struct session *s)
{
	const struct timeval tv = { .tv_sec = STORE_IDLE_S };

	if (s->kind == IPC_KIND_INSPECT)
		session_close(s);
	else if (s->kind == IPC_KIND_STORE && !s->closing && LIST_EMPTY(&s->calls))
		event_add(s->end_timer, &tv);
}

void calls_answered(struct session *s, struct ipc_message *m)
{
	struct request *r = find_call(s, m->head.id);
	struct attachment *a = r && r->conn ? attachment_of(s, r->conn) : NULL;
	bool attach = r && r->method == RPC_METHOD_SESSION_ATTACH;

	s->heard_ns = clock_now_ns();
	if (!lease_answered(s, m->head.id) || !r)
		return; /* The answer is not true, or the client got a timeout already. */
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
		attachment_leave(a);
	rest(s);
}

void calls_looked(struct session *s, const struct ipc_message *m)
{
	struct request *r = LIST_FIRST(&s->calls);

	if (s->kind == IPC_KIND_INSPECT && r && r->looked)
		r->looked(r, m->text, (size_t)m->head.size);
}

void calls_lost_answer(struct session *s, const struct ipc_head *head)
{
	struct request *r = find_call(s, head->id);
	struct agent_err err = { 0 };

	log_warning("session %s: a message is lost: %s", s->id, strerror(EMFILE));
	s->heard_ns = clock_now_ns();
	if ((head->type != IPC_REPLY && head->type != IPC_ERROR) || !r)
		return;
	if (s->kind == IPC_KIND_INSPECT)
		session_close(s);
	agent_err_set(&err, RPC_ERROR_FAILED, EMFILE, rpc_methods[r->method].name,
		      "close connections you no longer need", "the agent has no descriptor left");
	request_fail(r, &err);
}

/* Say why the worker did not answer a call any more. */
static void end_error(const struct session *s, enum rpc_method method, struct agent_err *err)
{
	char words[SESSION_END_WORDS];
	const char *reason = session_end_words(s, words);

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

void calls_end(struct session *s)
{
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
}
