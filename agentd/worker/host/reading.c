/* SPDX-License-Identifier: MIT */
#include "agentd/worker/host/reading.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agentd/worker/host/stops.h"
#include "agentd/worker/host/system_call.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/page.h"

#define READ_BYTES_MAX (UINT64_C(64) << 20)
#define READ_MS	       2000
/* A read that has begun by then ends soon, unless it never does. */
#define HANG_MS	       500
/* Tries to list threads, some of which begin and end meanwhile. */
#define LIST_TRIES     3
/* Looks at a thread that runs now and then, a millisecond apart. */
#define NATIVE_TRIES   3
/* A thread that is woken runs long before, unless the machine is very busy. */
#define WAKE_NS	       20000000

void reading_note(struct reading *r, const char *format, ...)
{
	va_list ap;

	pthread_mutex_lock(&r->mutex);
	if (r->n_notes < READING_NOTES_MAX) {
		va_start(ap, format);
		vsnprintf(r->notes[r->n_notes++], sizeof(r->notes[0]), format, ap);
		va_end(ap);
	}
	pthread_mutex_unlock(&r->mutex);
}

/* ------------------------------------------------------------------ threads ------------------ */

static bool rests(void *ctx, uint64_t tid)
{
	struct reading *r = ctx;
	struct task *task = tasks_find(r->tasks, tid);
	bool is_off;

	/* When memory has not answered in time, somebody else reads what is known of the tasks. */
	pthread_mutex_lock(&r->mutex);
	if (task)
		task_look(r->tasks, task);
	is_off = task && task->is_off && !r->from.is_mixed;
	pthread_mutex_unlock(&r->mutex);
	return is_off;
}

static bool rested(void *ctx, uint64_t tid)
{
	struct reading *r = ctx;
	const struct task *task = tasks_find(r->tasks, tid);

	return task && task_has_rested(r->tasks, task);
}

