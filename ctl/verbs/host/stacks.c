/* SPDX-License-Identifier: MIT */
/* gpu-agentctl stacks: what the threads of a process do on the processors. */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "ctl/ctl.h"
#include "ctl/terminal/text.h"

/* Frames of a stack that are shown without --verbose. */
#define FRAMES_SHOWN 12
#define INDENT	     4
#define FUNCTION_MIN 16

static void print_count(struct out *o, uint32_t n, const char *one, const char *many)
{
	out_fmt(o, "%u %s", n, n == 1 ? one : many);
}

static void print_python(struct out *o, const struct rpc_interpreter *p)
{
	text_put(o, "Python ", p->version ? p->version : "of unknown version", "");
	if (p->free_threaded)
		out_str(o, ", free-threaded");
	if (p->interpreters > 1)
		out_fmt(o, ", %u interpreters", p->interpreters);
	if (p->has_lock_holder)
		out_fmt(o, ", lock held by thread %u", p->lock_holder);
	if (p->why)
		text_put(o, ": ", p->why, "");
	out_char(o, '\n');
}

static void print_head(struct ctl *c, const struct rpc_host_stacks_result *r)
{
	struct out *o = &c->output.text;

	text_put(o, "", r->comm, "");
	out_fmt(o, "  pid %u  uid %u  ", r->pid, r->uid);
	print_count(o, r->threads, "thread", "threads");
	out_fmt(o, ", %u running; none was stopped\n", r->running);
	for (size_t i = 0; i < r->n_python; i++)
		print_python(o, &r->python[i]);
}

/* What the threads do: "blocked in futex", "running". */
static void print_state(struct ctl *c, struct out *o, const struct rpc_thread_group *g)
{
	out_str(o, show_name(&c->arena, &rpc_thread_state_enum, g->state));
	if (g->waits_in)
		text_put(o, " in ", g->waits_in, "");
	if (g->holds_lock)
		out_str(o, ", holds the lock");
	if (g->n_frames && g->consistent && g->proof != RPC_STACK_PROOF_NOT_SCHEDULED)
		out_str(o, ", likely");
	if (!g->consistent)
		out_str(o, ", frames may be of different moments");
}

static void print_threads(struct out *o, const struct rpc_thread_group *g)
{
	out_str(o, g->threads == 1 ? "thread" : "threads");
	for (size_t i = 0; i < g->n_tids && i < 3; i++)
		out_fmt(o, "%s %u", i ? "," : "", g->tids[i]);
	if (g->threads > 3)
		out_str(o, ", ...");
	for (size_t i = 0; i < g->n_names && i < 2; i++)
		text_put(o, i ? ", " : " (", g->names[i], "");
	if (g->n_names)
		out_str(o, g->n_names > 2 ? ", ...)" : ")");
}

/* The end of a path says more than its beginning. */
static void print_place(struct out *o, const struct rpc_thread_frame *f, size_t room)
{
	auto_out struct out place = { 0 };
	size_t columns, skip;

	text_escape(&place, f->file, strlen(f->file));
	if (f->has_line)
		out_fmt(&place, ":%u", f->line);
	if (!place.data)
		return;
	columns = text_columns(place.data, place.size);
	skip = columns > room && room > 3 ? columns - room + 3 : 0;
	if (skip) {
		const char *at = place.data;

		/* Columns are characters: not within one. */
		for (; *at && skip; skip--)
			at += str_utf8_length(at, strlen(at)) ? str_utf8_length(at, strlen(at)) : 1;
		out_str(o, "...");
		out_str(o, at);
		return;
	}
	out_str(o, place.data);
}

static void print_frame(struct ctl *c, struct out *o, const struct rpc_thread_frame *f, size_t columns)
{
	auto_out struct out name = { 0 };
	size_t width = c->output.width, used;

	text_escape(&name, f->function, strlen(f->function));
	if (f->has_interpreter)
		out_fmt(&name, " [interpreter %u]", f->interpreter);
	used = name.data ? text_columns(name.data, name.size) : 0;
	out_fmt(o, "%*s%s", INDENT, "", name.data ? name.data : "");
	/* A long name has the line for itself. */
	if (used > columns) {
		out_fmt(o, "\n%*s", INDENT, "");
		used = 0;
	}
	out_fmt(o, "%*s", (int)(columns - used + 2), "");
	print_place(o, f, width > INDENT + columns + 2 ? width - INDENT - columns - 2 : SIZE_MAX);
	out_char(o, '\n');
}

static size_t columns_of(const struct ctl *c, const struct rpc_thread_group *g, size_t n)
{
	size_t widest = FUNCTION_MIN, most = c->output.width ? c->output.width / 2 : SIZE_MAX;

	for (size_t i = 0; i < n; i++) {
		auto_out struct out name = { 0 };

		text_escape(&name, g->frames[i].function, strlen(g->frames[i].function));
		if (name.data && text_columns(name.data, name.size) > widest)
			widest = text_columns(name.data, name.size);
	}
	return widest > most ? most : widest;
}

static void print_group(struct ctl *c, const struct rpc_thread_group *g)
{
	struct out *o = &c->output.text;
	auto_out struct out title = { 0 };
	size_t n = c->verbose || g->n_frames <= FRAMES_SHOWN ? g->n_frames : FRAMES_SHOWN - 1;
	size_t columns = columns_of(c, g, n);

	out_fmt(&title, "%u ", g->threads);
	print_state(c, &title, g);
	out_str(&title, ": ");
	print_threads(&title, g);
	out_char(o, '\n');
	out_str(o, color_begin(COLOR_HEADER, c->output.color));
	if (title.data)
		text_wrap(o, title.data, title.size, c->output.width, INDENT);
	out_str(o, color_end(COLOR_HEADER, c->output.color));
	for (size_t i = 0; i < n; i++) {
		if (g->has_elided && i == g->elided_after)
			out_fmt(o, "%*s(%u frames are left out)\n", INDENT, "", g->elided);
		print_frame(c, o, &g->frames[i], columns);
	}
	if (n < g->n_frames)
		out_fmt(o, "%*s(%zu more: --verbose)\n", INDENT, "", g->n_frames - n + (g->has_elided ? g->elided : 0));
	else if (g->truncated)
		out_fmt(o, "%*s(outer frames are missing)\n", INDENT, "");
}

static int print_stacks(struct ctl *c, const struct rpc_host_stacks_result *r)
{
	print_head(c, r);
	for (size_t i = 0; i < r->n_groups; i++)
		print_group(c, &r->groups[i]);
	return 0;
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct rpc_host_stacks_params p;
	struct rpc_host_stacks_result result;
	int r = args_pid(c, argv[0], &p.pid);

	if (r == 0)
		r = ctl_connect(c);
	if (r == 0)
		r = ctl_called(c, rpc_client_host_stacks(c->client, &p, &c->arena, &result, &c->err));
	if (r == 0)
		r = ctl_is_json(c) ? ctl_print_result(c) : print_stacks(c, &result);
	if (r < 0)
		return r;
	for (size_t i = 0; i < result.n_missing; i++)
		ctl_note(c, "missing: %s", result.missing[i]);
	return ctl_status(result.complete, false);
}

const struct ctl_verb ctl_verb_stacks = {
	.name = "stacks",
	.args = "PID",
	.summary = "Show what the threads of a process do, with Python frames; none is stopped",
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
