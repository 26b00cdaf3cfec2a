/* SPDX-License-Identifier: MIT */
#include "agentd/worker/rule/host.h"

#include "agentd/worker/session/handlers.h"
#include "agentd/worker/session/session.h"
#include "base/out.h"

/** The rule's number among the clients (subscribers.h); the frontend's own begin at 1. */
#define RULE_CLIENT UINT64_MAX

static void work_begin(void *session)
{
	session_work_begin(session);
}

static void work_end(void *session)
{
	session_work_end(session);
}

static void undo_begin(void *session)
{
	session_undo_begin(session);
}

static void undo_end(void *session)
{
	session_undo_end(session);
}

static void core_end(void *session)
{
	struct session *s = session;

	if (s->core_user != CORE_RULE)
		return;
	s->target->ops->core_end(s->target);
	s->core_user = CORE_NOBODY;
}

static void send_counts(void *session, const struct ipc_counts *counts)
{
	const struct out text = { .data = (char *)counts, .size = sizeof(*counts) };

	session_tell(session, IPC_COUNTS, &text);
}

static int subscribe(void *session, uint64_t exceptions, struct agent_err *err)
{
	const struct subscriber who = { .client = RULE_CLIENT, .exceptions = exceptions };
	struct session *s = session;

	if (subscribers_set(&s->subscribers, &who) < 0)
		return agent_err_no_memory(err, NULL);
	return session_subscribe(s, err);
}

static int tell_waits(void *session, struct rpc_arena *a, const struct snapshot *seen, const uint32_t *group_of,
		      uint32_t look_up_ms, struct rpc_gpu_snapshot_result *doc, struct agent_err *err)
{
	/* The target waits for its fault, and a record has the threads by itself. */
	return handlers_tell_waits(session, a, seen, group_of, look_up_ms, NULL, false, doc, err);
}

static void target_ended(void *session)
{
	struct session *s = session;

	event_active(s->target_event, EV_READ, 1);
}

struct rule_host session_rule_host(struct session *s)
{
	static const struct rule_host_ops ops = {
		.work_begin = work_begin,
		.work_end = work_end,
		.undo_begin = undo_begin,
		.undo_end = undo_end,
		.core_end = core_end,
		.send_counts = send_counts,
		.subscribe = subscribe,
		.tell_waits = tell_waits,
		.target_ended = target_ended,
	};

	return (struct rule_host){ .ops = &ops,
				   .session = s,
				   .number = s->options->session,
				   .target = s->target,
				   .deadline = &s->deadline,
				   .base = s->base };
}
