/* SPDX-License-Identifier: MIT */
#include "ctl/host_show.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "ctl/ctl.h"
#include "ctl/document/host/host.h"
#include "ctl/terminal/text.h"

/* Frames of a stack that are shown without --verbose. */
#define FRAMES_SHOWN 12
#define INDENT	     4
#define FUNCTION_MIN 16

/* ------------------------------------------------------------------ stacks ------------------- */

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

/* "rank 3 of 8, local 1, of job 4711 (RANK)" */
static void print_rank(struct out *o, const struct rpc_process_rank *r)
{
	out_fmt(o, "rank %u", r->rank);
	if (r->has_world_size)
		out_fmt(o, " of %u", r->world_size);
	if (r->has_local_rank)
		out_fmt(o, ", local %u", r->local_rank);
	if (r->job)
		text_put(o, ", of job ", r->job, "");
	text_put(o, " (", r->from, ")\n");
}

static void print_findings(struct ctl *c, const struct rpc_host_stacks_result *r)
{
	for (size_t i = 0; i < r->n_findings; i++) {
		auto_out struct out line = { 0 };

		text_put(&line, "", r->findings[i], "");
		out_str(&c->output.text, color_begin(COLOR_BAD, c->output.color));
		text_wrap(&c->output.text, line.data ? line.data : "", line.size, c->output.legend ? c->output.width : 0, INDENT);
		out_str(&c->output.text, color_end(COLOR_BAD, c->output.color));
	}
}

static void print_stops(struct ctl *c, const struct rpc_host_stacks_result *r)
{
	struct out *o = &c->output.text;

	if (c->core)
		return;
	if (!r->has_stopped_threads || !r->stopped_threads) {
		out_str(o, "; none was stopped");
		return;
	}
	out_str(o, "; ");
	print_count(o, r->stopped_threads, "thread was stopped", "threads were stopped");
	out_fmt(o, ", %" PRIu64 ".%" PRIu64 " ms in all", r->stopped_us / 1000, r->stopped_us % 1000 / 100);
}

static void print_head(struct ctl *c, const struct rpc_host_stacks_result *r)
{
	struct out *o = &c->output.text;

	text_put(o, "", r->comm, "");
	out_fmt(o, "  pid %u  uid %u  ", r->pid, r->uid);
	print_count(o, r->threads, "thread", "threads");
	out_fmt(o, ", %u running", r->running);
	print_stops(c, r);
	out_char(o, '\n');
	if (r->has_rank)
		print_rank(o, &r->rank);
	for (size_t i = 0; i < r->n_python; i++)
		print_python(o, &r->python[i]);
	print_findings(c, r);
}

/* Have the threads run since the first look?  Only of the same threads that is known. */
static void print_moved(struct out *o, const struct rpc_host_stacks_result *before, const struct rpc_thread_group *g)
{
	bool ran;

	for (size_t i = 0; before && i < before->n_groups; i++)
		if (host_find_ran(&before->groups[i], g, &ran)) {
			out_str(o, ran ? ", has run since" : ", has not run since");
			return;
		}
}

