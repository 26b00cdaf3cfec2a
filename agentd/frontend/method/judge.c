/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/method/judge.h"

#include "agentd/frontend/method/frontend.h"
#include "agentd/frontend/method/handlers.h"
#include "agentd/frontend/rpc/start.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/out.h"

#define JUDGE_MS 5000

static bool is_due(const struct request *r, const struct attachment *a)
{
	const struct rpc_method_info *info = &rpc_methods[r->method];
	const bool takes = a->session->writer != r->conn && (info->lease || r->method == RPC_METHOD_SESSION_CONTROL);
	const uint64_t age_ms = (clock_now_ns() - a->judged_ns) / 1000000;

	return !r->judged &&
	       age_ms >= (takes || r->method == RPC_METHOD_CORE_BEGIN ? JUDGE_STRICT_MS : JUDGE_MEMORY_MS);
}

/* There is one session on a process at most, so that the process names the place as well. */
static struct attachment *find_place(const struct request *r)
{
	struct attachment *a;

	if (!r->conn)
		return NULL;
	LIST_FOREACH(a, &r->conn->attachments, in_conn)
		if (a->session->pid == r->pid && !a->session->over && !a->session->closing)
			return a;
	return NULL;
}

/* That the target has ended its session tells. */
static bool is_kept(const struct ipc_started *m, const struct attachment *a)
{
	return m->verdict == IPC_VERDICT_NO_PROCESS ||
	       (m->verdict == IPC_VERDICT_OK && m->rights >= (uint32_t)a->rights);
}

/* The monitor could not say: it is asked again for the next request. */
static bool is_unknown(const struct ipc_started *m)
{
	return m->verdict == IPC_VERDICT_LIMIT || m->verdict == IPC_VERDICT_RESCUE ||
	       m->verdict == IPC_VERDICT_FAILED;
}

static void end_place(struct attachment *a)
{
	const struct session *s = a->session;
	const struct rpc_session_ended_params params = { .session = s->id, .pid = s->pid,
							 .reason = RPC_END_REASON_NOT_PERMITTED };
	auto_out struct out text = { 0 };

	log_info("session %s: uid %u (pid %d) may no longer do with process %u what it could: it has left",
		 s->id, a->conn->uid, (int)a->conn->pid, s->pid);
	notices_flush(&a->notices, a->conn, true);
	out_init(&text, 0);
	rpc_session_ended_notification(&text, &params);
	conn_send(a->conn, &text);
	attachment_leave(a);
}

static void judged(struct request *r, const struct ipc_started *m)
{
	struct attachment *a = find_place(r);
	struct agent_err err = { 0 };

	r->judged = true;
	if (!r->conn) {
		request_fail(r, &err);
		return;
	}
	if (a && is_unknown(m)) {
		start_refusal(m, r->pid, &err);
		request_fail(r, &err);
		return;
	}
	if (a && !is_kept(m, a)) {
		if (start_refusal(m, r->pid, &err) == 0)
			agent_err_set(&err, RPC_ERROR_NOT_PERMITTED, 0, NULL, "attach again",
				      "you may do less with process %u than when you attached", r->pid);
		end_place(a);
		request_fail(r, &err);
		return;
	}
	if (a)
		a->judged_ns = clock_now_ns();
	request_go_on(r);
	handlers_run(r, r->params, r->params_size);
}

int judge_first(struct request *r, const struct attachment *a, const char *params, size_t size,
		struct agent_err *err)
{
	static const struct start_ops ops = { .judged = judged };
	int e;

	if (!is_due(r, a))
		return 0;
	e = request_keep_params(r, params, size, err);
	if (e < 0)
		return e;
	r->pid = a->session->pid;
	start_judge(&frontend_of(r)->starts, r, JUDGE_MS, &ops);
	return RPC_LATER;
}
