/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/method/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "agentd/frontend/method/frontend.h"
#include "agentd/frontend/method/hooks.h"
#include "agentd/frontend/method/metric_list.h"
#include "agentd/frontend/session/rules.h"
#include "base/cleanup.h"
#include "base/out.h"

/* What samples are made of. */
struct view {
	const struct frontend *f;
	struct metric_list *list;
	const struct rpc_rule_status *rules;
	size_t n_rules;
	const struct hook_info *hooks;
	size_t n_hooks;
};

#define LABELS(...) ((const struct metric_label[METRIC_LABELS_MAX]){ __VA_ARGS__ })

static void gauge(const struct view *v, uint64_t value)
{
	metric_u64(v->list, "", NULL, value);
}

static void counter(const struct view *v, uint64_t value)
{
	metric_u64(v->list, "_total", NULL, value);
}

/* ------------------------------------------------------------------ the agent ---------------- */

static void build(const struct view *v)
{
	metric_u64(v->list, "", LABELS({ "version", GPU_AGENT_VERSION }, { "protocol", RPC_PROTOCOL_VERSION }), 1);
}

static void start_time(const struct view *v)
{
	metric_us(v->list, "", NULL, v->f->started_wall_us);
}

static void connections(const struct view *v)
{
	gauge(v, v->f->net.n_conns);
}

static void connections_limit(const struct view *v)
{
	gauge(v, v->f->net.connections_max);
}

static void connections_accepted(const struct view *v)
{
	counter(v, v->f->net.n_accepted);
}

static void connections_refused(const struct view *v)
{
	counter(v, v->f->net.n_refused);
}

static const char *method_name(size_t method)
{
	return method < RPC_METHOD_COUNT ? rpc_methods[method].name : "none";
}

static void requests(const struct view *v)
{
	for (size_t m = 0; m <= RPC_METHOD_COUNT; m++) {
		const struct request_count *c = &v->f->requests.counts[m];
		const char *name = method_name(m);

		if (c->ok)
			metric_u64(v->list, "_total", LABELS({ "method", name }, { "result", "ok" }), c->ok);
		for (size_t i = 0; i < RPC_ERROR_COUNT; i++)
			if (c->failed[i])
				metric_u64(v->list, "_total",
					   LABELS({ "method", name }, { "result", rpc_errors[i].name }), c->failed[i]);
	}
}

static void request_duration(const struct view *v)
{
	for (size_t m = 0; m < RPC_METHOD_COUNT; m++) {
		const struct request_count *c = &v->f->requests.counts[m];
		uint64_t n = c->ok;

		for (size_t i = 0; i < RPC_ERROR_COUNT; i++)
			n += c->failed[i];
		if (!n)
			continue;
		metric_u64(v->list, "_count", LABELS({ "method", method_name(m) }), n);
		metric_us(v->list, "_sum", LABELS({ "method", method_name(m) }), c->total_ns / 1000);
	}
}

/* ------------------------------------------------------------------ sessions ----------------- */

static void sessions(const struct view *v)
{
	const struct session *s;
	uint64_t n[RPC_VENDOR_NVIDIA + 1] = { 0 };

	LIST_FOREACH(s, &v->f->sessions.list, link)
		if (s->kind == IPC_KIND_SESSION)
			n[s->vendor]++;
	metric_u64(v->list, "", LABELS({ "vendor", "amd" }), n[RPC_VENDOR_AMD]);
	metric_u64(v->list, "", LABELS({ "vendor", "nvidia" }), n[RPC_VENDOR_NVIDIA]);
	/* It is not known before the worker has attached. */
	metric_u64(v->list, "", LABELS({ "vendor", "unknown" }), n[0]);
}

static void sessions_started(const struct view *v)
{
	counter(v, v->f->sessions.counts.begun);
}

static void sessions_ended(const struct view *v)
{
	for (size_t i = 0; i < SESSION_END_REASONS; i++)
		metric_u64(v->list, "_total", LABELS({ "reason", rpc_end_reason_name((int64_t)i) }),
			   v->f->sessions.counts.ended[i]);
}