/* What the threads do: "blocked in futex", "running". */
static void print_state(struct ctl *c, struct out *o, const struct rpc_thread_group *g)
{
	out_str(o, show_name(&c->arena, &rpc_thread_state_enum, g->state));
	if (g->waits_in)
		text_put(o, " in ", g->waits_in, "");
	if (g->has_role)
		text_put(o, ", ", host_role(&c->arena, g->role), "");
	if (g->has_waits_for)
		host_put_wait(o, &g->waits_for);
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

/* One line of a stack: a frame of Python, or one of native code. */
struct line {
	const struct rpc_thread_frame *python;
	const struct rpc_native_frame *native;
	uint32_t elided; /* So many frames are left out in front of it. */
};

/* Native frames with those of Python in the place of the calls that run them; else Python's, then the native ones. */
static size_t list_lines(struct ctl *c, const struct rpc_thread_group *g, struct line **ret)
{
	struct line *lines = rpc_arena_array(&c->arena, g->n_frames + g->n_native_frames, sizeof(*lines));
	size_t n = 0, at = 0;
	bool is_joined = false;

	*ret = lines;
	for (size_t i = 0; i < g->n_native_frames; i++)
		is_joined |= g->native_frames[i].has_python_frames;
	for (size_t i = 0; lines && !is_joined && at < g->n_frames; i++, at++)
		lines[n++] = (struct line){ .python = &g->frames[at],
					    .elided = g->has_elided && i == g->elided_after ? g->elided : 0 };
	for (size_t i = 0; lines && i < g->n_native_frames; i++) {
		const struct rpc_native_frame *f = &g->native_frames[i];

		if (!f->has_python_frames)
			lines[n++] = (struct line){ .native = f };
		for (uint32_t k = 0; f->has_python_frames && k < f->python_frames && at < g->n_frames; k++)
			lines[n++] = (struct line){ .python = &g->frames[at++] };
	}
	/* Those of calls that are not among the native frames. */
	while (lines && at < g->n_frames)
		lines[n++] = (struct line){ .python = &g->frames[at++] };
	return n;
}

/* The end of a path says more than its beginning. */
static void print_place(struct out *o, const struct out *place, size_t room)
{
	size_t columns, skip;

	if (!place->data)
		return;
	columns = text_columns(place->data, place->size);
	skip = columns > room && room > 3 ? columns - room + 3 : 0;
	if (skip) {
		const char *at = place->data;

		/* Columns are characters: not within one. */
		for (; *at && skip; skip--)
			at += str_utf8_length(at, strlen(at)) ? str_utf8_length(at, strlen(at)) : 1;
		out_str(o, "...");
		out_str(o, at);
		return;
	}
	out_str(o, place->data);
}

static void put_native_name(struct out *name, const struct rpc_native_frame *f)
{
	if (f->function)
		text_put(name, "", f->function, "");
	else
		out_fmt(name, "0x%" PRIx64, f->address);
	if (f->function && f->offset)
		out_fmt(name, "+0x%" PRIx64, f->offset);
	if (f->guessed)
		out_str(name, " (guessed)");
}

static void put_name(struct out *name, const struct line *l)
{
	if (l->native) {
		put_native_name(name, l->native);
		return;
	}
	text_escape(name, l->python->function, strlen(l->python->function));
	if (l->python->has_interpreter)
		out_fmt(name, " [interpreter %u]", l->python->interpreter);
}

static void put_place(struct out *place, const struct line *l)
{
	if (l->native && l->native->module)
		text_put(place, "in ", l->native->module, "");
	else if (l->native)
		out_str(place, "in code of no file");
	if (l->native)
		return;
	text_escape(place, l->python->file, strlen(l->python->file));
	if (l->python->has_line)
		out_fmt(place, ":%u", l->python->line);
}

static void print_line(struct ctl *c, struct out *o, const struct line *l, size_t columns)
{
	auto_out struct out name = { 0 }, place = { 0 };
	size_t width = c->output.width, used;

	put_name(&name, l);
	put_place(&place, l);
	used = name.data ? text_columns(name.data, name.size) : 0;
	out_fmt(o, "%*s%s", INDENT, "", name.data ? name.data : "");
	/* A long name has the line for itself. */
	if (used > columns) {
		out_fmt(o, "\n%*s", INDENT, "");
		used = 0;
	}
	out_fmt(o, "%*s", (int)(columns - used + 2), "");
	print_place(o, &place, width > INDENT + columns + 2 ? width - INDENT - columns - 2 : SIZE_MAX);
	out_char(o, '\n');
}

static size_t columns_of(const struct ctl *c, const struct line *lines, size_t n)
{
	size_t widest = FUNCTION_MIN, most = c->output.width ? c->output.width / 2 : SIZE_MAX;

	for (size_t i = 0; i < n; i++) {
		auto_out struct out name = { 0 };

		put_name(&name, &lines[i]);
		if (name.data && text_columns(name.data, name.size) > widest)
			widest = text_columns(name.data, name.size);
	}
	return widest > most ? most : widest;
}

/* What is missing at the outer end, where that is not as usual. */
static void print_end(struct out *o, const struct rpc_thread_group *g)
{
	static const char *const ends[] = {
		[RPC_NATIVE_END_REGISTER] = "further native frames need a register that is not known",
		[RPC_NATIVE_END_AMBIGUOUS] = "further native frames are ambiguous",
		[RPC_NATIVE_END_TABLE] = "further native frames: this code has no unwind table",
		[RPC_NATIVE_END_MEMORY] = "further native frames: the stack makes no sense",
		[RPC_NATIVE_END_DEPTH] = "further native frames are left out",
		[RPC_NATIVE_END_RUNNING] = "no native frames: it is running",
		[RPC_NATIVE_END_UNPROVEN] = "no native frames: it ran while it was read",
		[RPC_NATIVE_END_REFUSED] = "no native frames: the kernel does not tell its registers",
		[RPC_NATIVE_END_NOT_READ] = "no native frames: they were not read",
	};

	if (g->truncated)
		out_fmt(o, "%*s(outer frames are missing)\n", INDENT, "");
	if (g->has_was_stopped && g->was_stopped)
		out_fmt(o, "%*s(stopped for a moment)\n", INDENT, "");
	if ((size_t)g->native_end < ARRAY_SIZE(ends) && ends[g->native_end] && g->state != RPC_THREAD_STATE_ENDED)
		out_fmt(o, "%*s(%s)\n", INDENT, "", ends[g->native_end]);
}

static void print_group(struct ctl *c, const struct rpc_host_stacks_result *before, const struct rpc_thread_group *g)
{
	struct out *o = &c->output.text;
	auto_out struct out title = { 0 };
	struct line *lines;
	size_t all = list_lines(c, g, &lines), n = c->verbose || all <= FRAMES_SHOWN ? all : FRAMES_SHOWN - 1;
	size_t columns = columns_of(c, lines, n);

	out_fmt(&title, "%u ", g->threads);
	print_state(c, &title, g);
	print_moved(&title, before, g);
	out_str(&title, ": ");
	print_threads(&title, g);
	out_char(o, '\n');
	out_str(o, color_begin(COLOR_HEADER, c->output.color));
	if (title.data)
		text_wrap(o, title.data, title.size, c->output.width, INDENT);
	out_str(o, color_end(COLOR_HEADER, c->output.color));
	for (size_t i = 0; i < n; i++) {
		if (lines[i].elided)
			out_fmt(o, "%*s(%u frames are left out)\n", INDENT, "", lines[i].elided);
		print_line(c, o, &lines[i], columns);
	}
	if (n < all)
		out_fmt(o, "%*s(%zu more: --verbose)\n", INDENT, "", all - n + (g->has_elided ? g->elided : 0));
	else
		print_end(o, g);
}

static void put_names(struct out *o, const char *before, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n && i < 3; i++)
		text_put(o, i ? ", " : before, names[i], "");
	if (n > 3)
		out_str(o, ", ...");
}

