/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/session/lease.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "agentd/frontend/net/monitor_link.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/out.h"
#include "protocol/rpc_message.h"

/* Undoing takes milliseconds; with what comes before and after, queues run within a second. */
#define FORCE_MS 500
/* A worker takes less than this for a call that it has begun with. */
#define UNDO_MS 13000

/* ------------------------------------------------------------------ who may ------------------ */

/* @return the place of the client that has the lease; NULL: nobody has it. */
static struct attachment *holder_of(struct session *s)
{
	return s->writer ? attachment_of(s, s->writer) : NULL;
}

uint64_t lease_idle_ms(const struct attachment *a)
{
	return (clock_now_ns() - a->asked_ns) / 1000000;
}

static bool is_silent(const struct attachment *a)
{
	return lease_idle_ms(a) >= a->session->all->silent_holder_ms;
}

/* In a user namespace of its own a user has fewer rights than outside, whatever its number. */
static bool may_break(const struct attachment *a, const struct attachment *holder)
{
	return a->conn->admin || (a->conn->uid == holder->conn->uid && a->user_ns &&
				  a->user_ns == holder->user_ns);
}

/* Owners may not break what an administrator holds, but need not bear one who is not there. */
static bool may_ask(const struct attachment *a, const struct attachment *holder)
{
	return holder->conn->admin && !a->conn->admin && a->rights >= IPC_RIGHT_CONTROL && is_silent(holder);
}

static bool may_take(const struct attachment *a, const struct attachment *holder, enum lease_want want)
{
	switch (want) {
	case LEASE_BY_FORCE:
		return may_break(a, holder);
	case LEASE_FROM_SILENT:
		return is_silent(holder) && (may_break(a, holder) ||
					     (may_ask(a, holder) && holder->ask_end_ns &&
					      !clock_left_ms(holder->ask_end_ns)));
	case LEASE_FREE:
		break;
	}
	return false;
}

static int refuse(const struct attachment *a, const struct attachment *holder,
		  struct agent_err *err)
{
	const struct session *s = a->session;
	char hint[200] = "wait until that client has left, or ask an administrator";

	if (may_ask(a, holder))
		snprintf(hint, sizeof(hint),
			 "it has asked for nothing for %llu s: `gpu-agentctl attach --take %u` asks it for control",
			 (unsigned long long)lease_idle_ms(holder) / 1000, s->pid);
	else if (may_break(a, holder) && is_silent(holder))
		snprintf(hint, sizeof(hint),
			 "it has asked for nothing for %llu s: `gpu-agentctl attach --take %u` takes control",
			 (unsigned long long)lease_idle_ms(holder) / 1000, s->pid);
	else if (may_break(a, holder))
		snprintf(hint, sizeof(hint),
			 "`gpu-agentctl resume --force %u` lets its queues run, `gpu-agentctl attach --take "
			 "--force %u` takes control", s->pid, s->pid);
	return agent_err_set(err, RPC_ERROR_BUSY, 0, NULL, hint,
			     "process %u is controlled by pid %d (uid %u)", s->pid,
			     (int)s->writer->pid, s->writer->uid);
}

/* Tell a silent administrator that the owner wants control; who has been told is not told again. */
static int ask(const struct attachment *a, struct attachment *holder, struct agent_err *err)
{
	const struct session *s = a->session;
	struct rpc_control_asked_params p = { .session = s->id, .by_pid = (uint32_t)a->conn->pid,
					      .by_uid = a->conn->uid, .left_ms = LEASE_ASK_MS };
	auto_out struct out text = { 0 };
	char hint[120];
	int left_ms, r;

	if (!holder->ask_end_ns) {
		holder->ask_end_ns = clock_deadline_ms(LEASE_ASK_MS);
		out_init(&text, 0);
		rpc_control_asked_notification(&text, &p);
		conn_send(holder->conn, &text);
		log_info("session %s: uid %u (pid %d), the owner of process %u, asks uid %u (pid %d) for control",
			 s->id, a->conn->uid, (int)a->conn->pid, s->pid, holder->conn->uid,
			 (int)holder->conn->pid);
	}
	left_ms = clock_left_ms(holder->ask_end_ns);
	snprintf(hint, sizeof(hint), "it was asked to give it up: `gpu-agentctl attach --take %u` again in %d s",
		 s->pid, (left_ms + 999) / 1000);
	r = agent_err_set(err, RPC_ERROR_BUSY, 0, NULL, hint, "process %u is controlled by pid %d (uid %u)",
			  s->pid, (int)holder->conn->pid, holder->conn->uid);
	if (err)
		err->retry_ms = (uint32_t)left_ms;
	return r;
}

