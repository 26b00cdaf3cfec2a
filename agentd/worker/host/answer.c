/* SPDX-License-Identifier: MIT */
#include "agentd/worker/host/answer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/host/role.h"
#include "agentd/worker/host/stops.h"
#include "agentd/worker/host/system_call.h"
#include "base/cleanup.h"
#include "symbols/demangle.h"

_Static_assert((int)HOSTSTACK_NOT_SCHEDULED == (int)RPC_STACK_PROOF_NOT_SCHEDULED &&
		       (int)HOSTSTACK_TWO_READINGS == (int)RPC_STACK_PROOF_TWO_READINGS &&
		       (int)HOSTSTACK_ONE_READING == (int)RPC_STACK_PROOF_ONE_READING &&
		       (int)HOSTSTACK_TORN == (int)RPC_STACK_PROOF_NONE,
	       "hoststack/stack.h");

#define TIDS_MAX  64
#define NAMES_MAX 16
#define EVENTS_MAX 64
/* A name of C++ can be endless. */
#define NAME_BYTES 512

/* A thread with all by which threads are grouped. */
struct item {
	const struct task *task;
	const struct reading_row *row;
	enum rpc_thread_state state;
	bool has_role;
	enum rpc_thread_role role;
	const char *call;
};

/* ------------------------------------------------------------------ order -------------------- */

static int compare_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) : !b - !a;
}