/* Put a stack below those of the same thread in newer interpreters. */
static int append(struct reading_row *row, const struct hoststack_stack *s, int64_t interpreter)
{
	struct reading_frame *grown = reallocarray(row->frames, row->n + s->n + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	row->frames = grown;
	for (size_t i = 0; i < s->n; i++)
		row->frames[row->n + i] = (struct reading_frame){ s->places[i], (uint32_t)interpreter };
	if (s->elided && !row->elided) {
		row->elided = (uint32_t)s->elided;
		row->elided_after = (uint32_t)(row->n + s->n_inner);
	}
	row->n += s->n;
	row->is_cut |= s->is_cut;
	/* The weakest of them counts. */
	if (s->proof > row->proof)
		row->proof = s->proof;
	return 0;
}

/* Why a thread has no native frames before they are read. */
static enum rpc_native_end end_before(const struct reading *r)
{
	return r->from.native ? RPC_NATIVE_END_NOT_READ : RPC_NATIVE_END_NOT_ASKED;
}

static void publish(struct reading *r, size_t index, const struct reading_row *row)
{
	pthread_mutex_lock(&r->mutex);
	r->rows[index] = *row;
	r->rows[index].is_done = true;
	r->rows[index].native.end = end_before(r);
	pthread_mutex_unlock(&r->mutex);
}

/* Threads of one id stand together, and of these the newest interpreter comes first. */
static int by_thread(const void *a, const void *b)
{
	const struct hoststack_thread *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->interpreter < y->interpreter ? 1 : x->interpreter > y->interpreter ? -1 : 0;
}

/* Read the thread that list[*i] begins, in all its interpreters. */
static int read_thread(struct reading *r, size_t python, const struct hoststack_threads *t, size_t *i)
{
	const struct task *task = tasks_find(r->tasks, t->list[*i].tid);
	const uint64_t tid = t->list[*i].tid;
	/* From the list of threads, which is older than that of the interpreter. */
	const uint64_t listed = task ? task_moment(r->tasks, task) : 0;
	struct reading_row row = { .is_python = true,
				   .has_no_lock = r->python[python].layout.free_threaded && !t->has_lock };
	struct hoststack_stack s;
	size_t index;
	int e = 0;

	for (; *i < t->n && t->list[*i].tid == tid; ++*i) {
		if (!task || hoststack_is_over(e))
			continue;
		row.holds_lock |= t->list[*i].state == t->holder;
		e = hoststack_stack_read(&r->readers[python], &t->list[*i], &s);
		if (e < 0) {
			s.n = s.elided = s.n_inner = 0;
			s.is_cut = true;
			s.proof = HOSTSTACK_TORN;
		}
		if (!hoststack_is_over(e) && append(&row, &s, t->list[*i].interpreter) < 0)
			e = -ENOMEM;
	}
	index = task ? (size_t)(task - r->tasks->list) : 0;
	if (!task || hoststack_is_over(e) || r->rows[index].is_done) {
		free(row.frames);
		return hoststack_is_over(e) ? e : 0;
	}
	/* Equal readings of memory that does not move prove nothing. */
	if (r->from.is_mixed)
		row.proof = HOSTSTACK_TORN;
	if (row.proof == HOSTSTACK_NOT_SCHEDULED)
		row.switches = task_moment(r->tasks, task);
	row.has_held_lock = row.holds_lock && listed && listed == row.switches;
	publish(r, index, &row);
	return 0;
}

/* ------------------------------------------------------------------ interpreters ------------- */

static int ascending(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Up to 3.10 the kernel's ids have to be found. */
static int find_ids(struct reading *r, struct hoststack_threads *t)
{
	auto_free uint32_t *ids = calloc(r->tasks->n + 1, sizeof(*ids));

	if (!ids)
		return -ENOMEM;
	for (size_t i = 0; i < r->tasks->n; i++)
		ids[i] = r->tasks->list[i].ns_tid;
	qsort(ids, r->tasks->n, sizeof(*ids), ascending);
	return hoststack_find_tids(&r->memory, t, ids, r->tasks->n);
}

/* The list may have changed while it was followed: a whole one is better. */
static int list_threads(struct reading *r, const struct hoststack_python *p, struct hoststack_threads *ret)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	int e = 0;

	for (int i = 0; i < LIST_TRIES; i++) {
		e = hoststack_threads_list(&r->memory, p, ret);
		if (e == 0 && !p->layout.thread_native_id)
			e = find_ids(r, ret);
		if (hoststack_is_over(e) || (e == 0 && !ret->is_cut))
			break;
		if (i + 1 < LIST_TRIES) {
			hoststack_threads_free(ret);
			nanosleep(&nap, NULL);
		}
	}
	return e;
}

static uint32_t holder_of(const struct reading *r, const struct hoststack_threads *t)
{
	const struct task *task;

	for (size_t i = 0; t->holder && i < t->n; i++)
		if (t->list[i].state == t->holder) {
			task = tasks_find(r->tasks, t->list[i].tid);
			return task ? task->tid : 0;
		}
	return 0;
}

/* Of a process it has just ended; in a core it should be, but for one of another pid namespace. */
static void note_absent(struct reading *r, const struct hoststack_threads *t)
{
	size_t n = 0;

	for (size_t i = 0; r->from.core && i < t->n; i++)
		n += !tasks_find(r->tasks, t->list[i].tid);
	if (n)
		reading_note(r, "python: the core does not have %zu of its %zu threads, or by other ids", n, t->n);
}

static int read_python(struct reading *r, size_t index, struct reading_python *told)
{
	const struct hoststack_python *p = &r->python[index];
	struct hoststack_threads t = { 0 };
	int e = list_threads(r, p, &t);

	r->readers[index] = (struct hoststack_reader){ .memory = &r->memory, .python = p,
						       .watch = { rests, rested, r } };
	told->free_threaded = p->layout.free_threaded;
	if (e < 0) {
		hoststack_threads_free(&t);
		told->why = e == -ENOENT ? "the kernel's ids of its threads were not found" :
				       "its list of threads makes no sense";
		return hoststack_is_over(e) ? e : 0;
	}
	told->interpreters = t.interpreters;
	told->holder = holder_of(r, &t);
	if (t.is_cut)
		reading_note(r, "threads: the interpreter's list could not be followed to its end");
	if (t.n)
		qsort(t.list, t.n, sizeof(*t.list), by_thread);
	note_absent(r, &t);
	for (size_t i = 0; i < t.n && e == 0;)
		e = read_thread(r, index, &t, &i);
	hoststack_threads_free(&t);
	return e;
}

/* Look for an interpreter in one file, and read it.  @return 0, or why nothing more can be read. */
static int look_into(struct reading *r, uint64_t base)
{
	struct reading_python told = { 0 };
	struct hoststack_python *p = &r->python[r->n_pythons];
	int e = hoststack_python_find(&r->memory, base, p);

	if (hoststack_is_over(e))
		return e;
	if (e != 0 && e != -ENOTSUP && e != -EBADMSG)
		return 0;
	told.version = p->version;
	if (e == -ENOTSUP)
		told.why = "its release is not known to this agent (3.8 to 3.15 are)";
	else if (e == -EBADMSG)
		told.why = "its table of offsets makes no sense";
	e = e == 0 ? read_python(r, r->n_pythons, &told) : 0;
	/* A second copy of the library is loaded, and not used. */
	if (e == 0 && !told.why && !told.interpreters)
		return 0;
	r->bases[r->n_pythons] = base;
	pthread_mutex_lock(&r->mutex);
	r->pythons[r->n_pythons++] = told;
	pthread_mutex_unlock(&r->mutex);
	if (told.why)
		reading_note(r, "python: %s", told.why);
	return e;
}

static int read_all(struct reading *r)
{
	auto_free uint64_t *files = NULL;
	int e = memory_guard_refresh(&r->guard);
	size_t n = r->guard.n_files;

	if (e < 0)
		return e;
	/* The next refresh replaces the list. */
	files = calloc(n + 1, sizeof(*files));
	if (!files)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		files[i] = r->guard.files[i].begin;
	for (size_t i = 0; i < n && e == 0 && r->n_pythons < READING_PYTHONS_MAX; i++)
		e = look_into(r, files[i]);
	return e;
}

/* ------------------------------------------------------------------ native frames ------------ */

/* It may wait now and then: look again. */
static int read_native(struct reading *r, size_t index)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	struct task *task = &r->tasks->list[index];
	struct native_stack s;
	int e = 0;

	for (int i = 0; i < NATIVE_TRIES && e == 0; i++) {
		if (i)
			nanosleep(&nap, NULL);
		rests(r, task->ns_tid);
		e = native_reader_read(&r->native, r->tasks, task, &s);
	}
	if (e < 0)
		return e;
	/* Of its own moment a thread has only the top of its stack. */
	s.is_mixed = r->from.is_mixed && s.n &&
		     s.reached > task->stack_pointer + COREFILE_AGENT_STACK_BYTES;
	pthread_mutex_lock(&r->mutex);
	r->rows[index].native = s;
	pthread_mutex_unlock(&r->mutex);
	return 0;
}

