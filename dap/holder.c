/* SPDX-License-Identifier: MIT */
/*
 * Another client may control the process, and keep its queues suspended.  The agent tells of that
 * only the client that has lost something: a session that may only look asks for it, and tells its
 * editor.
 */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "dap/adapter.h"

/* Milliseconds between two questions. */
#define ASK_MS 1000u

/* Make the sentence on the client that holds the queues. */
static void describe(struct dap *d, const struct rpc_suspension *s)
{
	auto_out struct out o = { 0 };

	if (s->has_holder_pid)
		out_fmt(&o, "process %u (user %u)", s->holder_pid, s->holder_uid);
	else
		out_str(&o, "another client");
	out_fmt(&o, " keeps %zu queue%s suspended", s->n_queues, s->n_queues == 1 ? "" : "s");
	str_copy(d->held_by, sizeof(d->held_by), o.data ? o.data : "another client");
}

int dap_holder_ask(struct dap *d, struct agent_err *err)
{
	const struct rpc_session_list_params p = { 0 };
	struct rpc_session_list_result result;
	int r;

	d->ask_ns = clock_deadline_ms(ASK_MS);
	/* The client that has control is the only one that can suspend. */
	if (d->control || dap_is_core(d)) {
		d->held = false;
		return 0;
	}
	r = rpc_client_session_list(d->client, &p, &d->arena, &result, err);
	if (r < 0)
		return r;
	d->held = false;
	for (size_t i = 0; i < result.n_sessions; i++)
		if (!strcmp(result.sessions[i].session, d->session) &&
		    result.sessions[i].has_suspension) {
			d->held = true;
			describe(d, &result.sessions[i].suspension);
		}
	return 0;
}

bool dap_holder_asks(const struct dap *d)
{
	return d->announced && d->state == DAP_ATTACHED && !d->control && !dap_is_core(d);
}

void dap_holder_watch(struct dap *d)
{
	bool was_held = d->held;
	struct agent_err err = { 0 };

	if (clock_left_ms(d->ask_ns))
		return;
	rpc_arena_reset(&d->arena);
	/* A failure is no news: the next question comes soon. */
	if (dap_holder_ask(d, &err) < 0 || d->held == was_held)
		return;
	if (d->held)
		dap_session_show_held(d);
	else
		dap_continued(d);
}
