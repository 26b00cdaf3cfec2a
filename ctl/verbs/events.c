/* SPDX-License-Identifier: MIT */
/* gpu-agentctl events: exceptions and changes of a process as they happen. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/ctl.h"
#include "ctl/stream.h"

/* Most milliseconds of look_ms that the agent accepts. */
#define LOOK_MAX_MS 1000
/* Most kernels that the agent's filter has room for. */
#define KERNELS_MAX 16

static const char *subscribe, *filter, *for_text;
static bool hold, no_look, until_eof;

static const struct argv_option options[] = {
	{ "subscribe", 0, ARGV_STRING, &subscribe, "EXCEPTION,...",
	  "exceptions by name, or faults (default), all, none" },
	{ "filter", 0, ARGV_STRING, &filter, "EXCEPTION,...",
	  "print only these exceptions, and kernels whose name matches (faults, myk*)" },
	{ "no-look", 0, ARGV_FLAG, &no_look, NULL,
	  "never stop queues to see which waves a fault concerns" },
	{ "hold", 0, ARGV_FLAG, &hold, NULL,
	  "keep faults from the application until this command ends" },
	STREAM_OPTIONS(for_text, until_eof),
	{ 0 },
};

/*
 * Whether `faults` means this exception: all but those that only say that something was made,
 * destroyed or switched.
 */
static bool is_fault(int64_t exception)
{
	return exception != RPC_EXCEPTION_QUEUE_NEW && exception != RPC_EXCEPTION_DEVICE_NEW &&
	       exception != RPC_EXCEPTION_DEVICE_QUEUE_DELETE &&
	       exception != RPC_EXCEPTION_PROCESS_RUNTIME;
}

/* A list of words of --subscribe or --filter. */
struct words {
	enum rpc_exception *exceptions;
	size_t n_exceptions;
	const char **kernels; /* NULL: other words than exceptions are mistakes. */
	size_t n_kernels;
};

/* Add an exception once; parse_words() has made room for all. */
static void add(struct words *w, enum rpc_exception e)
{
	for (size_t i = 0; i < w->n_exceptions; i++)
		if (w->exceptions[i] == e)
			return;
	w->exceptions[w->n_exceptions++] = e;
}

static void add_group(struct words *w, bool faults_only)
{
	for (size_t i = 0; i < rpc_exception_enum.n; i++)
		if (!faults_only || is_fault(rpc_exception_enum.values[i].value))
			add(w, (enum rpc_exception)rpc_exception_enum.values[i].value);
}

/* Add what one word means; a word of --filter that is no exception is a kernel. */
static int add_word(struct ctl *c, struct words *w, const char *word)
{
	enum rpc_exception e;

	if (!strcmp(word, "all") || !strcmp(word, "faults"))
		add_group(w, !strcmp(word, "faults"));
	else if (!rpc_exception_parse(word, &e))
		add(w, e);
	else if (w->kernels && w->n_kernels < KERNELS_MAX)
		w->kernels[w->n_kernels++] = rpc_arena_strdup(&c->arena, word);
	else if (w->kernels)
		return ctl_usage(c, "--filter: more than %d kernels", KERNELS_MAX);
	else if (strcmp(word, "none"))
		return ctl_usage(
			c, "--subscribe: \"%.60s\" is no exception, nor all, faults or none", word);
	return 0;
}

static int parse_words(struct ctl *c, const char *text, struct words *w)
{
	auto_free char *copy = strdup(text);
	char *save, *word;
	int r = 0;

	w->exceptions = rpc_arena_array(&c->arena, rpc_exception_enum.n, sizeof(*w->exceptions));
	if (!copy || !w->exceptions)
		return ctl_fail(c, ENOMEM, "list of exceptions");
	word = strtok_r(copy, ",", &save);
	if (!word)
		return ctl_usage(c, "--%s: names nothing", w->kernels ? "filter" : "subscribe");
	for (; word && r == 0; word = strtok_r(NULL, ",", &save))
		r = add_word(c, w, word);
	return r;
}

static int parse(struct ctl *c, struct rpc_exception_subscribe_params *p)
{
	struct words w = { 0 };
	int r = parse_words(c, subscribe ? subscribe : "faults", &w);

	p->exceptions = w.exceptions;
	p->n_exceptions = w.n_exceptions;
	p->has_hold = p->hold = hold;
	/* Zero keeps the agent from stopping queues to see which waves a fault concerns. */
	p->has_look_ms = no_look || c->max_stop_ms;
	p->look_ms = no_look ? 0 : c->max_stop_ms < LOOK_MAX_MS ? c->max_stop_ms : LOOK_MAX_MS;
	/* With `none` there is nothing that could be held. */
	if (r == 0 && hold && !p->n_exceptions)
		r = ctl_usage(c, "--hold: nothing is subscribed to that could be held");
	return r;
}

static int parse_filter(struct ctl *c, struct rpc_exception_filter_params *p)
{
	struct words w = { .kernels = rpc_arena_array(&c->arena, KERNELS_MAX, sizeof(*w.kernels)) };
	int r = !w.kernels ? ctl_fail(c, ENOMEM, "--filter") :
		filter	   ? parse_words(c, filter, &w) : 0;

	p->has_exceptions = w.n_exceptions > 0;
	p->exceptions = w.exceptions;
	p->n_exceptions = w.n_exceptions;
	p->has_kernels = w.n_kernels > 0;
	p->kernels = w.kernels;
	p->n_kernels = w.n_kernels;
	return r;
}

static int set_filter(struct ctl *c, struct rpc_exception_filter_params *p)
{
	struct rpc_exception_filter_result result;

	if (!p->has_exceptions && !p->has_kernels)
		return 0;
	p->session = c->session.session;
	return ctl_called(c,
			  rpc_client_exception_filter(c->client, p, &c->arena, &result, &c->err));
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
	struct rpc_exception_filter_params f = { 0 };
	enum stream_end end = STREAM_END_TIME;
	struct stream s;
	int r = parse(c, &p);

	if (r == 0)
		r = parse_filter(c, &f);
	if (r == 0)
		r = stream_begin(c, &s, for_text, until_eof);
	if (r == 0)
		r = ctl_attach(c, argv[0], hold);
	if (r == 0)
		ctl_name_gpus_for_text(c);
	if (r == 0)
		r = set_filter(c, &f);
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