static int read_natives(struct reading *r)
{
	int e = native_reader_init(&r->native, r->tasks->machine, &r->guard, &r->memory, r->from.root_fd);

	for (size_t i = 0; i < r->tasks->n && e == 0; i++)
		e = read_native(r, i);
	return e;
}

/* ------------------------------------------------------------------ waits for GPUs ----------- */

/* The thread has not run since it was looked at: what is known of it holds. */
static void publish_wait(struct reading *r, const struct task *task, const struct reading_wait *w)
{
	if (!task_has_rested(r->tasks, task))
		return;
	pthread_mutex_lock(&r->mutex);
	r->rows[task - r->tasks->list].wait = *w;
	pthread_mutex_unlock(&r->mutex);
}

/* @return how many threads wait for a packet, -errno: nothing more can be read. */
static int read_waits(struct reading *r)
{
	int waiting = 0, e = 0;

	for (size_t i = 0; i < r->tasks->n && !hoststack_is_over(e); i++) {
		struct task *task = &r->tasks->list[i];
		struct reading_wait w = { 0 };

		if (!system_call_waits_for_events(r->tasks->machine, task))
			continue;
		rests(r, task->ns_tid);
		if (!system_call_waits_for_events(r->tasks->machine, task))
			continue;
		e = event_wait_read(&r->memory, task->third_argument, &w.asked);
		if (e < 0)
			continue;
		publish_wait(r, task, &w);
		waiting += !event_wait_is_service(&w.asked);
	}
	return hoststack_is_over(e) ? e : waiting;
}

