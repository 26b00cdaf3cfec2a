/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/session/worker.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/frontend/net/conn.h"
#include "agentd/frontend/net/net.h"
#include "agentd/frontend/net/monitor_link.h"
#include "agentd/frontend/rpc/start.h"
#include "agentd/frontend/session/calls.h"
#include "agentd/frontend/session/lease.h"
#include "agentd/frontend/session/readers.h"
#include "agentd/frontend/session/rules.h"
#include "agentd/frontend/session/suspensions.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/out.h"
#include "protocol/rpc_message.h"

/* Most messages that are read of one worker before others get their turn. */
#define MESSAGES_AT_ONCE 64

/* ------------------------------------------------------------------ what it says ------------- */

/* Count the stop of which a message of any type may tell. */
static void count_stop(struct session_counts *c, uint32_t us)
{
#define END(us, seconds) us,
	static const uint32_t ends[] = { SESSION_STOP_CLASSES(END) };
#undef END
	size_t i = 0;

	if (!us)
		return;
	while (i < SESSION_STOPS && us > ends[i])
		i++;
	c->stops[i]++;
	c->stopped_us += us;
}

static void count_exceptions(struct session_counts *c, uint64_t mask)
{
	for (size_t i = 0; i < SESSION_EXCEPTIONS; i++)
		c->exceptions[i] += mask >> i & 1;
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

/* @return false when the message cannot be read: then no client's filter leaves it out. */
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
		count_exceptions(&s->all->counts, m->head.id);
		raised(s, m);
		return;
	}
	out_init(&text, 0);
	rpc_message_notification(&text, rpc_notifications[m->head.number].name, m->text,
				 (size_t)m->head.size);
	broadcast(s, &text);
}

/* Fail what waits, tell all clients, and free their places. */
static void finish(struct session *s)
{
	const struct rpc_session_ended_params params = { .session = s->id,
							 .pid = s->pid,
							 .reason = s->reason,
							 .has_signal = s->end_signal != 0,
							 .signal = (uint32_t)s->end_signal,
							 .has_sender_uid = s->end_signal != 0,
							 .sender_uid = s->end_uid };
	auto_out struct out text = { 0 };

	lease_over(s);
	calls_end(s);
	out_init(&text, 0);
	rpc_session_ended_notification(&text, &params);
	broadcast(s, &text);
	s->writer = NULL;
	while (!LIST_EMPTY(&s->attachments))
		attachment_free(LIST_FIRST(&s->attachments));
}

static void received(struct session *s, struct ipc_message *m)
{
	if (s->kind == IPC_KIND_SESSION)
		count_stop(&s->all->counts, m->head.stopped_us);
	switch (m->head.type) {
	case IPC_REPLY:
	case IPC_ERROR:
		calls_answered(s, m);
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
	case IPC_LOOKED:
		calls_looked(s, m);
		break;
	case IPC_READERS:
		readers_note(s, m);
		break;
	case IPC_TARGET:
		if (rpc_vendor_name((enum rpc_vendor)m->head.number))
			s->vendor = (enum rpc_vendor)m->head.number;
		break;
	case IPC_OVER:
		s->over = true;
		if (m->head.number < SESSION_END_REASONS)
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
		calls_lost_answer(s, &m.head);
	if (r == 1 || r == -EMFILE) {
		ipc_message_deinit(&m);
		return true;
	}
	if (r < 0) {
		log_error("session %s: %s from its worker: killed", s->id, strerror(-r));
		session_kill(s);
	}
	/* End of file without IPC_OVER: the monitor will say how the worker ended. */
	session_close(s);
	return false;
}

static void channel_readable(int fd, short what, void *user)
{
	struct session *s = user;

	for (int i = 0; i < MESSAGES_AT_ONCE && !s->closing; i++)
		if (!receive(s))
			break;
}

/* ------------------------------------------------------------------ begin and end ------------ */

static void channel_writable(int fd, short what, void *user)
{
	struct session *s = user;

	/* A dead link shows as end of file on the reading side. */
	if (ipc_link_flush(&s->channel) == 0 && ipc_link_has_queued(&s->channel))
		event_add(s->write_event, NULL);
}

static void end_expired(int fd, short what, void *user)
{
	struct session *s = user;

	if (!s->closing) {
		session_close(s); /* This is a store that has had nothing to do. */
		return;
	}
	log_warning("worker for process %u does not leave: killed", s->pid);
	session_kill(s);
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

static void tell_status(const struct sessions *all)
{
	monitor_link_status(all->monitor, all->n, all->net->n_conns);
}

_Static_assert(RPC_END_REASON_STUCK < SESSION_END_REASONS, "each reason is counted");

struct session *worker_create(struct sessions *all, const struct ipc_started *started,
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
		all->counts.begun++;
		tell_status(all);
		readers_hand_over(s);
	}
	return s;
}

void worker_create_orphan(struct sessions *all, const struct ipc_started *started, int take_channel)
{
	struct session *s = worker_create(all, started, IPC_KIND_INSPECT, 0, 0, take_channel);

	if (s)
		session_close(s);
}

static void record_end(const struct session *s)
{
	char target[12], words[SESSION_END_WORDS];
	const char *reason = rpc_end_reason_name(s->reason);
	const struct log_field fields[] = { { "OBJECT_PID", target },
					    { "GPU_AGENT_SESSION", s->id },
					    { "GPU_AGENT_REASON", reason },
					    { NULL, NULL } };

	snprintf(target, sizeof(target), "%u", s->pid);
	log_record(LOG_LEVEL_INFO, LOG_MESSAGE_END, fields, "session %s on process %u is over: %s",
		   s->id, s->pid, session_end_words(s, words));
}

void worker_destroy(struct session *s)
{
	const struct rpc_session_detach_result left = { .ended = true };
	auto_out struct out text = { 0 };

	session_close(s);
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
		s->all->counts.ended[s->reason]++;
		tell_status(s->all);
	}
	session_free(s);
}

void worker_ended(struct session *s, const struct ipc_ended *m)
{
	/* What it said before it went may still be unread. */
	while (!s->closing && receive(s))
		;
	if (!s->over && m->how != IPC_HOW_CLEAN) {
		s->end_signal = m->signal;
		s->end_uid = m->uid;
		s->reason = m->how == IPC_HOW_STUCK ? RPC_END_REASON_STUCK : RPC_END_REASON_WORKER_DIED;
	}
	worker_destroy(s);
}
