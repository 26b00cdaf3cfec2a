/* SPDX-License-Identifier: MIT */
/* gpu-agentctl stacks: what the threads of a process do on the processors. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "ctl/ctl.h"
#include "ctl/terminal/text.h"

/* Frames of a stack that are shown without --verbose. */
#define FRAMES_SHOWN 12
#define INDENT	     4
#define FUNCTION_MIN 16

#define AGAIN_MAX_MS 600000u
/* Processes of a tree that are shown. */
#define TREE_MAX     64

static const char *again;
static bool tree, queues;

static const struct argv_option options[] = {
	{ "tree", 0, ARGV_FLAG, &tree, NULL, "also the processes that it has started, and theirs" },
	{ "queues", 0, ARGV_FLAG, &queues, NULL, "attach for a moment, to name queues that threads wait for (AMD)" },
	{ "again", 0, ARGV_STRING, &again, "MS", "look twice, so long apart, and say which threads have run meanwhile" },
	{ 0 },
};

/* What one process looked like earlier, and what is known of its queues. */
struct look {
	struct rpc_host_stacks_params params;
	struct rpc_host_stacks_result result;
	const struct rpc_host_stacks_result *before; /* NULL: it was looked at once. */
};

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

static void print_head(struct ctl *c, const struct rpc_host_stacks_result *r)
{
	struct out *o = &c->output.text;

	text_put(o, "", r->comm, "");
	out_fmt(o, "  pid %u  uid %u  ", r->pid, r->uid);
	print_count(o, r->threads, "thread", "threads");
	out_fmt(o, ", %u running; none was stopped\n", r->running);
	if (r->has_rank)
		print_rank(o, &r->rank);
	for (size_t i = 0; i < r->n_python; i++)
		print_python(o, &r->python[i]);
	for (size_t i = 0; i < r->n_findings; i++) {
		out_str(o, color_begin(COLOR_BAD, c->output.color));
		text_wrap(o, r->findings[i], strlen(r->findings[i]), c->output.width, INDENT);
		out_str(o, color_end(COLOR_BAD, c->output.color));
		out_char(o, '\n');
	}
}

/* ", waiting for dispatch 1042 of queue 5" */
static void print_wait(struct out *o, const struct rpc_thread_wait *w)
{
	if (w->has_queue_id)
		out_fmt(o, " for dispatch %" PRIu64 " of queue %u", w->dispatch, w->queue_id);
	else if (w->n_events == 1)
		out_fmt(o, " for event %u", w->events[0]);
	else
		out_fmt(o, " for %s%zu events", w->all ? "all of " : "one of ", w->n_events);
	if (w->done)
		out_str(o, ", which is done");
}

static bool has_same_threads(const struct rpc_thread_group *a, const struct rpc_thread_group *b)
{
	return a->threads == b->threads && a->n_tids == b->n_tids &&
	       !memcmp(a->tids, b->tids, a->n_tids * sizeof(*a->tids));
}

static const char *role_text(struct ctl *c, enum rpc_thread_role role)
{
	static const char *const words[] = {
		[RPC_THREAD_ROLE_GPU_WAIT] = "GPU wait",       [RPC_THREAD_ROLE_RUNTIME] = "runtime",
		[RPC_THREAD_ROLE_COLLECTIVE] = "collective",   [RPC_THREAD_ROLE_WATCHDOG] = "watchdog",
		[RPC_THREAD_ROLE_DATA_LOADER] = "data loader", [RPC_THREAD_ROLE_AUTOGRAD] = "autograd",
		[RPC_THREAD_ROLE_LOCK_WAIT] = "lock wait",
	};

	return (size_t)role < ARRAY_SIZE(words) ? words[role] : show_name(&c->arena, &rpc_thread_role_enum, role);
}