static void stop_duration(const struct view *v)
{
#define END(us, seconds) seconds,
	static const char *const ends[] = { SESSION_STOP_CLASSES(END) };
#undef END
	const struct session_counts *c = &v->f->sessions.counts;
	uint64_t n = 0;

	for (size_t i = 0; i < SESSION_STOPS; i++) {
		n += c->stops[i];
		metric_u64(v->list, "_bucket", LABELS({ "le", ends[i] }), n);
	}
	n += c->stops[SESSION_STOPS];
	metric_u64(v->list, "_bucket", LABELS({ "le", "+Inf" }), n);
	metric_u64(v->list, "_count", NULL, n);
	metric_us(v->list, "_sum", NULL, c->stopped_us);
}

static void suspensions(const struct view *v)
{
	counter(v, v->f->sessions.counts.suspensions);
}

static void suspended_time(const struct view *v)
{
	metric_us(v->list, "_total", NULL, v->f->sessions.counts.suspended_ns / 1000);
}

static void suspended_processes(const struct view *v)
{
	const struct session *s;
	uint64_t n = 0;

	LIST_FOREACH(s, &v->f->sessions.list, link)
		n += s->suspension && s->suspension->since_ns;
	gauge(v, n);
}

static void exceptions(const struct view *v)
{
	for (size_t i = 0; i < SESSION_EXCEPTIONS; i++) {
		const char *name = rpc_exception_name((int64_t)i + 1);

		if (name)
			metric_u64(v->list, "_total", LABELS({ "exception", name }),
				   v->f->sessions.counts.exceptions[i]);
	}
}

static void owed(const struct view *v)
{
	counter(v, v->f->n_owed);
}

/* ------------------------------------------------------------------ rules and hooks ---------- */

static void rules(const struct view *v)
{
	gauge(v, v->f->sessions.n_rules);
}

static void rule_watching(const struct view *v)
{
	for (size_t i = 0; i < v->n_rules; i++)
		metric_u64(v->list, "", LABELS({ "rule", v->rules[i].name }), v->rules[i].watching);
}

static void rule_matched(const struct view *v)
{
	for (size_t i = 0; i < v->n_rules; i++)
		metric_u64(v->list, "_total", LABELS({ "rule", v->rules[i].name }), v->rules[i].matched);
}

static void rule_exceptions(const struct view *v)
{
	for (size_t i = 0; i < v->n_rules; i++) {
		const struct rpc_rule_status *r = &v->rules[i];

		metric_u64(v->list, "_total", LABELS({ "rule", r->name }, { "result", "recorded" }), r->recorded);
		metric_u64(v->list, "_total", LABELS({ "rule", r->name }, { "result", "duplicate" }), r->duplicates);
		metric_u64(v->list, "_total", LABELS({ "rule", r->name }, { "result", "limited" }), r->limited);
		metric_u64(v->list, "_total", LABELS({ "rule", r->name }, { "result", "lost" }), r->lost);
	}
}

/* Those without a name are the sum of all. */
static const char *rule_of(const struct hook_info *h)
{
	return h->rule[0] ? h->rule : NULL;
}

static void hook_runs(const struct view *v)
{
	for (size_t i = 0; i < v->n_hooks; i++) {
		const struct hook_counts *c = &v->hooks[i].counts;
		const char *rule = rule_of(&v->hooks[i]);

		metric_u64(v->list, "_total", LABELS({ "rule", rule }, { "result", "ok" }), c->runs - c->failures);
		metric_u64(v->list, "_total", LABELS({ "rule", rule }, { "result", "failed" }),
			   c->failures - c->timeouts);
		metric_u64(v->list, "_total", LABELS({ "rule", rule }, { "result", "timeout" }), c->timeouts);
		metric_u64(v->list, "_total", LABELS({ "rule", rule }, { "result", "dropped" }), c->dropped);
	}
}

static void hooks_running(const struct view *v)
{
	for (size_t i = 0; i < v->n_hooks; i++)
		metric_u64(v->list, "", LABELS({ "rule", rule_of(&v->hooks[i]) }), v->hooks[i].running);
}

