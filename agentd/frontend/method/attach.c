/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/method/attach.h"

#include <errno.h>

#include "agentd/frontend/method/frontend.h"
#include "agentd/frontend/session/calls.h"
#include "agentd/frontend/session/lease.h"
#include "agentd/frontend/session/worker.h"

#define ATTACH_MS_DEFAULT 10000
/* Time that the call to the worker and the way back take, besides what the client allows. */
#define WAY_MS 1500

/* Give the client its place in the session before the worker has said whether attaching worked. */
static int enter_session(struct request *r, const struct ipc_started *m, struct session *s,
			 struct agent_err *err)
{
	struct attachment *a;
	int e;

	if (!s)
		return agent_err_no_memory(err, NULL);
	a = attachment_create(s, r->conn, (enum ipc_right)m->rights);
	if (!a)
		return agent_err_no_memory(err, NULL);
	a->user_ns = m->user_ns;
	e = r->control ? lease_take(a, (enum lease_want)r->want, r, err) : 0;
	if (e < 0 && !a->established)
		attachment_leave(a);
	return e;
}

static void attach_started(struct request *r, const struct ipc_started *m, int take_channel)
{
	struct sessions *all = &frontend_of(r)->sessions;
	struct session *s;
	struct agent_err err = { 0 };
	uint32_t flags = m->joined ? IPC_FLAG_JOINED : 0;

	if (!r->conn) {
		if (!m->joined)
			worker_create_orphan(all, m, take_channel);
		request_fail(r, &err);
		return;
	}
	if (m->joined)
		s = session_find_worker(all, m->worker);
	else
		s = worker_create(all, m, IPC_KIND_SESSION, m->session, r->pid, take_channel);
	if (s && (s->closing || s->over)) {
		/* The worker is on its way out: ask again when the monitor has reaped it. */
		request_own(r, &s->comers);
		return;
	}
	if (enter_session(r, m, s, &err) < 0) {
		request_fail(r, &err);
		return;
	}
	if (m->rights >= IPC_RIGHT_CONTROL)
		flags |= IPC_FLAG_CONTROL;
	calls_send(s, r, NULL, 0, flags, r->start_ms + WAY_MS);
}

void attach_begin(struct request *r, const struct rpc_session_attach_params *params)
{
	static const struct start_ops ops = { .started = attach_started };

	r->pid = params->pid;
	r->want = params->has_force && params->force ? LEASE_BY_FORCE :
		  params->has_take && params->take   ? LEASE_FROM_SILENT :
						       LEASE_FREE;
	r->control = (params->has_control && params->control) || r->want != LEASE_FREE;
	start_ask(&frontend_of(r)->starts, r, IPC_KIND_SESSION,
		  params->has_timeout_ms ? params->timeout_ms : ATTACH_MS_DEFAULT, &ops);
}