/* @return 0, -errno: nothing more can be read. */
static int read_packets(struct reading *r, struct event_packets *ret)
{
	for (size_t i = 0; i < r->from.n_queues; i++) {
		const struct event_queue *q = &r->from.queues[i];
		int e = event_packets_read(&r->memory, q, ret);

		if (hoststack_is_over(e))
			return e;
		if (e < 0)
			reading_note(r, "queue %u of GPU %u: its packets %s", q->queue_id, q->gpu_id,
			     e == -EINVAL ? "make no sense" : "cannot be read");
	}
	if (ret->is_cut)
		reading_note(r, "queues: more than %u packets of one of them", EVENT_PACKETS_MAX);
	return 0;
}

/* Which packet does each of them wait for?  @return how many of these are done. */
static size_t match_waits(struct reading *r, const struct event_packets *packets)
{
	size_t done = 0;

	for (size_t i = 0; i < r->tasks->n; i++) {
		struct reading_wait w = r->rows[i].wait;
		const struct event_packet *p = event_packets_find(packets, &w.asked);

		if (!p || event_wait_is_service(&w.asked))
			continue;
		w.has_queue = true;
		w.packet = *p;
		publish_wait(r, &r->tasks->list[i], &w);
		done += r->rows[i].wait.has_queue && p->value <= 0;
	}
	return done;
}

/* A thread that is about to be woken is not one that was forgotten. */
static void find_forgotten(struct reading *r)
{
	const struct timespec nap = { .tv_nsec = WAKE_NS };

	nanosleep(&nap, NULL);
	for (size_t i = 0; i < r->tasks->n; i++) {
		struct reading_wait w = r->rows[i].wait;

		w.is_over = true;
		if (w.has_queue && w.packet.value <= 0)
			publish_wait(r, &r->tasks->list[i], &w);
	}
}

static int read_gpu_waits(struct reading *r)
{
	struct event_packets packets = { 0 };
	int e = read_waits(r);

	if (e > 0) {
		e = read_packets(r, &packets);
		if (match_waits(r, &packets) && !r->from.core)
			find_forgotten(r);
	}
	event_packets_deinit(&packets);
	return e < 0 ? e : 0;
}

/* ------------------------------------------------------------------ the process -------------- */

static void read_children(struct reading *r)
{
	uint32_t *list = calloc(READING_CHILDREN_MAX, sizeof(*list));
	ssize_t n = list ? tasks_children(r->tasks, list, READING_CHILDREN_MAX) : 0;

	if (n > READING_CHILDREN_MAX)
		reading_note(r, "children: %zd of %zd", n - READING_CHILDREN_MAX, n);
	if (n < 0)
		reading_note(r, "children: this kernel does not list them");
	pthread_mutex_lock(&r->mutex);
	r->children = list;
	r->n_children = n < 0 ? 0 : n < READING_CHILDREN_MAX ? (size_t)n : READING_CHILDREN_MAX;
	pthread_mutex_unlock(&r->mutex);
}

static void read_process(struct reading *r)
{
	struct rank rank;

	if (r->from.children)
		read_children(r);
	if (!r->from.frames || r->from.environment_fd < 0 || rank_read(r->from.environment_fd, &rank) < 0)
		return;
	pthread_mutex_lock(&r->mutex);
	r->rank = rank;
	pthread_mutex_unlock(&r->mutex);
}

