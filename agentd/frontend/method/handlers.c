/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/method/handlers.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "agentd/frontend/method/attach.h"
#include "agentd/frontend/method/cores.h"
#include "agentd/frontend/method/frontend.h"
#include "agentd/frontend/method/hooks.h"
#include "agentd/frontend/method/judge.h"
#include "agentd/frontend/method/listing.h"
#include "agentd/frontend/method/metrics.h"
#include "agentd/frontend/session/calls.h"
#include "agentd/frontend/session/lease.h"
#include "agentd/frontend/session/rules.h"
#include "agentd/frontend/session/suspensions.h"
#include "agentd/frontend/session/worker.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/out.h"

#define INSPECT_MS 10000
/* A worker gives a call up by itself after 10 s. */
#define CALL_MS	  13000
#define DETACH_MS 8000

#define MEMORY_READ_MAX	   (1u << 20)
#define SUSPEND_LEASE_MAX_MS 60000

static int no_session(struct agent_err *err, const char *id)
{
	return agent_err_set(
		err, RPC_ERROR_NO_SUCH_SESSION, 0, NULL,
		"sessions belong to the connection that attached: call session.attach first",
		"this connection has no session %.40s", id);
}

static int agent_hello(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		       const struct rpc_agent_hello_params *params,
		       struct rpc_agent_hello_result *ret, struct agent_err *err)
{
	struct frontend *f = ctx;
	const char **features = rpc_arena_array(arena, RPC_FEATURE_COUNT, sizeof(*features));

	if (!features)
		return agent_err_no_memory(err, NULL);
	for (size_t i = 0; i < RPC_FEATURE_COUNT; i++)
		features[i] = rpc_features[i].name;
	if (params->client)
		log_debug("client of pid %d: %s", (int)call->conn->pid, params->client);
	*ret = (struct rpc_agent_hello_result){
		.protocol = RPC_PROTOCOL_VERSION,
		.agent = GPU_AGENT_VERSION,
		.features = features,
		.n_features = RPC_FEATURE_COUNT,
		.uid = call->conn->uid,
		.admin = call->conn->admin,
		.limits = { .request_bytes = RPC_WIRE_BODY_MAX,
			    .reply_bytes = IPC_TEXT_MAX,
			    .batch = 64,
			    .memory_read_bytes = MEMORY_READ_MAX,
			    .suspend_lease_ms = SUSPEND_LEASE_MAX_MS,
			    .sessions = f->sessions_per_user_max,
			    .connections = f->net.connections_per_user_max },
	};
	return 0;
}

static int agent_status(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			const struct rpc_agent_status_params *params,
			struct rpc_agent_status_result *ret, struct agent_err *err)
{
	struct frontend *f = ctx;
	bool all = call->conn->admin || f->user_mode;
	size_t n_rules = 0;
	struct rpc_rule_status *rules = all ? rules_status(&f->sessions, arena, &n_rules) : NULL;

	if (all && !rules)
		return agent_err_no_memory(err, NULL);
	*ret = (struct rpc_agent_status_result){
		.agent = GPU_AGENT_VERSION,
		.pid = (uint32_t)f->daemon_pid,
		.uptime_ms = (clock_now_ns() - f->started_ns) / 1000000,
		.connections = f->net.n_conns,
		.sessions = f->sessions.n,
		.requests = f->requests.n,
		.owed = f->n_owed,
		.has_replaced = true,
		.replaced = f->replaced,
		.has_stays = true,
		.stays = f->sessions.n_rules || !f->net.idle_ms, /* What the monitor judges by: monitor_idle(). */
		.user_mode = f->user_mode,
		.has_rules = all,
		.rules = rules,
		.n_rules = n_rules,
	};
	if (suspensions_list(&f->sessions, call->conn, arena, &ret->suspended, &ret->n_suspended) < 0)
		return agent_err_no_memory(err, NULL);
	return 0;
}

static int rpc_discover(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			const struct rpc_rpc_discover_params *params,
			struct rpc_rpc_discover_result *ret, struct agent_err *err)
{
	ret->openrpc = rpc_openrpc_json;
	return 0;
}

static int session_attach(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			  const struct rpc_session_attach_params *params,
			  struct rpc_session_attach_result *ret, struct agent_err *err)
{
	attach_begin(call->request, params);
	return RPC_LATER;
}

static void detach_expired(int fd, short what, void *user)
{
	struct request *r = user;
	struct agent_err err = { 0 };

	agent_err_set(&err, RPC_ERROR_TIMEOUT, 0, "detach",
		      "the agent kills the worker; the kernel lets the target run",
		      "the worker did not finish in time");
	agent_err_set_resumed(&err, true);
	request_fail(r, &err);
}

