/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentctl hooks: the programs that watch rules run, whether they would be accepted, and one
 * run on a sample.
 */
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "ctl/cli_words.h"
#include "ctl/ctl.h"
#include "ctl/document/when.h"
#include "ctl/terminal/text.h"

static const char *user;

static const struct argv_option options[] = {
	{ "user", 0, ARGV_STRING, &user, "USER", "test: as if a process of USER had failed" },
	{ 0 },
};

/* How a hook ended, with its exit status or signal. */
static const char *end_text(struct ctl *c, enum rpc_hook_end end, int64_t status)
{
	const char *name = show_name(&c->arena, &rpc_hook_end_enum, end);

	if (end != RPC_HOOK_END_EXIT && end != RPC_HOOK_END_SIGNAL)
		return name;
	return rpc_arena_printf(&c->arena, "%s %" PRId64, name, status);
}

/* ------------------------------------------------------------------ list --------------------- */

static void add_row(struct ctl *c, struct table *t, const struct rpc_hook *h)
{
	char when[32] = "";
	bool good = h->has_last_end && h->last_end == RPC_HOOK_END_EXIT && !h->last_status;

	if (h->has_last_time_us)
		when_format(h->last_time_us, when, sizeof(when));
	table_str(t, h->rule);
	table_style(t, h->acceptable ? COLOR_GOOD : COLOR_BAD, h->acceptable ? "ok" : "refused");
	table_str(t, cli_words(c, h->problem));
	table_style(t, good ? COLOR_PLAIN : COLOR_BAD,
		    h->has_last_end ? end_text(c, h->last_end, h->last_status) : NULL);
	table_u64(t, h->runs);
	table_u64(t, h->failures);
	table_u64(t, h->dropped);
	table_u64(t, h->running + h->waiting);
	table_str(t, h->path);
	table_str(t, h->user ? h->user : "(target's)");
	table_str(t, when);
}

static int run_list(struct ctl *c)
{
	static const struct table_column columns[] = {
		{ "RULE", .importance = 9, .min = 12 },
		{ "CHECK" },
		{ "PROBLEM", .optional = true, .importance = 2, .min = 24, .wrap = true },
		{ "LAST", .optional = true, .importance = 6, .min = 8 },
		{ "RUNS", true, .importance = 5 },
		{ "FAILED", true, .importance = 5 },
		{ "DROPPED", true, .importance = 2 },
		{ "NOW", true, .importance = 2 },
		{ "HOOK", .importance = 4, .min = 16 },
		{ "USER", .importance = 3 },
		{ "TIME", .optional = true, .importance = 1 },
	};
	struct rpc_hooks_list_result list;
	auto_table struct table t = { 0 };
	int r = ctl_connect(c);

	if (r == 0)
		r = ctl_called(c,
			       rpc_client_hooks_list(c->client, NULL, &c->arena, &list, &c->err));
	if (r < 0)
		return r;
	if (ctl_is_json(c))
		return ctl_print_result(c);
	if (!list.n_hooks) {
		ctl_note(c, "no rule has a hook");
		return 0;
	}
	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < list.n_hooks; i++)
		add_row(c, &t, &list.hooks[i]);
	return ctl_print_table(c, &t);
}

/* ------------------------------------------------------------------ test --------------------- */

/* A user by number or by name. */
static int find_user(struct ctl *c, uint32_t *ret)
{
	const struct passwd *pw;
	uint64_t uid;

	if (str_to_u64(user, 0, UINT32_MAX - 1, &uid) == 0) {
		*ret = (uint32_t)uid;
		return 0;
	}
	pw = getpwnam(user);
	if (!pw)
		return ctl_usage(c, "--user: there is no user \"%.40s\"", user);
	*ret = pw->pw_uid;
	return 0;
}

/* The hook's output is data; what became of the hook is a message. */
static int print_test(struct ctl *c, const struct rpc_hooks_test_result *t)
{
	auto_out struct out took = { 0 };
	struct out *o = &c->output.text;

	text_duration(&took, t->duration_us / 1000);
	ctl_note(c, "%s as uid %u after %s%s%s", end_text(c, t->end, t->status), t->uid, took.data ? took.data : "?",
		 t->problem ? ": " : "", t->problem ? cli_words(c, t->problem) : "");
	if (t->left)
		ctl_note(c, "%u process%s that it left behind had to be ended", t->left, t->left == 1 ? "" : "es");
	for (const char *p = t->output; *p;) {
		size_t n = strcspn(p, "\n");

		text_escape(o, p, n);
		out_char(o, '\n');
		p += n + (p[n] == '\n');
	}
	if (t->output_bytes > strlen(t->output))
		ctl_note(c, "the first %zu of %" PRIu64 " bytes that it wrote", strlen(t->output),
			 t->output_bytes);
	return out_error(o) ? ctl_fail(c, -out_error(o), "printing the output") : 0;
}

static int run_test(struct ctl *c, const char *rule)
{
	struct rpc_hooks_test_params p = { .rule = rule, .has_uid = user };
	struct rpc_hooks_test_result t;
	int r = user ? find_user(c, &p.uid) : 0;

	if (r == 0)
		r = ctl_connect(c);
	if (r == 0)
		r = ctl_called(c, rpc_client_hooks_test(c->client, &p, &c->arena, &t, &c->err));
	if (r == 0)
		r = ctl_is_json(c) ? ctl_print_result(c) : print_test(c, &t);
	if (r < 0)
		return r;
	return t.end == RPC_HOOK_END_EXIT && !t.status ? 0 : CTL_EXIT_FAILURE;
}

static int run(struct ctl *c, int argc, char **argv)
{
	bool test = !strcmp(argv[0], "test");

	if (!test && strcmp(argv[0], "list") != 0)
		return ctl_usage(c, "hooks: \"%.40s\" is none of list, test", argv[0]);
	if (test && argc < 2)
		return ctl_usage(c, "hooks test needs a rule");
	if (!test && argc > 1)
		return ctl_usage(c, "hooks list: unexpected argument \"%.40s\"", argv[1]);
	if (!test && user)
		return ctl_usage(c, "--user goes with test");
	return test ? run_test(c, argv[1]) : run_list(c);
}

const struct ctl_verb ctl_verb_hooks = {
	.name = "hooks",
	.args = "list | test RULE",
	.summary = "Programs that watch rules run: their state, and a run on a sample",
	.options = options,
	.min_args = 1,
	.max_args = 2,
	.run = run,
};