static void note_core_files(struct reading *r)
{
	const struct core_loaded *first = NULL;
	const size_t n = core_memory_not_read(r->from.core, &first);

	if (n)
		reading_note(r, "files: %zu %s not read: %.80s%s: %s", n, n == 1 ? "was" : "were", first->path,
			     n == 1 ? "" : " and others", first->error ? strerror(-first->error) : "it is not the one that was loaded");
}

static void note_files(struct reading *r)
{
	if (r->guard.is_cut)
		reading_note(r, "files: more than %u are mapped: the others' code has no names, and no frames of Python",
			     MEMORY_GUARD_FILES_MAX);
	if (r->from.core)
		note_core_files(r);
}

/* @return -ESRCH: the address space that was opened is gone after an exec; 0. */
static int check_alive(const struct reading *r)
{
	char byte;

	return !r->from.core && memory_read(r->guard.memory, 0, &byte, 1) == -ESRCH ? -ESRCH : 0;
}

/* Say what was not read before bytes or time were used up. */
static void note_end(struct reading *r, const char *what, int e)
{
	if (e == -EDQUOT)
		reading_note(r, "%s: those not read yet when %u MiB of the process had been read", what,
			     (unsigned)(READ_BYTES_MAX >> 20));
	else if (e == -ETIME)
		reading_note(r, "%s: those not read yet after %u ms", what, READ_MS);
	else if (e < 0 && e != -ESRCH)
		reading_note(r, "%s: their stacks: %s", what, strerror(-e));
}

/* There may be thousands of tasks: they have what bytes and time the threads leave. */
static int read_tasks(struct reading *r)
{
	int e = 0;

	for (size_t i = 0; i < r->n_pythons && e == 0; i++) {
		struct hoststack_threads t = { 0 };

		if (r->pythons[i].why)
			continue;
		e = list_threads(r, &r->python[i], &t);
		e = e == 0 ? asyncio_read(r, i, r->bases[i], &t) : hoststack_is_over(e) ? e : 0;
		hoststack_threads_free(&t);
	}
	return e;
}

static int read_stacks(struct reading *r)
{
	int e = r->from.frames ? read_all(r) : memory_guard_refresh(&r->guard);

	if (e == 0 && r->from.native)
		e = read_natives(r);
	if (e == 0)
		e = read_gpu_waits(r);
	note_end(r, "threads", e);
	if (e < 0)
		return e;
	e = read_tasks(r);
	note_end(r, "tasks", e);
	/* Behind all that rests on threads which have not run, and that needs no stop. */
	if (e == 0 && r->from.native && r->from.stops) {
		e = stops_read(r->from.stops, r);
		note_end(r, "stopped threads", e);
	}
	return e;
}

/* Frames that have no name yet get that of a debug file. */
static void read_names(struct reading *r)
{
	for (size_t i = 0; i < r->tasks->n; i++) {
		struct native_stack *s = &r->rows[i].native;

		for (size_t k = 0; k < s->n; k++) {
			struct native_place place = s->places[k];

			if (place.function || !place.frame.module)
				continue;
			if (clock_now_ns() >= r->memory.deadline_ns) {
				reading_note(r, "names: those of debug files not read yet after %u ms", READ_MS);
				return;
			}
			if (!native_reader_name(&r->native, &place))
				continue;
			pthread_mutex_lock(&r->mutex);
			s->places[k] = place;
			pthread_mutex_unlock(&r->mutex);
		}
	}
}

static void *run(void *ctx)
{
	struct reading *r = ctx;
	int e = read_stacks(r);

	/* Behind these, because the program may have put its environment where a read never ends. */
	read_process(r);
	if (r->from.frames)
		note_files(r);
	if (check_alive(r) < 0)
		e = -ESRCH;
	pthread_mutex_lock(&r->mutex);
	r->error = e == -ESRCH ? e : 0;
	r->is_naming = true;
	pthread_mutex_unlock(&r->mutex);
	/* The last, because a file system may never answer either. */
	read_names(r);
	pthread_mutex_lock(&r->mutex);
	r->is_done = true;
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->mutex);
	return NULL;
}