static void hooks_waiting(const struct view *v)
{
	for (size_t i = 0; i < v->n_hooks; i++)
		metric_u64(v->list, "", LABELS({ "rule", rule_of(&v->hooks[i]) }), v->hooks[i].waiting);
}

/* ------------------------------------------------------------------ all of them -------------- */

static const struct family {
	const char *name;
	enum rpc_metric_type type;
	const char *unit, *help;
	void (*fill)(const struct view *v);
} families[] = {
	{ "gpu_agent_build_info", RPC_METRIC_TYPE_GAUGE, NULL, "Versions of the agent and of its protocol; always 1.", build },
	{ "gpu_agent_start_time_seconds", RPC_METRIC_TYPE_GAUGE, "seconds", "When the agent started, in seconds since 1970.",
	  start_time },
	{ "gpu_agent_connections", RPC_METRIC_TYPE_GAUGE, NULL, "Open connections of clients.", connections },
	{ "gpu_agent_connections_limit", RPC_METRIC_TYPE_GAUGE, NULL, "Most connections that there may be.",
	  connections_limit },
	{ "gpu_agent_connections_accepted", RPC_METRIC_TYPE_COUNTER, NULL, "Connections that were served.",
	  connections_accepted },
	{ "gpu_agent_connections_refused", RPC_METRIC_TYPE_COUNTER, NULL, "Connections refused because of a limit.",
	  connections_refused },
	{ "gpu_agent_requests", RPC_METRIC_TYPE_COUNTER, NULL,
	  "Answered requests by method and result: ok, or the name of the error. Method none: there was no such method.",
	  requests },
	{ "gpu_agent_request_duration_seconds", RPC_METRIC_TYPE_SUMMARY, "seconds",
	  "Time from a request to its answer, by method.", request_duration },
	{ "gpu_agent_sessions", RPC_METRIC_TYPE_GAUGE, NULL,
	  "Open sessions, one for each process that is being debugged, by vendor.", sessions },
	{ "gpu_agent_sessions_started", RPC_METRIC_TYPE_COUNTER, NULL, "Sessions that clients or rules began.",
	  sessions_started },
	{ "gpu_agent_sessions_ended", RPC_METRIC_TYPE_COUNTER, NULL,
	  "Sessions that ended, by reason. worker_died, stuck and lost are failures.", sessions_ended },
	{ "gpu_agent_stop_duration_seconds", RPC_METRIC_TYPE_HISTOGRAM, "seconds",
	  "Longest time that a queue stood still for a snapshot, for registers, for a core file or at an exception.",
	  stop_duration },
	{ "gpu_agent_suspensions", RPC_METRIC_TYPE_COUNTER, NULL, "Times that clients suspended the queues of a process.",
	  suspensions },
	{ "gpu_agent_suspended_seconds", RPC_METRIC_TYPE_COUNTER, "seconds",
	  "Time that queues of processes were suspended by clients; suspensions count when they are over.",
	  suspended_time },
	{ "gpu_agent_suspended_processes", RPC_METRIC_TYPE_GAUGE, NULL, "Processes whose queues a client keeps suspended.",
	  suspended_processes },
	{ "gpu_agent_exceptions", RPC_METRIC_TYPE_COUNTER, NULL,
	  "Exceptions that sessions were told of, because a client or rule had subscribed.", exceptions },
	{ "gpu_agent_owed", RPC_METRIC_TYPE_COUNTER, NULL,
	  "Times that a process did not get a fault or an answer that its session owed it.", owed },
	{ "gpu_agent_rules", RPC_METRIC_TYPE_GAUGE, NULL, "Watch rules in the configuration.", rules },
	{ "gpu_agent_rule_watching", RPC_METRIC_TYPE_GAUGE, NULL, "Processes that rules watch.", rule_watching },
	{ "gpu_agent_rule_matched", RPC_METRIC_TYPE_COUNTER, NULL, "Processes that rules began to watch.", rule_matched },
	{ "gpu_agent_rule_exceptions", RPC_METRIC_TYPE_COUNTER, NULL,
	  "Exceptions for rules, by what became of them: recorded, duplicate, limited (above rate_limit) or lost.",
	  rule_exceptions },
	{ "gpu_agent_hook_runs", RPC_METRIC_TYPE_COUNTER, NULL,
	  "Runs of hooks by result: ok, failed, timeout, or dropped because too many waited.", hook_runs },
	{ "gpu_agent_hooks_running", RPC_METRIC_TYPE_GAUGE, NULL, "Hooks that run.", hooks_running },
	{ "gpu_agent_hooks_waiting", RPC_METRIC_TYPE_GAUGE, NULL, "Hooks that wait for others to end.", hooks_waiting },
};

