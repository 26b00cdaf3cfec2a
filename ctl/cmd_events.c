/* SPDX-License-Identifier: MIT */
/* gpu-agentctl events: exceptions and changes of a process as they happen. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/ctl.h"
#include "ctl/stream.h"

static const char *subscribe, *for_text;
static bool hold, until_eof;

static const struct argv_option options[] = {
	{ "subscribe", 0, ARGV_STRING, &subscribe, "LIST",
	  "exceptions by name, or faults (default), all, none" },
	{ "hold", 0, ARGV_FLAG, &hold, NULL,
	  "keep faults from the application until this command ends" },
	STREAM_OPTIONS(for_text, until_eof),
	{ 0 },
};

/* Every exception but those that only say that something was made, destroyed or switched. */
static bool is_fault(int64_t exception)
{
	return exception != RPC_EXCEPTION_QUEUE_NEW && exception != RPC_EXCEPTION_DEVICE_NEW &&
	       exception != RPC_EXCEPTION_DEVICE_QUEUE_DELETE &&
	       exception != RPC_EXCEPTION_PROCESS_RUNTIME;
}

static void add(struct rpc_exception_subscribe_params *p, enum rpc_exception e)
{
	for (size_t i = 0; i < p->n_exceptions; i++)
		if (p->exceptions[i] == e)
			return;
	p->exceptions[p->n_exceptions++] = e;
}

static void add_group(struct rpc_exception_subscribe_params *p, bool faults_only)
{
	for (size_t i = 0; i < rpc_exception_enum.n; i++)
		if (!faults_only || is_fault(rpc_exception_enum.values[i].value))
			add(p, (enum rpc_exception)rpc_exception_enum.values[i].value);
}

static int add_word(struct ctl *c, struct rpc_exception_subscribe_params *p, const char *word)
{
	enum rpc_exception e;

	if (!strcmp(word, "all") || !strcmp(word, "faults"))
		add_group(p, !strcmp(word, "faults"));
	else if (!rpc_exception_parse(word, &e))
		add(p, e);
	else if (strcmp(word, "none"))
		return ctl_usage(
			c, "--subscribe: \"%.60s\" is no exception, nor all, faults or none", word);
	return 0;
}

static int parse(struct ctl *c, struct rpc_exception_subscribe_params *p)
{
	auto_free char *copy = strdup(subscribe ? subscribe : "faults");
	char *save, *word;
	int r = 0;

	p->exceptions = rpc_arena_array(&c->arena, rpc_exception_enum.n, sizeof(*p->exceptions));
	if (!copy || !p->exceptions)
		return ctl_fail(c, ENOMEM, "--subscribe");
	for (word = strtok_r(copy, ",", &save); word && r == 0; word = strtok_r(NULL, ",", &save))
		r = add_word(c, p, word);
	p->has_hold = p->hold = hold;
	if (r == 0 && hold && !p->n_exceptions)
		r = ctl_usage(c, "--hold: nothing is subscribed to that could be held");
	return r;
}

static int start(struct ctl *c, struct stream *s, struct rpc_exception_subscribe_params *p)
{
	struct rpc_exception_subscribe_result result;
	int r;

	if (p->n_exceptions) {
		p->session = c->session.session;
		r = ctl_called(c, rpc_client_exception_subscribe(c->client, p, &c->arena, &result,
								 &c->err));
		if (r < 0)
			return r;
	}
	snprintf(s->notice, sizeof(s->notice), "listening to process %u; Ctrl-C ends",
		 c->session.pid);
	return 0;
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct rpc_exception_subscribe_params p = { 0 };
	enum stream_end end = STREAM_END_TIME;
	struct stream s;
	int r = parse(c, &p);

	if (r == 0)
		r = stream_begin(c, &s, for_text, until_eof);
	if (r == 0)
		r = ctl_attach(c, argv[0], p.n_exceptions > 0);
	if (r == 0)
		r = start(c, &s, &p);
	if (r == 0)
		r = stream_run(c, &s, &end);
	ctl_detach(c);
	return r < 0 ? r : stream_status(c, &s, end);
}

const struct ctl_verb ctl_verb_events = {
	.name = "events",
	.args = "PID",
	.summary = "Print exceptions and other events of a process as they happen",
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