/* ------------------------------------------------------------------ life --------------------- */

int reading_take_params(struct reading_from *from, struct rpc_arena *a, const struct rpc_host_stacks_params *p)
{
	struct event_queue *queues = rpc_arena_array(a, p->n_queues, sizeof(*queues));

	if (!queues)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_queues; i++) {
		const struct rpc_queue_place *q = &p->queues[i];

		queues[i] = (struct event_queue){ q->queue_id, q->gpu_id, q->ring_base, q->ring_bytes, q->read_pointer,
						  q->write_pointer };
	}
	from->frames = !p->has_frames || p->frames;
	from->native = from->frames && (!p->has_native || p->native);
	from->queues = queues;
	from->n_queues = p->n_queues;
	return 0;
}

int reading_init(struct reading *r, const struct reading_from *from)
{
	pthread_condattr_t attributes;

	memset(r, 0, sizeof(*r));
	r->from = *from;
	r->tasks = from->tasks;
	r->guard = (struct memory_guard){ .memory = from->memory, .maps_fd = from->maps_fd };
	r->memory = (struct hoststack_memory){ .read = memory_guard_read, .ctx = &r->guard,
					       .bytes_left = READ_BYTES_MAX };
	if (from->core)
		r->memory = (struct hoststack_memory){ .read = core_memory_read, .ctx = from->core,
						       .bytes_left = READ_BYTES_MAX };
	r->rows = calloc(r->tasks->n + 1, sizeof(*r->rows));
	if (!r->rows || (from->core && core_memory_list(from->core, &r->guard) < 0)) {
		memory_guard_deinit(&r->guard);
		free(r->rows);
		return -ENOMEM;
	}
	for (size_t i = 0; i < r->tasks->n; i++)
		r->rows[i].native.end = end_before(r);
	pthread_mutex_init(&r->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&r->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	return 0;
}

bool reading_run(struct reading *r)
{
	const uint64_t end = clock_deadline_ms(READ_MS + HANG_MS);
	const struct timespec late = { .tv_sec = (time_t)(end / 1000000000), .tv_nsec = (long)(end % 1000000000) };
	pthread_t thread;
	bool is_done, is_naming;
	int e = 0;

	r->memory.deadline_ns = clock_deadline_ms(READ_MS);
	/*
	 * The bytes of a core are there.  Files of libraries and debug files are this machine's own, and read here as
	 * well: where their file system never answers, nor does this.
	 */
	if (r->from.core) {
		run(r);
		return true;
	}
	if (pthread_create(&thread, NULL, run, r)) {
		reading_note(r, "threads: their stacks: no thread to read them");
		return true;
	}
	pthread_mutex_lock(&r->mutex);
	while (!r->is_done && e == 0)
		e = pthread_cond_timedwait(&r->changed, &r->mutex, &late);
	is_done = r->is_done;
	is_naming = r->is_naming;
	pthread_mutex_unlock(&r->mutex);
	if (is_done) {
		pthread_join(thread, NULL);
		return true;
	}
	reading_note(r, "%s not read yet after %u ms: %s does not answer",
		     is_naming ? "names: those of debug files" : "threads: those", READ_MS + HANG_MS,
		     is_naming ? "their file system" : "memory of the process");
	return false;
}

void reading_deinit(struct reading *r)
{
	for (size_t i = 0; i < READING_PYTHONS_MAX; i++)
		hoststack_reader_deinit(&r->readers[i]);
	for (size_t i = 0; r->rows && i < r->tasks->n; i++) {
		free(r->rows[i].frames);
		free(r->rows[i].native.places);
	}
	native_reader_deinit(&r->native);
	asyncio_free(&r->async);
	free(r->rows);
	free(r->children);
	memory_guard_deinit(&r->guard);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->mutex);
}