/* May this client know what each rule did?  As for agent.status. */
static bool knows_rules(const struct frontend *f, const struct conn *c)
{
	return f->user_mode || (c && c->admin);
}

static void add_rules(struct rpc_rule_status *sum, const struct rpc_rule_status *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		sum->watching += list[i].watching;
		sum->matched += list[i].matched;
		sum->recorded += list[i].recorded;
		sum->duplicates += list[i].duplicates;
		sum->limited += list[i].limited;
		sum->lost += list[i].lost;
	}
}

static void add_hooks(struct hook_info *sum, const struct hook_info *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		sum->counts.runs += list[i].counts.runs;
		sum->counts.failures += list[i].counts.failures;
		sum->counts.timeouts += list[i].counts.timeouts;
		sum->counts.dropped += list[i].counts.dropped;
		sum->running += list[i].running;
		sum->waiting += list[i].waiting;
	}
}

/* @return 0, -ENOMEM. */
static int fill(const struct frontend *f, bool by_rule, const struct hook_info *hooks, size_t n_hooks,
		struct rpc_arena *arena, struct rpc_agent_metrics_result *ret)
{
	struct metric_list list = METRIC_LIST(arena);
	struct view v = { .f = f, .list = &list, .hooks = hooks, .n_hooks = n_hooks };
	struct rpc_rule_status all_rules = { 0 };
	struct hook_info all_hooks = { 0 };

	v.rules = rules_status(&f->sessions, arena, &v.n_rules);
	if (!by_rule && v.n_rules) {
		add_rules(&all_rules, v.rules, v.n_rules);
		v.rules = &all_rules;
		v.n_rules = 1;
	}
	if (!by_rule && n_hooks) {
		add_hooks(&all_hooks, hooks, n_hooks);
		v.hooks = &all_hooks;
		v.n_hooks = 1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		const struct family *k = &families[i];

		metric_begin(&list, k->name, k->type, k->unit, k->help);
		if (list.n)
			k->fill(&v);
	}
	ret->metrics = list.metrics;
	ret->n_metrics = list.n;
	return rpc_arena_error(arena);
}

int metrics_agent(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		  const struct rpc_agent_metrics_params *params, struct rpc_agent_metrics_result *ret,
		  struct agent_err *err)
{
	const struct frontend *f = ctx;

	/* What hooks did the rules process knows; with too many questions to it, this is left out. */
	if (f->sessions.n_rules && hooks_ask_counts(call->request) == RPC_LATER)
		return RPC_LATER;
	return fill(f, knows_rules(f, call->conn), NULL, 0, arena, ret) < 0 ? agent_err_no_memory(err, NULL) : 0;
}

void metrics_answer(struct request *r, const struct hook_info *hooks, size_t n_hooks)
{
	const struct frontend *f = frontend_of(r);
	struct rpc_agent_metrics_result result = { 0 };
	auto_rpc_arena struct rpc_arena arena;
	auto_out struct out text;
	struct agent_err err = { 0 };

	rpc_arena_init(&arena, 0);
	out_init(&text, 0);
	if (fill(f, knows_rules(f, r->conn), hooks, n_hooks, &arena, &result) == 0)
		rpc_agent_metrics_result_encode(&text, &result);
	if (!rpc_arena_error(&arena) && !out_error(&text)) {
		request_reply(r, text.data, text.size);
		return;
	}
	agent_err_no_memory(&err, NULL);
	request_fail(r, &err);
}
