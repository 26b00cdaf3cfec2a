/* SPDX-License-Identifier: MIT */
#include "agentd/worker/suspension.h"

#include "agentd/worker/session.h"
#include "base/clock.h"
#include "base/out.h"

static void tell(struct session *s)
{
	const struct target *t = s->target;
	const struct suspension *u = &t->suspension;
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
	/* Figures, not worth a session: with memory again, the next change tells them. */
	if (!out_error(&text))
		session_tell(s, IPC_SUSPENSION, &text);
}

void suspension_sync(struct session *s)
{
	struct target *t = s->target;
	struct suspension *u = &t->suspension;

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
