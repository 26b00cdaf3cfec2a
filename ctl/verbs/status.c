/* SPDX-License-Identifier: MIT */
/* gpu-agentctl status: the agent itself, and the open sessions that the user may see. */
#include <inttypes.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/terminal/text.h"
#include "base/cleanup.h"

/* The answers of the three calls that the page is made of. */
struct answers {
	struct rpc_agent_status_result status;
	struct rpc_agent_hello_result hello;
	struct rpc_session_list_result sessions;
};

/* Append the last result to the document as a member. */
static void add_member(struct ctl *c, struct out *doc, const char *name)
{
	size_t size;
	const char *text = rpc_client_last_result(c->client, &size);

	out_fmt(doc, "%s\"%s\":", doc->size ? "," : "{", name);
	out_bytes(doc, text, size);
}

/* Make the calls, and the document that JSON mode prints. */
static int ask(struct ctl *c, struct answers *a, struct out *doc)
{
	const struct rpc_agent_hello_params hello = { .client = "gpu-agentctl " GPU_AGENT_VERSION };
	int r = ctl_called(
		c, rpc_client_agent_hello(c->client, &hello, &c->arena, &a->hello, &c->err));

	if (r < 0)
		return r;
	add_member(c, doc, "hello");
	r = ctl_called(c, rpc_client_agent_status(c->client, NULL, &c->arena, &a->status, &c->err));
	if (r < 0)
		return r;
	add_member(c, doc, "status");
	r = ctl_called(c,
		       rpc_client_session_list(c->client, NULL, &c->arena, &a->sessions, &c->err));
	if (r < 0)
		return r;
	add_member(c, doc, "sessions");
	out_char(doc, '}');
	return 0;
}

/* Begin a line with its title. */
static struct out *line(struct ctl *c, const char *key)
{
	out_fmt(&c->output.text, "%s%-11s%s ", color_begin(COLOR_HEADER, c->output.color), key,
		color_end(COLOR_HEADER, c->output.color));
	return &c->output.text;
}

static void print_uptime(struct out *o, uint64_t ms)
{
	uint64_t s = ms / 1000;

	if (s >= 86400)
		out_fmt(o, "%" PRIu64 "d ", s / 86400);
	out_fmt(o, "%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 "\n", s / 3600 % 24, s / 60 % 60,
		s % 60);
}

/* Append how often and how long each process was suspended. */
static void print_suspended(struct ctl *c, const struct rpc_agent_status_result *s)
{
	for (size_t i = 0; i < s->n_suspended; i++) {
		const struct rpc_suspended_target *t = &s->suspended[i];
		struct out *o = line(c, i ? "" : "suspended");

		out_fmt(o, "process %u (", t->pid);
		text_put(o, "", t->comm, "");
		out_fmt(o, ", %s) %" PRIu64 " time%s, ", show_user(&c->arena, t->uid), t->suspends,
			t->suspends == 1 ? "" : "s");
		text_duration(o, t->suspended_us / 1000);
		out_str(o, t->suspended ? " so far, now\n" : "\n");
	}
}

static int print_rules(struct ctl *c, const struct rpc_agent_status_result *s)
{
	static const struct table_column columns[] = {
		{ "RULE", .importance = 2, .min = 8 },
		{ "WATCHING", true },
		{ "MATCHED", true },
		{ "EXCEPTIONS", true },
		{ "RECORDED", true },
		{ "DUPLICATES", true, .importance = 1 },
		{ "LIMITED", true, .importance = 1 },
		{ "LOST", true },
	};
	auto_table struct table t;

	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < s->n_rules; i++) {
		const struct rpc_rule_status *r = &s->rules[i];

		table_str(&t, r->name);
		table_u64(&t, r->watching);
		table_u64(&t, r->matched);
		table_u64(&t, r->exceptions);
		table_u64(&t, r->recorded);
		table_u64(&t, r->duplicates);
		table_u64(&t, r->limited);
		table_u64(&t, r->lost);
	}
	out_char(&c->output.text, '\n');
	return ctl_print_table(c, &t);
}

/* Append who keeps queues stopped, and when that client was last heard of. */
static void print_holders(struct ctl *c, const struct rpc_session_list_result *l)
{
	for (size_t i = 0; i < l->n_sessions; i++) {
		const struct rpc_session_info *s = &l->sessions[i];

		if (!s->has_suspension || !s->has_writer_pid || !s->has_writer_idle_ms)
			continue;
		out_fmt(&c->output.text,
			"process %u: suspended by process %u, renewed %" PRIu64 " time%s, last request %" PRIu64
			" s ago\n",
			s->pid, s->writer_pid, s->suspension.renewals,
			s->suspension.renewals == 1 ? "" : "s", s->writer_idle_ms / 1000);
	}
}

/* Append that an upgrade is not in effect, and what brings it into effect. */
static void print_replaced(struct ctl *c, const struct rpc_agent_status_result *s)
{
	static const char text[] = "upgraded    the agent's programs were replaced while it runs, and it starts nothing new: ";
	auto_out struct out line = { 0 };

	out_str(&line, text);
	out_str(&line, s->user_mode ? "restart it" : "an administrator restarts it with `systemctl restart gpu-agentd`");
	out_str(&line, s->has_stays && s->stays ? "; it does not end by itself, as watch rules or its settings keep it" :
						  ", or it ends by itself when nobody is connected");
	text_wrap(&c->output.text, line.data ? line.data : "", line.size, c->output.width, 12);
}

static int print_status(struct ctl *c, const struct answers *a)
{
	struct out *o = line(c, "agent");
	int r = 0;

	text_put(o, "", a->status.agent, "");
	out_fmt(o, "  protocol %.16s  pid %u%s\n", a->hello.protocol, a->status.pid,
		a->status.user_mode ? "  for one user" : "");
	o = line(c, "socket");
	text_put(o, "", c->socket, "\n");
	o = line(c, "features");
	for (size_t i = 0; i < a->hello.n_features; i++) {
		out_str(o, i ? ", " : "");
		text_put(o, "", a->hello.features[i], "");
	}
	out_char(o, '\n');
	out_fmt(line(c, "you"), "uid %u%s\n", a->hello.uid,
		a->hello.admin ? ", administrator" : "");
	print_uptime(line(c, "running"), a->status.uptime_ms);
	out_fmt(line(c, "connections"), "%u\n", a->status.connections);
	out_fmt(line(c, "requests"), "%" PRIu64 "\n", a->status.requests);
	out_fmt(line(c, "sessions"), "%u\n", a->status.sessions);
	if (a->status.owed)
		out_fmt(line(c, "owed"), "%" PRIu64 " time%s a process did not get a fault or an answer: see the log\n",
			a->status.owed, a->status.owed == 1 ? "" : "s");
	if (a->status.has_replaced && a->status.replaced)
		print_replaced(c, &a->status);
	print_suspended(c, &a->status);
	if (a->sessions.n_sessions) {
		out_char(o, '\n');
		r = show_sessions(c, a->sessions.sessions, a->sessions.n_sessions);
		print_holders(c, &a->sessions);
	}
	return r == 0 && a->status.n_rules ? print_rules(c, &a->status) : r;
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct answers a;
	auto_out struct out doc = { 0 };
	int r;

	r = ctl_connect(c);
	if (r == 0)
		r = ask(c, &a, &doc);
	if (r < 0)
		return r;
	return ctl_is_json(c) ? ctl_print_json(c, &doc) : print_status(c, &a);
}

const struct ctl_verb ctl_verb_status = {
	.name = "status",
	.args = "",
	.summary = "Show the state of the agent and the open sessions",
	.run = run,
};