/* "2 tasks wait: Task-3, Task-4 of thread 4242, awaited by Task-1" */
static void print_tasks(struct ctl *c, const struct rpc_async_tasks *t)
{
	struct out *o = &c->output.text;
	auto_out struct out title = { 0 };
	struct line *lines = rpc_arena_array(&c->arena, t->n_frames, sizeof(*lines));
	size_t n = c->verbose || t->n_frames <= FRAMES_SHOWN ? t->n_frames : FRAMES_SHOWN - 1;
	size_t columns;

	if (!lines)
		return;
	for (size_t i = 0; i < t->n_frames; i++)
		lines[i].python = &t->frames[i];
	columns = columns_of(c, lines, n);
	print_count(&title, t->tasks, "task", "tasks");
	out_str(&title, t->running ? " running" : t->tasks == 1 ? " waits" : " wait");
	put_names(&title, ": ", t->names, t->n_names);
	out_fmt(&title, " of thread %u", t->thread);
	put_names(&title, ", awaited by ", t->awaited_by, t->n_awaited_by);
	if (!t->consistent)
		out_str(&title, ", may be of different moments");
	out_char(o, '\n');
	out_str(o, color_begin(COLOR_HEADER, c->output.color));
	if (title.data)
		text_wrap(o, title.data, title.size, c->output.width, INDENT);
	out_str(o, color_end(COLOR_HEADER, c->output.color));
	for (size_t i = 0; i < n; i++)
		print_line(c, o, &lines[i], columns);
	if (n < t->n_frames)
		out_fmt(o, "%*s(%zu more: --verbose)\n", INDENT, "", t->n_frames - n);
}