static int session_detach(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			  const struct rpc_session_detach_params *params,
			  struct rpc_session_detach_result *ret, struct agent_err *err)
{
	struct attachment *a = attachment_find(call->conn, params->session);
	struct session *s;

	if (!a)
		return no_session(err, params->session);
	s = a->session;
	if (params->has_release && params->release && s->rule[0]) {
		int r = attachment_check_control(a, err);

		if (r < 0)
			return r;
		rules_release(s, call->conn);
	}
	if (s->rule[0] || LIST_NEXT(LIST_FIRST(&s->attachments), in_session)) {
		attachment_leave(a);
		ret->ended = false;
		return 0;
	}
	/* The answer means that the target is free: it waits until the monitor has reaped the worker. */
	request_own(call->request, &s->leavers);
	request_deadline(call->request, DETACH_MS, detach_expired);
	attachment_leave(a);
	return RPC_LATER;
}

static int exception_filter(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			    const struct rpc_exception_filter_params *params,
			    struct rpc_exception_filter_result *ret, struct agent_err *err)
{
	struct attachment *a = attachment_find(call->conn, params->session);

	if (!a)
		return no_session(err, params->session);
	if (notices_filter(&a->notices, params) < 0)
		return agent_err_no_memory(err, NULL);
	ret->filtered = notices_has_filter(&a->notices);
	return 0;
}

static void describe_session(const struct session *s, struct rpc_session_info *ret)
{
	const struct attachment *a;

	*ret = (struct rpc_session_info){
		.session = s->id,
		.pid = s->pid,
		.uid = s->uid,
		.comm = s->comm,
		.rule = s->rule[0] ? s->rule : NULL,
		.has_vendor = s->vendor != 0,
		.vendor = s->vendor,
		.age_ms = (clock_now_ns() - s->since_ns) / 1000000,
		.has_writer_pid = s->writer != NULL,
		.has_writer_uid = s->writer != NULL,
	};
	LIST_FOREACH(a, &s->attachments, in_session)
		ret->readers++;
	LIST_FOREACH(a, &s->attachments, in_session)
		if (s->writer && a->conn == s->writer) {
			ret->has_writer_idle_ms = true;
			ret->writer_idle_ms = lease_idle_ms(a);
		}
	if (s->writer) {
		ret->writer_pid = (uint32_t)s->writer->pid;
		ret->writer_uid = s->writer->uid;
	}
	suspensions_describe(s, ret);
}

static int session_list(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			const struct rpc_session_list_params *params,
			struct rpc_session_list_result *ret, struct agent_err *err)
{
	struct frontend *f = ctx;
	const struct session *s;

	ret->sessions = rpc_arena_array(arena, f->sessions.n, sizeof(*ret->sessions));
	if (!ret->sessions)
		return agent_err_no_memory(err, NULL);
	LIST_FOREACH(s, &f->sessions.list, link)
		if (s->kind == IPC_KIND_SESSION && !s->closing && !s->over &&
		    (call->conn->admin || s->uid == call->conn->uid))
			describe_session(s, &ret->sessions[ret->n_sessions++]);
	return 0;
}

static const struct rpc_front_handlers handlers = {
	.agent_hello = agent_hello,
	.agent_status = agent_status,
	.agent_metrics = metrics_agent,
	.rpc_discover = rpc_discover,
	.session_attach = session_attach,
	.session_detach = session_detach,
	.session_list = session_list,
	.exception_filter = exception_filter,
	.hooks_list = hooks_list,
	.hooks_test = hooks_test,
};

/*
 * Check that a descriptor can be sent with the answer: the request must have an answer of its own,
 * and no other descriptor may be on its way.
 */
static int check_stream(struct request *r, struct agent_err *err)
{
	if (r->batch || !r->id)
		return agent_err_set(err, RPC_ERROR_INVALID_REQUEST, 0, rpc_methods[r->method].name,
				     "send it as a request of its own",
				     "no descriptor goes with the answers of a batch, or with none");
	return conn_check_fd(r->conn, request_brings_fd(r->conn), rpc_methods[r->method].name, err);
}

/*
 * Do to the writer lease what a call does to it, before the worker gets it: of a call refused for its
 * parameters nothing, so they were decoded here although the worker decodes them for itself.
 */
static int settle_lease(struct request *r, struct attachment *a, const void *params,
			struct agent_err *err)
{
	const struct rpc_method_info *info = &rpc_methods[r->method];
	const struct rpc_session_control_params *control = params;
	const struct rpc_gpu_resume_params *resume = params;
	int e;