/* ------------------------------------------------------------------ locked out --------------- */

static void lock_out(struct attachment *holder, const struct attachment *taker)
{
	struct sessions *all = taker->session->all;
	const uint64_t end_ns = clock_deadline_ms(LEASE_LOCK_MS);

	holder->locked_end_ns = end_ns;
	/*
	 * The loser is remembered by its process number, or it would come back on another
	 * connection.  One process may be both loser and taker.
	 */
	if (holder->conn->pid == taker->conn->pid)
		return;
	all->lease_locks[all->n_lease_locks++ % LEASE_LOCKS_MAX] =
		(struct lease_lock){ .target = taker->session->pid,
				     .pid = holder->conn->pid,
				     .uid = holder->conn->uid,
				     .end_ns = end_ns };
}

static uint64_t locked_until(const struct attachment *a)
{
	const struct sessions *all = a->session->all;
	uint64_t end_ns = a->locked_end_ns;

	for (size_t i = 0; i < LEASE_LOCKS_MAX; i++) {
		const struct lease_lock *l = &all->lease_locks[i];

		if (l->target == a->session->pid && l->pid == a->conn->pid &&
		    l->uid == a->conn->uid && l->end_ns > end_ns)
			end_ns = l->end_ns;
	}
	return end_ns;
}

static int check_lock(const struct attachment *a, struct agent_err *err)
{
	uint64_t end_ns = locked_until(a);
	int left_ms = a->conn->uid == 0 || !end_ns ? 0 : clock_left_ms(end_ns);
	char hint[80];

	if (!left_ms)
		return 0;
	snprintf(hint, sizeof(hint), "try again in %d s", (left_ms + 999) / 1000);
	return agent_err_set(err, RPC_ERROR_BUSY, 0, NULL, hint,
			     "control of process %u was taken from you a moment ago",
			     a->session->pid);
}

/* ------------------------------------------------------------------ breaking ----------------- */

static void tell_loser(struct session *s)
{
	struct rpc_control_lost_params p = { .session = s->id,
					     .by_pid = s->loss.by_pid,
					     .by_uid = s->loss.by_uid,
					     .reason = s->loss.reason };
	auto_out struct out text;
	struct attachment *a;

	out_init(&text, 0);
	rpc_control_lost_notification(&text, &p);
	LIST_FOREACH(a, &s->attachments, in_session)
		if (a->number == s->loss.client && a->established) {
			conn_send(a->conn, &text);
			return;
		}
}

static void loss_done(struct session *s)
{
	if (!s->loss.open)
		return;
	s->loss.open = false;
	event_del(s->undo_timer);
	tell_loser(s);
}

static void tell_taken(const struct session *s)
{
	const struct ipc_taken m = { .type = IPC_TAKEN,
				     .worker = s->worker,
				     .client = s->loss.by,
				     .from = s->loss.from,
				     .is_forced = s->loss.reason == RPC_CONTROL_REASON_FORCED,
				     .idle_ms = s->loss.idle_ms };

	monitor_link_send(s->all->monitor, &m, sizeof(m), NULL, 0);
}

void lease_undo_expired(int fd, short what, void *user)
{
	struct session *s = user;

	log_warning("session %s: its worker does not undo what the holder of the lease did: killed",
		    s->id);
	/* It has not come to say who has the lease now. */
	tell_taken(s);
	session_kill(s);
}

static void begin_loss(struct attachment *a, const struct attachment *holder,
		       enum lease_want want, const struct rpc_taken_control *t)
{
	struct session *s = a->session;
	uint32_t ms = want == LEASE_BY_FORCE ? FORCE_MS : UNDO_MS;
	uint64_t end_ns = clock_deadline_ms(ms);
	struct timeval tv;

	/*
	 * The loss of another client is still under way: that client is told now, and nobody has to
	 * wait longer for it.
	 */
	if (s->loss.open) {
		tell_loser(s);
		if (s->loss.end_ns < end_ns)
			end_ns = s->loss.end_ns;
		ms = (uint32_t)clock_left_ms(end_ns);
	}
	tv = (struct timeval){ .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	s->loss = (struct lease_loss){ .open = true,
				       .end_ns = end_ns,
				       .call_id = s->all->last_call + 1,
				       .client = holder->number,
				       .by = a->conn->id,
				       .from = holder->conn->id,
				       .idle_ms = lease_idle_ms(holder),
				       .by_pid = (uint32_t)a->conn->pid,
				       .by_uid = a->conn->uid,
				       .reason = t->reason };
	event_add(s->undo_timer, &tv);
	session_lease_lost(s, RPC_RESUME_REASON_CONTROL_TAKEN);
}

static void break_lease(struct attachment *a, struct attachment *holder, enum lease_want want,
			struct request *r)
{
	struct session *s = a->session;
	const struct ipc_suspension *u = s->suspension;
	const bool stopped = u && u->since_ns;