static int compare_number(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_frames(const struct reading_row *a, const struct reading_row *b)
{
	int order = compare_number(a->n, b->n);

	for (size_t i = 0; i < a->n && order == 0; i++) {
		const struct reading_frame *x = &a->frames[i], *y = &b->frames[i];

		order = compare_number(x->place.line, y->place.line);
		if (order == 0)
			order = compare_number(x->interpreter, y->interpreter);
		if (order == 0 && x->place.function != y->place.function)
			order = strcmp(x->place.function, y->place.function);
		if (order == 0 && x->place.file != y->place.file)
			order = strcmp(x->place.file, y->place.file);
	}
	return order;
}

/*
 * A thread that ran stood at any instruction when it was stopped: others that run there stand at others.  Of its
 * innermost frame the function counts, where its unwind table tells that.
 */
static uint64_t place_of(const struct native_stack *s, size_t i)
{
	const struct native_place *p = &s->places[i];

	if (i || !s->was_stopped || !p->frame.function)
		return p->address;
	return p->address - (p->frame.pc - p->frame.function);
}

static int compare_native(const struct native_stack *a, const struct native_stack *b)
{
	int order = compare_number(a->n, b->n);

	for (size_t i = 0; i < a->n && order == 0; i++) {
		const struct native_place *x = &a->places[i], *y = &b->places[i];

		order = compare_number(place_of(a, i), place_of(b, i));
		if (order == 0 && x->module != y->module)
			order = compare_text(x->module, y->module);
		if (order == 0)
			order = compare_number(x->frame.is_guessed, y->frame.is_guessed);
	}
	if (order == 0)
		order = compare_number(a->was_stopped, b->was_stopped);
	return order ? order : compare_number(a->end, b->end);
}

/* Events are each thread's own; the packet is what counts. */
static int compare_wait(const struct reading_wait *a, const struct reading_wait *b)
{
	int order = compare_number(a->has_queue, b->has_queue);

	if (order == 0)
		order = compare_number(a->asked.all, b->asked.all);
	if (order || !a->has_queue)
		return order;
	order = compare_number(a->packet.gpu_id, b->packet.gpu_id);
	if (order == 0)
		order = compare_number(a->packet.queue_id, b->packet.queue_id);
	if (order == 0)
		order = compare_number(a->packet.dispatch, b->packet.dispatch);
	return order ? order : compare_number(a->is_over, b->is_over);
}

static int compare_role(const struct item *a, const struct item *b)
{
	int order = compare_number(a->has_role, b->has_role);

	return order ? order : compare_number(a->role, b->role);
}

static int compare_key(const struct item *a, const struct item *b)
{
	int order = compare_frames(a->row, b->row);

	if (order == 0)
		order = compare_native(&a->row->native, &b->row->native);
	if (order == 0)
		order = compare_number(a->state, b->state);
	if (order == 0)
		order = compare_text(a->call, b->call);
	if (order == 0)
		order = compare_role(a, b);
	if (order == 0)
		order = compare_wait(&a->row->wait, &b->row->wait);
	if (order == 0)
		order = compare_number(a->row->proof, b->row->proof);
	if (order == 0)
		order = compare_number(a->row->native.is_mixed, b->row->native.is_mixed);
	if (order == 0)
		order = compare_number(a->row->elided, b->row->elided);
	return order ? order : compare_number(a->row->is_cut, b->row->is_cut);
}

static int by_key(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int order = compare_key(x, y);

	return order ? order : compare_number(x->task->tid, y->task->tid);
}

static int by_interest(const void *a, const void *b)
{
	const struct rpc_thread_group *x = a, *y = b;

	if (!x->n_frames != !y->n_frames)
		return x->n_frames ? -1 : 1;
	if (x->threads != y->threads)
		return x->threads > y->threads ? -1 : 1;
	return compare_number(x->tids[0], y->tids[0]);
}

/* ------------------------------------------------------------------ groups ------------------- */

static enum rpc_thread_state state_of(const struct task *t)
{
	switch (t->state) {
	case 'Z':
	case 'X':
		return RPC_THREAD_STATE_ENDED;
	case 'T':
	case 't':
		return RPC_THREAD_STATE_STOPPED;
	case 'R':
		return RPC_THREAD_STATE_RUNNING;
	default:
		return RPC_THREAD_STATE_BLOCKED;
	}
}

/* One copy of a thread that ran was of two moments in some of a hundred cases. */
static bool is_consistent(const struct reading_row *row)
{
	return row->proof <= HOSTSTACK_TWO_READINGS && !row->native.is_mixed;
}

/* Most threads in a core have none. */
static void add_name(struct rpc_thread_group *g, const char *name)
{
	if (!*name)
		return;
	for (size_t i = 0; i < g->n_names; i++)
		if (!strcmp(g->names[i], name))
			return;
	if (g->n_names < NAMES_MAX)
		g->names[g->n_names++] = name;
}

static void fill_frames(struct rpc_arena *a, const struct reading_row *row, struct rpc_thread_group *g)
{
	g->frames = rpc_arena_array(a, row->n, sizeof(*g->frames));
	for (size_t i = 0; g->frames && i < row->n; i++) {
		const struct reading_frame *f = &row->frames[i];

		g->frames[g->n_frames++] = (struct rpc_thread_frame){
			.function = f->place.function, .file = f->place.file,
			.has_line = f->place.line > 0, .line = f->place.line,
			.has_interpreter = f->interpreter > 0, .interpreter = f->interpreter,
		};
	}
	g->has_elided = g->has_elided_after = row->elided > 0;
	g->elided = row->elided;
	g->elided_after = row->elided_after;
	g->has_truncated = g->truncated = row->is_cut;
	g->consistent = is_consistent(row);
	g->has_proof = row->is_python;
	g->proof = (enum rpc_stack_proof)row->proof;
}

#define EVALUATE "_PyEval_EvalFrameDefault"

static bool is_evaluation(const struct native_place *p)
{
	return p->function && !p->frame.is_guessed && !strcmp(p->function, EVALUATE);
}

/* All frames are there, and both were read while the thread did not run. */
static bool may_join(const struct reading_row *row)
{
	return row->n && !row->is_cut && !row->elided && row->native.end == RPC_NATIVE_END_OUTERMOST &&
	       row->switches && row->switches == row->native.switches;
}

/* How many Python frames stand in the place of each native frame; all 0 where that is not certain. */
static void join_frames(const struct reading_row *row, uint32_t *ret)
{
	const struct native_stack *native = &row->native;
	size_t at = 0, i;

	if (!may_join(row))
		return;
	for (i = 0; i < native->n; i++) {
		if (!is_evaluation(&native->places[i]))
			continue;
		/* A call runs the frames up to the one that it was made for. */
		while (at < row->n) {
			ret[i]++;
			if (row->frames[at++].place.is_entry)
				break;
		}
		if (!ret[i])
			break;
	}
	if (i < native->n || at < row->n)
		memset(ret, 0, native->n * sizeof(*ret));
}

static const char *readable(struct rpc_arena *a, const char *name)
{
	char text[NAME_BYTES];

	if (!name)
		return NULL;
	symbols_demangle(name, text, sizeof(text));
	return rpc_arena_strdup(a, text);
}

static void fill_native(struct rpc_arena *a, const struct reading_row *row, struct rpc_thread_group *g)
{
	const struct native_stack *s = &row->native;
	uint32_t *joined = rpc_arena_array(a, s->n, sizeof(*joined));

	g->native_end = s->end;
	g->has_was_stopped = g->was_stopped = s->was_stopped;
	g->native_frames = rpc_arena_array(a, s->n, sizeof(*g->native_frames));
	if (!joined || !g->native_frames)
		return;
	join_frames(row, joined);
	for (size_t i = 0; i < s->n; i++) {
		const struct native_place *p = &s->places[i];

		g->native_frames[g->n_native_frames++] = (struct rpc_native_frame){
			.function = readable(a, p->function), .has_offset = p->function != NULL, .offset = p->offset,
			.module = p->module, .build_id = p->build_id, .address = p->address,
			.has_guessed = p->frame.is_guessed, .guessed = p->frame.is_guessed,
			.has_python_frames = joined[i] > 0, .python_frames = joined[i],
		};
	}
}

static void add_event(struct rpc_thread_wait *w, uint32_t event)
{
	for (size_t i = 0; i < w->n_events; i++)
		if (w->events[i] == event)
			return;
	if (w->n_events < EVENTS_MAX)
		w->events[w->n_events++] = event;
}

static void fill_wait(struct rpc_arena *a, const struct item *items, size_t n, struct rpc_thread_group *g)
{
	const struct reading_wait *w = &items->row->wait;

	if (!w->asked.asked)
		return;
	g->has_waits_for = true;
	g->waits_for = (struct rpc_thread_wait){
		.all = w->asked.all, .events = rpc_arena_array(a, EVENTS_MAX, sizeof(uint32_t)),
	};
	for (size_t i = 0; g->waits_for.events && i < n; i++)
		for (uint32_t k = 0; k < items[i].row->wait.asked.n; k++)
			add_event(&g->waits_for, items[i].row->wait.asked.events[k]);
	if (!w->has_queue)
		return;
	g->waits_for.has_queue_id = g->waits_for.has_gpu_id = g->waits_for.has_dispatch = true;
	g->waits_for.queue_id = w->packet.queue_id;
	g->waits_for.gpu_id = w->packet.gpu_id;
	g->waits_for.dispatch = w->packet.dispatch;
	g->waits_for.by = "event_id";
	g->waits_for.has_done = g->waits_for.done = w->is_over;
}

/* Of threads whose number is not known there is no sum. */
static void fill_switches(const struct item *items, size_t n, struct rpc_thread_group *g)
{
	g->has_switches = true;
	for (size_t i = 0; i < n; i++) {
		g->has_switches &= items[i].task->switches > 0;
		g->switches += items[i].task->switches;
	}
}

/* The threads from the first item on that do the same.  @return how many. */
static size_t fill_group(struct rpc_arena *a, const struct item *items, size_t n, struct rpc_thread_group *g)
{
	size_t size = 1;

	while (size < n && compare_key(items, &items[size]) == 0)
		size++;
	g->threads = (uint32_t)size;
	g->state = items->state;
	g->waits_in = items->call;
	g->representative = (struct rpc_thread_name){ items->task->tid, items->task->name };
	g->has_role = items->has_role;
	g->role = items->role;
	fill_wait(a, items, size, g);
	fill_switches(items, size, g);
	fill_frames(a, items->row, g);
	fill_native(a, items->row, g);
	g->names = rpc_arena_array(a, NAMES_MAX, sizeof(*g->names));
	g->tids = rpc_arena_array(a, TIDS_MAX, sizeof(*g->tids));
	for (size_t i = 0; g->names && g->tids && i < size; i++) {
		add_name(g, items[i].task->name);
		if (g->n_tids < TIDS_MAX)
			g->tids[g->n_tids++] = items[i].task->tid;
		g->has_holds_lock = g->holds_lock |= items[i].row->holds_lock;
	}
	return size;
}

static void fill_groups(struct rpc_arena *a, struct reading *r, pid_t pid, struct rpc_host_stacks_result *ret)
{
	const size_t n = r->tasks->n;
	struct item *items = rpc_arena_array(a, n, sizeof(*items));

	ret->groups = rpc_arena_array(a, n, sizeof(*ret->groups));
	if (!items || !ret->groups)
		return;
	for (size_t i = 0; i < n; i++) {
		const struct task *t = &r->tasks->list[i];

		items[i] = (struct item){ .task = t, .row = &r->rows[i], .state = state_of(t) };
		if (items[i].state == RPC_THREAD_STATE_BLOCKED)
			items[i].call = system_call_name(a, pid, r->tasks->machine, t);
		if (items[i].state != RPC_THREAD_STATE_ENDED)
			items[i].has_role = role_find(t, items[i].row, &items[i].role);
		ret->running += items[i].state == RPC_THREAD_STATE_RUNNING;
	}
	qsort(items, n, sizeof(*items), by_key);
	for (size_t i = 0; i < n && !rpc_arena_error(a);)
		i += fill_group(a, &items[i], n - i, &ret->groups[ret->n_groups++]);
	if (!rpc_arena_error(a))
		qsort(ret->groups, ret->n_groups, sizeof(*ret->groups), by_interest);
}

/* ------------------------------------------------------------------ the rest ----------------- */

static const char *version_text(struct rpc_arena *a, uint32_t v)
{
	if (!v)
		return NULL;
	return v & 0xffff ? rpc_arena_printf(a, "%u.%u.%u", v >> 24, v >> 16 & 255, v >> 8 & 255) :
			    rpc_arena_printf(a, "%u.%u", v >> 24, v >> 16 & 255);
}

static void fill_pythons(struct rpc_arena *a, const struct reading *r, struct rpc_host_stacks_result *ret)
{
	ret->python = rpc_arena_array(a, READING_PYTHONS_MAX, sizeof(*ret->python));
	for (size_t i = 0; ret->python && i < r->n_pythons; i++) {
		const struct reading_python *p = &r->pythons[i];

		ret->python[ret->n_python++] = (struct rpc_interpreter){
			.implementation = "cpython", .version = version_text(a, p->version),
			.free_threaded = p->free_threaded, .interpreters = p->interpreters,
			.has_lock_holder = p->holder > 0, .lock_holder = p->holder,
			.asyncio = r->pythons_tasks[i] ? "read" : "not_read", .why = p->why,
		};
	}
}

/*
 * Which native frames are missing, and why.  Of a thread that runs there are none: its registers are in the
 * processor, and nobody could have them without a stop.  Its group says so.
 */
static const struct {
	const char *which, *why;
} native_missing[] = {
	[RPC_NATIVE_END_REGISTER] = { "outer ones", "the next one needs a register that is not known" },
	[RPC_NATIVE_END_AMBIGUOUS] = { "outer ones", "the frame pointer was found in several ways" },
	[RPC_NATIVE_END_TABLE] = { "outer ones", "the code has no unwind table that makes sense" },
	[RPC_NATIVE_END_MEMORY] = { "outer ones", "the stack cannot be read, or makes no sense" },
	[RPC_NATIVE_END_DEPTH] = { "outer ones", "there are too many" },
	[RPC_NATIVE_END_UNPROVEN] = { "all", "it ran each time while it was read" },
	[RPC_NATIVE_END_REFUSED] = { "all", "the kernel does not tell its registers" },
	[RPC_NATIVE_END_NOT_READ] = { "all", "no time or memory was left" },
	[RPC_NATIVE_END_NOT_ASKED] = { NULL, NULL },
	[RPC_NATIVE_END_COPY] = { "outer ones", "only the top of the stack was copied while they stood still" },
};

/* A thread that has ended has no frames to miss. */
static void fill_missing_native(struct rpc_arena *a, const struct reading *r, struct rpc_host_stacks_result *ret)
{
	uint32_t ends[ARRAY_SIZE(native_missing)] = { 0 };

	for (size_t i = 0; i < r->tasks->n; i++)
		if (state_of(&r->tasks->list[i]) != RPC_THREAD_STATE_ENDED)
			ends[r->rows[i].native.end]++;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (ends[i] && native_missing[i].why)
			ret->missing[ret->n_missing++] =
				rpc_arena_printf(a, "native frames: %s of %u of %zu threads: %s",
						 native_missing[i].which, ends[i], r->tasks->n, native_missing[i].why);
}

static const char *why_torn(const struct reading *r)
{
	if (!r->from.core)
		return "ran while they were read: their frames may be of different moments";
	return r->from.is_mixed ? "ran while the core was written: their frames may be of different moments" :
				  "have frames that make no sense in this core";
}

static void fill_missing(struct rpc_arena *a, const struct reading *r, struct rpc_host_stacks_result *ret)
{
	uint32_t torn = 0, cut = 0;

	ret->missing = rpc_arena_array(a, READING_NOTES_MAX + 3 + ARRAY_SIZE(native_missing), sizeof(*ret->missing));
	if (!ret->missing)
		return;
	for (size_t i = 0; i < r->tasks->n; i++) {
		torn += r->rows[i].is_done && !is_consistent(&r->rows[i]);
		cut += r->rows[i].is_done && is_consistent(&r->rows[i]) && r->rows[i].is_cut;
	}
	for (size_t i = 0; i < r->n_notes; i++)
		ret->missing[ret->n_missing++] = rpc_arena_strdup(a, r->notes[i]);
	if (r->tasks->is_cut)
		ret->missing[ret->n_missing++] = rpc_arena_printf(a, "threads: more than %u", TASKS_MAX);
	if (torn)
		ret->missing[ret->n_missing++] = rpc_arena_printf(a, "frames: %u of %zu threads %s", torn, r->tasks->n,
								  why_torn(r));
	if (cut)
		ret->missing[ret->n_missing++] = rpc_arena_printf(a, "frames: outer ones of %u threads, which are very deep",
								  cut);
	fill_missing_native(a, r, ret);
	ret->complete = !ret->n_missing;
}

/* ------------------------------------------------------------------ findings ----------------- */

static void fill_rank(struct rpc_arena *a, const struct rank *r, struct rpc_host_stacks_result *ret)
{
	if (!r->from)
		return;
	ret->has_rank = true;
	ret->rank = (struct rpc_process_rank){
		.rank = r->rank, .from = r->from, .has_local_rank = r->has_local, .local_rank = r->local_rank,
		.has_world_size = r->has_world, .world_size = r->world_size,
		.job = r->job[0] ? rpc_arena_strdup(a, r->job) : NULL,
	};
}

static void fill_children(struct rpc_arena *a, const struct reading *r, struct rpc_host_stacks_result *ret)
{
	ret->children = rpc_arena_array(a, r->n_children, sizeof(*ret->children));
	for (size_t i = 0; ret->children && i < r->n_children; i++)
		ret->children[ret->n_children++] = r->children[i];
	ret->has_children = r->children != NULL;
}

static uint32_t count_role(const struct rpc_host_stacks_result *ret, enum rpc_thread_role role)
{
	uint32_t n = 0;

	for (size_t i = 0; i < ret->n_groups; i++)
		n += ret->groups[i].has_role && ret->groups[i].role == role ? ret->groups[i].threads : 0;
	return n;
}

/* The innermost function of a thread that has a name. */
static const char *innermost(struct rpc_arena *a, const struct reading_row *row)
{
	for (size_t i = 0; i < row->native.n; i++)
		if (row->native.places[i].function && !row->native.places[i].frame.is_guessed)
			return readable(a, row->native.places[i].function);
	return NULL;
}

/*
 * A thread that holds the lock and has not run since it was seen to hold it, in code that waits, stops all that want
 * the lock.
 */
static void find_stuck_lock(struct rpc_arena *a, const struct reading *r, pid_t pid, struct rpc_host_stacks_result *ret)
{
	const uint32_t waiting = count_role(ret, RPC_THREAD_ROLE_LOCK_WAIT);

	for (size_t i = 0; waiting && i < r->tasks->n; i++) {
		const struct reading_row *row = &r->rows[i];
		const struct task *t = &r->tasks->list[i];
		const char *call, *function;

		if (!row->has_held_lock || !row->switches || row->switches != row->native.switches || !row->native.n ||
		    row->native.end == RPC_NATIVE_END_UNPROVEN)
			continue;
		call = system_call_name(a, pid, r->tasks->machine, t);
		function = innermost(a, row);
		ret->findings[ret->n_findings++] = rpc_arena_printf(
			a, "thread %u (%s) holds the lock of Python and waits in %s%s%s; %u %s for the lock", t->tid, t->name,
			call ? call : "the kernel", function ? ", function " : "", function ? function : "", waiting,
			waiting == 1 ? "thread waits" : "threads wait");
		return;
	}
}

static void find_forgotten_waits(struct rpc_arena *a, const struct reading *r, struct rpc_host_stacks_result *ret)
{
	uint32_t n = 0;
	size_t first = 0;

	for (size_t i = r->tasks->n; i-- > 0;)
		if (r->rows[i].wait.is_over) {
			first = i;
			n++;
		}
	if (!n)
		return;
	ret->findings[ret->n_findings++] = rpc_arena_printf(
		a, "%u %s not woken although the work is done: the first is thread %u, dispatch %" PRIu64 " of queue %u", n,
		n == 1 ? "thread was" : "threads were", r->tasks->list[first].tid, r->rows[first].wait.packet.dispatch,
		r->rows[first].wait.packet.queue_id);
}

/* It is nothing that the program did. */
static void tell_interrupted(struct rpc_arena *a, const struct reading *r, struct rpc_host_stacks_result *ret)
{
	const struct stops *s = r->from.stops;

	for (size_t i = 0; i < s->n_interrupted && i < STOPS_INTERRUPTED_MAX; i++) {
		const struct stops_interrupted *one = &s->interrupted[i];
		auto_free char *name = system_call_name_of(r->tasks->machine, one->call);

		ret->findings[ret->n_findings++] =
			rpc_arena_printf(a, "thread %u began %s just before it was stopped, and its call ended with EINTR",
					 one->tid, name ? name : "a system call");
	}
	if (s->n_interrupted > STOPS_INTERRUPTED_MAX)
		ret->findings[ret->n_findings++] = rpc_arena_printf(a, "so did calls of %u other threads",
								    s->n_interrupted - STOPS_INTERRUPTED_MAX);
}

static void fill_findings(struct rpc_arena *a, const struct reading *r, pid_t pid, struct rpc_host_stacks_result *ret)
{
	ret->findings = rpc_arena_array(a, 3 + STOPS_INTERRUPTED_MAX, sizeof(*ret->findings));
	if (!ret->findings)
		return;
	if (r->from.stops)
		tell_interrupted(a, r, ret);
	find_stuck_lock(a, r, pid, ret);
	find_forgotten_waits(a, r, ret);
	ret->has_findings = ret->n_findings > 0;
}

void answer_fill(struct rpc_arena *a, struct reading *r, pid_t pid, struct rpc_host_stacks_result *ret)
{
	pthread_mutex_lock(&r->mutex);
	ret->threads = (uint32_t)r->tasks->n;
	if (r->from.stops) {
		ret->stopped_us = r->from.stops->stopped_us;
		ret->has_stopped_threads = true;
		ret->stopped_threads = r->from.stops->n;
	}
	fill_pythons(a, r, ret);
	fill_groups(a, r, pid, ret);
	asyncio_fill(a, &r->async, ret);
	fill_rank(a, &r->rank, ret);
	fill_children(a, r, ret);
	fill_findings(a, r, pid, ret);
	fill_missing(a, r, ret);
	pthread_mutex_unlock(&r->mutex);
}
