/* SPDX-License-Identifier: MIT */
#include "agentd/worker/session/suspension.h"

#include <event2/event.h>

#include "agentd/worker/process/options.h"
#include "agentd/worker/session/session.h"
#include "base/clock.h"
#include "base/out.h"

static void tell(struct session *s)
{
	const struct target *t = s->target;
	const struct suspension *u = &s->suspension;
	struct ipc_suspension m = { .start_ticks = t->start_ticks,
				    .count = u->count,
				    .total_ns = u->total_ns,
				    .since_ns = u->since_ns,
				    .lease_end_ns = u->lease_end_ns };
	auto_out struct out text;

	if (t->ops->suspended)
		m.n_queues = (uint32_t)t->ops->suspended(t, m.queues, IPC_SUSPENSION_QUEUES_MAX);
	out_init(&text, 0);
	out_bytes(&text, &m,
		  offsetof(struct ipc_suspension, queues) + m.n_queues * sizeof(m.queues[0]));
	/*
	 * The figures are not worth a session: the next change tells them, when there is memory
	 * again.
	 */
	if (!out_error(&text))
		session_tell(s, IPC_SUSPENSION, &text);
}

/* ------------------------------------------------------------------ the longest stop --------- */

uint32_t suspension_grant(uint64_t since_ns, uint32_t max_ms, uint64_t now_ns, uint32_t ms)
{
	uint64_t passed_ms = (now_ns - since_ns) / 1000000;
	uint64_t left_ms = max_ms > passed_ms ? max_ms - passed_ms : 1;

	return max_ms && left_ms < ms ? (uint32_t)left_ms : ms;
}

uint64_t suspension_warn_ns(uint64_t since_ns, uint32_t max_ms)
{
	return since_ns + UINT64_C(800000) * max_ms;
}

/* @return the longest stop for the client whose call is served, in ms; 0: no limit. */
static uint32_t longest_ms(const struct session *s)
{
	if (s->options->max_suspended_ms)
		return s->options->max_suspended_ms;
	return s->call.flags & IPC_FLAG_ADMIN ? 0 : IPC_MAX_SUSPENDED_MS;
}

static void announce(struct session *s, uint64_t since_ns);

static void tell_soon(struct session *s, uint64_t now_ns)
{
	const uint64_t passed_ms = (now_ns - s->target->suspended_since_ns) / 1000000;
	auto_out struct out text;
	char id[16];
	struct rpc_gpu_resume_soon_params p = { .session = id, .suspended_ms = passed_ms };

	if (passed_ms < s->max_suspended_ms)
		p.left_ms = s->max_suspended_ms - passed_ms;
	session_id(s, id);
	out_init(&text, 0);
	rpc_gpu_resume_soon_params_encode(&text, &p);
	session_notify(s, RPC_NOTIFICATION_GPU_RESUME_SOON, 0, &text);
}

/*
 * The timer may fire for a suspension that is over, and early: the loop's own clock stands during a
 * call.
 */
static void on_soon(evutil_socket_t fd, short what, void *user)
{
	struct session *s = user;
	const struct target *t = s->target;
	const uint64_t now_ns = clock_now_ns();

	if (!t->n_suspended || !s->max_suspended_ms)
		return;
	if (now_ns < suspension_warn_ns(t->suspended_since_ns, s->max_suspended_ms))
		announce(s, t->suspended_since_ns);
	else
		tell_soon(s, now_ns);
}

/*
 * Warn before the end of the longest stop.  Without memory the stop ends all the same, only
 * unannounced.
 */
static void announce(struct session *s, uint64_t since_ns)
{
	struct timeval tv;
	int ms;

	if (!s->soon)
		s->soon = event_new(s->base, -1, 0, on_soon, s);
	ms = clock_left_ms(suspension_warn_ns(since_ns, s->max_suspended_ms));
	if (!s->soon || !s->max_suspended_ms || !ms)
		return;
	tv = (struct timeval){ .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	event_add(s->soon, &tv);
}

uint32_t suspension_lease(struct session *s, uint32_t ms)
{
	const uint64_t now_ns = clock_now_ns();
	const uint64_t since_ns = s->target->n_suspended ? s->target->suspended_since_ns : now_ns;
	uint32_t granted;

	s->max_suspended_ms = longest_ms(s);
	granted = suspension_grant(since_ns, s->max_suspended_ms, now_ns, ms);
	s->lease_is_last = granted < ms;
	session_set_lease(s, granted);
	announce(s, since_ns);
	return granted;
}

enum rpc_resume_reason suspension_end_reason(const struct session *s)
{
	return s->lease_is_last ? RPC_RESUME_REASON_LIMIT : RPC_RESUME_REASON_LEASE_EXPIRED;
}

/* ------------------------------------------------------------------ what front is told ------- */

void suspension_sync(struct session *s)
{
	const struct target *t = s->target;
	struct suspension *u = &s->suspension;

	if (t->n_suspended && !u->since_ns) {
		u->since_ns = t->suspended_since_ns;
		u->count++;
	} else if (!t->n_suspended && u->since_ns) {
		u->total_ns += clock_now_ns() - u->since_ns;
		u->since_ns = 0;
	}
	if (u->n == t->n_suspended && u->lease_end_ns == s->lease_end_ns)
		return;
	u->n = t->n_suspended;
	u->lease_end_ns = s->lease_end_ns;
	tell(s);
}