	if (r->method == RPC_METHOD_GPU_RESUME)
		return lease_take(a, resume->has_force && resume->force ? LEASE_BY_FORCE : LEASE_FREE,
				  r, err);
	if (r->method != RPC_METHOD_SESSION_CONTROL)
		return info->lease ? lease_take(a, LEASE_FREE, r, err) :
		       info->right == RPC_RIGHT_CONTROL ? attachment_check_control(a, err) : 0;
	if (control->take)
		return lease_take(a, control->has_force && control->force ? LEASE_BY_FORCE :
									    LEASE_FROM_SILENT,
				  r, err);
	e = attachment_check_control(a, err);
	if (e == 0)
		lease_give_back(a);
	return e;
}

/* Have a request answered by the worker of the session that its parameters name. */
static int run_session(struct request *r, struct rpc_arena *arena, const char *params, size_t size,
		       struct agent_err *err)
{
	const struct rpc_method_info *info = &rpc_methods[r->method];
	struct attachment *a;
	uint32_t flags;
	const char *id;
	void *decoded;
	int e = info->descriptor ? check_stream(r, err) : 0;

	if (e == 0)
		e = rpc_params_decode(r->method, params, size, arena, &decoded, err);
	if (e < 0)
		return e;
	id = rpc_params_session(r->method, decoded);
	a = attachment_find(r->conn, id);
	if (!a || !a->established)
		return no_session(err, id);
	e = judge_first(r, a, params, size, err);
	if (e)
		return e;
	lease_note_call(a, r->method);
	e = settle_lease(r, a, decoded, err);
	if (e < 0)
		return e;
	flags = a->rights >= IPC_RIGHT_CONTROL ? IPC_FLAG_CONTROL : 0;
	if (info->descriptor)
		calls_send_stream(a->session, r, params, size, flags, CALL_MS);
	else
		calls_send(a->session, r, params, size, flags, CALL_MS);
	return RPC_LATER;
}

static void inspect_started(struct request *r, const struct ipc_started *m, int take_channel)
{
	struct session *s = worker_create(&frontend_of(r)->sessions, m, IPC_KIND_INSPECT, 0, r->pid,
					  take_channel);
	struct agent_err err = { 0 };

	if (s) {
		calls_send(s, r, r->params, r->params_size, 0, INSPECT_MS);
		return;
	}
	agent_err_no_memory(&err, NULL);
	request_fail(r, &err);
}

static int run_inspect(struct request *r, const char *params, size_t size, struct agent_err *err)
{
	static const struct start_ops ops = { .started = inspect_started };
	int e = request_keep_params(r, params, size, err);

	if (e < 0)
		return e;
	start_ask(&frontend_of(r)->starts, r, r->pid ? IPC_KIND_HOST : IPC_KIND_INSPECT, INSPECT_MS, &ops);
	return RPC_LATER;
}

/* The process that the worker is about, and that the client must be allowed to look at, if there is one. */
static void take_target(struct request *r, const void *params)
{
	const struct rpc_host_stacks_params *p = params;

	if (r->method != RPC_METHOD_HOST_STACKS)
		return;
	r->pid = p->pid;
	/* Stops are for native frames; without these no program is started that could make them. */
	r->start_stops = p->has_stop && p->stop && (!p->has_native || p->native);
}

void handlers_run(struct request *r, const char *params, size_t size)
{
	static struct rpc_arena arena; /* one request at a time; its memory is kept for the next */
	static struct out reply;
	struct rpc_call call = { r, r->conn };
	struct agent_err err = { 0 };
	void *decoded;
	int e;

	if (!arena.limit) {
		rpc_arena_init(&arena, 0);
		out_init(&reply, 0);
	}
	switch (rpc_methods[r->method].place) {
	case RPC_PLACE_SESSION:
		e = run_session(r, &arena, params, size, &err);
		break;
	case RPC_PLACE_STORE:
	case RPC_PLACE_INSPECT:
		/* Of what is not even valid, no process is started. */
		e = rpc_params_decode(r->method, params, size, &arena, &decoded, &err);
		if (e == 0)
			take_target(r, decoded);
		if (e == 0)
			e = rpc_methods[r->method].place == RPC_PLACE_STORE ?
				    cores_call(r, params, size, &err) :
			    r->method == RPC_METHOD_PROCESS_LIST ?
				    listing_ask(r, decoded, params, size, &err) :
				    run_inspect(r, params, size, &err);
		break;
	default:
		e = rpc_front_dispatch(&handlers, frontend_of(r), &call, &arena, r->method, params, size,
				       &reply, &err);
	}
	if (e < 0)
		request_fail(r, &err);
	else if (e != RPC_LATER)
		request_reply(r, reply.data, reply.size);
	out_reset(&reply);
	rpc_arena_reset(&arena);
}