	r->has_taken = true;
	r->taken_since_ns = stopped ? u->since_ns : 0;
	r->taken = (struct rpc_taken_control){
		.pid = (uint32_t)s->writer->pid,
		.uid = s->writer->uid,
		.reason = is_silent(holder) ? RPC_CONTROL_REASON_SILENT : RPC_CONTROL_REASON_FORCED,
		.queues = stopped ? u->n_queues : 0,
	};
	lock_out(holder, a);
	begin_loss(a, holder, want, &r->taken);
	s->writer = a->conn;
}

int lease_take(struct attachment *a, enum lease_want want, struct request *r,
	       struct agent_err *err)
{
	struct session *s = a->session;
	struct attachment *holder = holder_of(s);
	int e = attachment_check_control(a, err);

	if (e < 0 || holder == a)
		return e;
	e = check_lock(a, err);
	if (e < 0)
		return e;
	if (!holder) {
		s->writer = a->conn;
		return 0;
	}
	if (!may_take(a, holder, want))
		return want == LEASE_FROM_SILENT && may_ask(a, holder) && !may_break(a, holder) ?
			       ask(a, holder, err) : refuse(a, holder, err);
	break_lease(a, holder, want, r);
	return 0;
}

void lease_give_back(struct attachment *a)
{
	struct session *s = a->session;

	if (s->writer != a->conn)
		return;
	s->writer = NULL;
	session_lease_lost(s, RPC_RESUME_REASON_CONTROL_RELEASED);
}

void lease_note_call(struct attachment *a, enum rpc_method method)
{
	struct session *s = a->session;
	const bool stopped = s->suspension && s->suspension->since_ns && s->writer == a->conn;

	if (stopped && (method == RPC_METHOD_GPU_RENEW || method == RPC_METHOD_GPU_SUSPEND)) {
		s->renewals++;
	} else if (method != RPC_METHOD_GPU_RENEW) {
		a->asked_ns = clock_now_ns();
		a->ask_end_ns = 0;
	}
}

bool lease_answered(struct session *s, uint64_t call_id)
{
	if (!s->loss.open || call_id < s->loss.call_id)
		return true;
	/*
	 * The worker has undone what it can, and queues are suspended all the same: only the kernel
	 * can resume them, when the worker is gone.
	 */
	if (s->suspension && s->suspension->since_ns && call_id == s->loss.call_id) {
		log_warning("session %s: queues do not resume for the new holder: killed", s->id);
		session_kill(s);
		return false;
	}
	loss_done(s);
	return true;
}

void lease_over(struct session *s)
{
	loss_done(s);
}

/* ------------------------------------------------------------------ answers ------------------ */

static void put_taken(struct request *r, struct out *text)
{
	if (r->taken_since_ns)
		r->taken.stopped_us = (clock_now_ns() - r->taken_since_ns) / 1000;
	r->taken_since_ns = 0;
	out_str(text, "{\"taken\":");
	rpc_taken_control_encode(text, &r->taken);
}

void lease_reply(struct request *r, struct ipc_message *m)
{
	auto_out struct out text = { 0 };

	if (!r->has_taken || m->head.size < 2 || m->text[0] != '{') {
		request_reply_message(r, m);
		return;
	}
	out_init(&text, 0);
	put_taken(r, &text);
	out_char(&text, ',');
	out_bytes(&text, m->text + 1, (size_t)m->head.size - 1);
	request_reply(r, text.data, text.size);
}

bool lease_reply_killed(struct session *s, struct request *r)
{
	auto_out struct out text = { 0 };

	if (!r->has_taken || !s->killed)
		return false;
	r->taken.worker_killed = true;
	out_init(&text, 0);
	put_taken(r, &text);
	if (r->method == RPC_METHOD_SESSION_ATTACH) {
		/* The target is free: the client gets a session of its own when the worker is gone. */
		request_own(r, &s->comers);
		return true;
	}
	if (r->method == RPC_METHOD_SESSION_CONTROL)
		out_str(&text, ",\"control\":false}");
	else
		out_fmt(&text, ",\"queues\":[],\"resumed\":0,\"stopped_us\":%llu}",
			(unsigned long long)r->taken.stopped_us);
	request_reply(r, text.data, text.size);
	return true;
}