void host_show_stacks(struct ctl *c, const struct rpc_host_stacks_result *r,
		      const struct rpc_host_stacks_result *before)
{
	print_head(c, r);
	for (size_t i = 0; i < r->n_groups; i++)
		print_group(c, before, &r->groups[i]);
	for (size_t i = 0; i < r->n_tasks; i++)
		print_tasks(c, &r->tasks[i]);
}

/* ------------------------------------------------------------------ rows --------------------- */

/* One line: threads, what of them is blocked, the interpreters, and that nothing was stopped. */
static void print_summary(struct ctl *c, const struct rpc_host_stacks_result *r)
{
	auto_out struct out o = { 0 };

	out_init(&o, 0);
	out_str(&o, "host  ");
	print_count(&o, r->threads, "thread", "threads");
	out_fmt(&o, ", %u blocked or stopped, %u on a processor", r->threads - (r->running < r->threads ? r->running : r->threads),
		r->running);
	for (size_t i = 0; i < r->n_python; i++) {
		text_put(&o, ", Python ", r->python[i].version ? r->python[i].version : "of unknown version", "");
		if (r->python[i].has_lock_holder)
			out_fmt(&o, ", lock held by thread %u", r->python[i].lock_holder);
	}
	out_fmt(&o, ", %" PRIu64 " us stopped", r->stopped_us);
	if (o.data)
		text_wrap(&c->output.text, o.data, o.size, c->output.legend ? c->output.width : 0, INDENT);
	print_findings(c, r);
}

static const char *moved(struct ctl *c, const struct rpc_thread_change *change, const char *state)
{
	if (!change || !state)
		return state;
	if (change->change == RPC_CHANGE_ADDED || change->change == RPC_CHANGE_REMOVED)
		return rpc_arena_printf(&c->arena, "%s; %s", change->change == RPC_CHANGE_ADDED ? "new" : "gone", state);
	if (change->change == RPC_CHANGE_SAME && change->has_ran && !change->ran)
		return rpc_arena_printf(&c->arena, "stuck; %s", state);
	return change->has_ran && change->ran ? rpc_arena_printf(&c->arena, "has run; %s", state) : state;
}

static void add_row(struct ctl *c, struct table *t, const struct rpc_thread_group *g,
		    const struct rpc_thread_change *change)
{
	bool is_stuck = change && change->change == RPC_CHANGE_SAME && change->has_ran && !change->ran;

	table_u64(t, change && change->change == RPC_CHANGE_REMOVED ? 0 : g->threads);
	table_str(t, host_python(&c->arena, g));
	table_str(t, host_native(&c->arena, g));
	table_style(t, is_stuck ? COLOR_WARN : COLOR_PLAIN, moved(c, change, host_state(&c->arena, g)));
}

int host_show_rows(struct ctl *c, const struct rpc_gpu_snapshot_result *s, const struct rpc_comparison *cmp)
{
	static const struct table_column columns[] = {
		{ .title = "THREADS", .right = true },
		{ .title = "PYTHON", .importance = 4, .min = 16, .wrap = true, .optional = true },
		{ .title = "NATIVE", .importance = 2, .min = 16, .wrap = true, .optional = true },
		{ .title = "STATE", .importance = 3, .min = 20, .wrap = true },
	};
	const struct rpc_thread_change *changes = cmp && cmp->has_host_groups ? cmp->host_groups : NULL;
	auto_table struct table t;
	size_t *order;
	int r;

	table_init(&t, columns, ARRAY_SIZE(columns));
	r = host_order(&c->arena, s, &order);
	if (r < 0)
		return ctl_fail(c, -r, "writing the table");
	print_summary(c, &s->host);
	for (size_t i = 0; i < s->host.n_groups; i++)
		if (c->verbose)
			print_group(c, NULL, &s->host.groups[order[i]]);
		else
			add_row(c, &t, &s->host.groups[order[i]], changes ? &changes[order[i]] : NULL);
	for (size_t i = s->host.n_groups; changes && i < cmp->n_host_groups; i++)
		add_row(c, &t, &changes[i].group, &changes[i]);
	if (t.cells.size == 0)
		return 0;
	out_char(&c->output.text, '\n');
	return ctl_print_table(c, &t);
}