/* Have the threads run since the first look?  Only of the same threads that is known. */
static void print_moved(struct out *o, const struct rpc_host_stacks_result *before, const struct rpc_thread_group *g)
{
	for (size_t i = 0; before && i < before->n_groups; i++) {
		const struct rpc_thread_group *old = &before->groups[i];

		if (!has_same_threads(old, g) || !old->has_switches || !g->has_switches)
			continue;
		out_str(o, old->switches == g->switches && g->state != RPC_THREAD_STATE_RUNNING ? ", has not run since" :
												     ", has run since");
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
		text_put(o, ", ", role_text(c, g->role), "");
	if (g->has_waits_for)
		print_wait(o, &g->waits_for);
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
	if ((size_t)g->native_end < ARRAY_SIZE(ends) && ends[g->native_end] && g->state != RPC_THREAD_STATE_ENDED)
		out_fmt(o, "%*s(%s)\n", INDENT, "", ends[g->native_end]);
}

static void print_group(struct ctl *c, const struct look *l, const struct rpc_thread_group *g)
{
	struct out *o = &c->output.text;
	auto_out struct out title = { 0 };
	struct line *lines;
	size_t all = list_lines(c, g, &lines), n = c->verbose || all <= FRAMES_SHOWN ? all : FRAMES_SHOWN - 1;
	size_t columns = columns_of(c, lines, n);

	out_fmt(&title, "%u ", g->threads);
	print_state(c, &title, g);
	print_moved(&title, l->before, g);
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

static void print_stacks(struct ctl *c, const struct look *l)
{
	print_head(c, &l->result);
	for (size_t i = 0; i < l->result.n_groups; i++)
		print_group(c, l, &l->result.groups[i]);
}

/* ------------------------------------------------------------------ asking ------------------- */

/* Only what describes the ring of packets is of use. */
static int take_queues(struct ctl *c, struct rpc_host_stacks_params *p)
{
	const struct rpc_gpu_queues_params ask = { .session = c->session.session };
	struct rpc_gpu_queues_result r;
	int e = ctl_called(c, rpc_client_gpu_queues(c->client, &ask, &c->arena, &r, &c->err));

	if (e < 0)
		return e;
	p->queues = rpc_arena_array(&c->arena, r.n_queues, sizeof(*p->queues));
	if (!p->queues)
		return ctl_fail(c, ENOMEM, "queues");
	for (size_t i = 0; i < r.n_queues; i++) {
		const struct rpc_queue *q = &r.queues[i];

		if (q->type == RPC_QUEUE_TYPE_COMPUTE_AQL && q->has_ring_base && q->has_ring_bytes &&
		    q->has_read_pointer && q->has_write_pointer)
			p->queues[p->n_queues++] = (struct rpc_queue_place){ q->queue_id, q->gpu_id, q->ring_base,
									     q->ring_bytes, q->read_pointer,
									     q->write_pointer };
	}
	p->has_queues = true;
	return 0;
}

/* Queues are known to a session alone; it is over before the threads are looked at. */
static int find_queues(struct ctl *c, const char *pid, struct rpc_host_stacks_params *p)
{
	int r = ctl_attach(c, pid, false);

	if (r < 0)
		return r;
	r = take_queues(c, p);
	ctl_detach(c);
	return r;
}

static int look(struct ctl *c, struct look *l)
{
	return ctl_called(c, rpc_client_host_stacks(c->client, &l->params, &c->arena, &l->result, &c->err));
}

static void tell_missing(const struct ctl *c, const struct look *l)
{
	for (size_t i = 0; i < l->result.n_missing; i++)
		if (tree)
			ctl_note(c, "missing: process %u: %s", l->params.pid, l->result.missing[i]);
		else
			ctl_note(c, "missing: %s", l->result.missing[i]);
}

/* ------------------------------------------------------------------ processes ---------------- */

/* Processes that are still to be looked at, and the document about those that were. */
struct family {
	uint32_t pids[TREE_MAX];
	size_t n;
	struct out *json;
	bool is_partial;
};

static void add_children(struct ctl *c, struct family *f, const struct rpc_host_stacks_result *r)
{
	for (size_t i = 0; i < r->n_children; i++) {
		if (f->n < TREE_MAX) {
			f->pids[f->n++] = r->children[i];
			continue;
		}
		ctl_note(c, "missing: more than %d processes", TREE_MAX);
		f->is_partial = true;
		return;
	}
}

/* A child may have ended, and need not be one that may be looked at. */
static void forgive(struct ctl *c, struct family *f, uint32_t pid)
{
	if (c->err.code != RPC_ERROR_NO_SUCH_PROCESS) {
		ctl_note(c, "missing: process %u: %s", pid, c->err.message);
		f->is_partial = true;
	}
	c->err = (struct agent_err){ 0 };
	out_reset(&c->err_json);
}

static void tell_process(struct ctl *c, struct family *f, const struct look *l, bool is_first)
{
	const char *text;
	size_t size;

	f->is_partial |= !l->result.complete;
	tell_missing(c, l);
	if (!ctl_is_json(c)) {
		if (!is_first)
			out_char(&c->output.text, '\n');
		print_stacks(c, l);
		return;
	}
	text = rpc_client_last_result(c->client, &size);
	out_str(f->json, is_first ? "{\"processes\":[" : ",");
	if (text)
		out_bytes(f->json, text, size);
}

static int look_at_tree(struct ctl *c, struct look *first)
{
	auto_out struct out json = { 0 };
	struct family f = { .pids = { first->params.pid }, .n = 1, .json = &json };

	for (size_t i = 0; i < f.n; i++) {
		struct look l = { .params = { .pid = f.pids[i], .has_children = true, .children = true } };
		int r;

		if (i == 0)
			l.params = first->params;
		r = look(c, &l);
		if (r < 0 && i == 0)
			return r;
		if (r < 0) {
			forgive(c, &f, f.pids[i]);
			continue;
		}
		tell_process(c, &f, &l, i == 0);
		add_children(c, &f, &l.result);
	}
	out_fmt(&json, "],\"complete\":%s}", f.is_partial ? "false" : "true");
	return ctl_is_json(c) && ctl_print_json(c, &json) < 0 ? -EIO : ctl_status(!f.is_partial, false);
}

static int look_at_one(struct ctl *c, struct look *l, uint32_t ms)
{
	const struct timespec pause = { ms / 1000, ms % 1000 * 1000000L };
	struct look first = *l;
	int r = look(c, l);

	if (r == 0 && ms) {
		first = *l;
		nanosleep(&pause, NULL);
		r = look(c, l);
		l->before = &first.result;
	}
	if (r < 0)
		return r;
	if (!ctl_is_json(c))
		print_stacks(c, l);
	else
		r = ctl_print_result(c);
	tell_missing(c, l);
	return r < 0 ? r : ctl_status(l->result.complete, false);
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct look l = { .params = { .has_children = tree, .children = tree } };
	uint32_t ms = 0;
	int r = args_pid(c, argv[0], &l.params.pid);

	if (r == 0 && again && tree)
		return ctl_usage(c, "--again looks at one process, and --tree at several");
	if (r == 0 && again)
		r = args_ms(c, "--again", again, AGAIN_MAX_MS, &ms);
	if (r == 0)
		r = ctl_connect(c);
	if (r == 0 && queues)
		r = find_queues(c, argv[0], &l.params);
	if (r < 0)
		return r;
	return tree ? look_at_tree(c, &l) : look_at_one(c, &l, ms);
}

const struct ctl_verb ctl_verb_stacks = {
	.name = "stacks",
	.args = "PID",
	.summary = "Show what the threads of a process do on the processors; none is stopped",
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
