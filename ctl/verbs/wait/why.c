/* SPDX-License-Identifier: MIT */
/* gpu-agentctl why: what waits, for whom, and who does not come.  The first line is the cause. */
#include <time.h>

#include "base/cleanup.h"
#include "ctl/cli_words.h"
#include "ctl/ctl.h"
#include "ctl/verbs/wait/page.h"
#include "ctl/verbs/wait/told.h"

#define REPLY_MEMORY_MAX ((size_t)128 << 20)
#define TWICE_MS	 1000
#define TWICE_MAX_MS	 600000

static const char *twice;
static bool ras;

static const struct argv_option options[] = {
	{ "twice", 0, ARGV_OPTIONAL, &twice, "MS",
	  "take another sample after so many milliseconds (default 1000): what has moved is accused of nothing" },
	{ "ras", 0, ARGV_FLAG, &ras, NULL, "also ask NCCL's own status socket what its ranks have launched" },
	{ 0 },
};

static int print_page(struct ctl *c, const struct rpc_why_get_result *r)
{
	why_page_causes(c, r);
	told_show(c, r);
	why_page_waits(c, r);
	return 0;
}

static int print_document(struct ctl *c, const struct rpc_why_get_result *r)
{
	auto_out struct out text = { 0 };

	if (!ras)
		return ctl_print_result(c);
	rpc_why_get_result_encode(&text, r);
	return ctl_print_json(c, &text);
}

/* Ask NCCL, and say in the document what it says, or that this is missing. */
static int add_told(struct ctl *c, const struct told_by *t, struct rpc_why_get_result *r)
{
	const char *why, **list;
	int e = told_ask(c, t, r, &why);

	if (e < 0 || !why)
		return e;
	list = rpc_arena_array(&c->arena, r->n_missing + 1, sizeof(*list));
	if (!list)
		return ctl_fail(c, ENOMEM, "the document");
	for (size_t i = 0; i < r->n_missing; i++)
		list[i] = r->missing[i];
	list[r->n_missing++] = rpc_arena_printf(&c->arena, TOLD_WHAT ": %s", why);
	r->missing = list;
	r->complete = false;
	return rpc_arena_error(&c->arena) ? ctl_fail(c, ENOMEM, "the document") : 0;
}

static int look(struct ctl *c, struct rpc_why_get_params *p, struct rpc_why_get_result *ret)
{
	return ctl_called(c, rpc_client_why_get(c->client, p, &c->arena, ret, &c->err));
}

static int look_twice(struct ctl *c, struct rpc_why_get_params *p, uint32_t pause_ms, struct rpc_why_get_result *ret)
{
	struct timespec ts = { pause_ms / 1000, pause_ms % 1000 * 1000000L };
	int r = look(c, p, ret);

	if (r < 0)
		return r;
	ctl_note(c, "the second sample follows in %u ms", pause_ms);
	/* Signals that come meanwhile end the program, so that the sleep is never cut short. */
	nanosleep(&ts, NULL);
	p->has_since = true;
	p->since = ret->sample;
	return look(c, p, ret);
}

static int status_of(struct ctl *c, const struct rpc_why_get_result *r)
{
	for (size_t i = 0; i < r->n_missing; i++)
		ctl_note(c, "missing: %s", cli_words(c, r->missing[i]));
	if (r->has_stuck && r->stuck)
		return r->n_causes && r->causes[0].culprit ? CTL_EXIT_NO_PROGRESS : CTL_EXIT_NO_CAUSE;
	return ctl_status(r->complete, false);
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct rpc_why_get_params p = { .has_max_stop_ms = c->max_look_ms, .max_stop_ms = c->max_look_ms };
	struct rpc_why_get_result result;
	uint32_t pause_ms = TWICE_MS;
	struct told_by told;
	int r = 0;

	if (c->core && (twice || ras))
		return ctl_usage(c, twice ? "--twice needs a process: a core does not change" :
					    "--ras needs a process: nobody answers for a core");
	if (twice && *twice)
		r = args_ms(c, "--twice", twice, TWICE_MAX_MS, &pause_ms);
	c->arena.limit = REPLY_MEMORY_MAX;
	if (r == 0)
		r = ctl_attach(c, argv[0], false);
	if (r < 0)
		return r;
	p.session = c->session.session;
	if (ras)
		told_open(c, &told);
	r = twice ? look_twice(c, &p, pause_ms, &result) : look(c, &p, &result);
	if (ras) {
		r = r == 0 ? add_told(c, &told, &result) : r;
		told_close(&told);
	}
	if (r == 0)
		r = ctl_is_json(c) ? print_document(c, &result) : print_page(c, &result);
	ctl_detach(c);
	return r < 0 ? r : status_of(c, &result);
}

const struct ctl_verb ctl_verb_why = {
	.name = "why",
	.args = "PID",
	.summary = "Show what waits on the GPUs, for whom, and who does not come",
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.takes_core = true,
	.run = run,
};
