/* SPDX-License-Identifier: MIT */
#include "agentd/worker/host/asyncio.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/host/reading.h"
#include "base/vec.h"

#define TASKS_ALL_MAX 16384
#define NAMES_MAX     16
#define UNNAMED	      "?"

/* ------------------------------------------------------------------ reading ------------------ */

/* The module is a library of its own, or a part of the interpreter. */
static int find(struct reading *r, size_t python, uint64_t base, struct hoststack_asyncio *ret)
{
	int e = -ENOENT;

	for (size_t i = 0; i < r->guard.n_files && e == -ENOENT; i++) {
		const char *name = strrchr(r->guard.files[i].path, '/');

		if (name && !strncmp(name, "/_asyncio.", 10))
			e = hoststack_asyncio_find(&r->memory, &r->python[python], r->guard.files[i].begin, ret);
	}
	return e == -ENOENT ? hoststack_asyncio_find(&r->memory, &r->python[python], base, ret) : e;
}

static int publish(struct reading *r, uint32_t tid, struct hoststack_tasks *t)
{
	int e = 0;

	pthread_mutex_lock(&r->mutex);
	for (size_t i = 0; i < t->n && e == 0; i++) {
		struct reading_tasks *all = &r->async;

		e = all->n == TASKS_ALL_MAX ? -E2BIG :
					      vec_reserve(&all->list, all->n, 1, &all->capacity, sizeof(*all->list));
		if (e < 0)
			break;
		all->list[all->n++] = (struct reading_task){ t->list[i], tid, t->is_certain };
		t->list[i] = (struct hoststack_task){ 0 };
	}
	pthread_mutex_unlock(&r->mutex);
	if (e == -E2BIG)
		reading_note(r, "tasks: more than %u", TASKS_ALL_MAX);
	return e == -ENOMEM ? e : 0;
}

/* What is not whole is told once for each thread. */
static void note_missing(struct reading *r, uint32_t tid, const struct hoststack_tasks *t)
{
	size_t cut = 0, awaited = 0;

	for (size_t i = 0; i < t->n; i++) {
		cut += t->list[i].is_cut;
		awaited += t->list[i].has_more_waiters;
	}
	if (t->is_cut)
		reading_note(r, "tasks of thread %u: the list could not be followed to its end", tid);
	if (cut)
		reading_note(r, "tasks of thread %u: %zu of %zu could not be read whole", tid, cut, t->n);
	if (awaited)
		reading_note(r, "tasks of thread %u: more than %u tasks await %zu of %zu, and not all of them are named", tid,
			     HOSTSTACK_WAITERS_MAX, awaited, t->n);
	if (!t->is_certain && t->n)
		reading_note(r, "tasks of thread %u: it ran meanwhile, and they may be of different moments", tid);
}

int asyncio_read(struct reading *r, size_t python, uint64_t base, const struct hoststack_threads *t)
{
	struct hoststack_asyncio a;
	int e = find(r, python, base, &a);

	if (e < 0)
		return hoststack_is_over(e) ? e : 0;
	pthread_mutex_lock(&r->mutex);
	r->pythons_tasks[python] = true;
	pthread_mutex_unlock(&r->mutex);
	for (size_t i = 0; i < t->n && e == 0; i++) {
		const struct task *task = tasks_find(r->tasks, t->list[i].tid);
		struct hoststack_tasks found;

		if (!task)
			continue;
		e = hoststack_tasks_read(&r->readers[python], &a, &t->list[i], &found);
		/* Memory of a core may be of a later moment than its threads. */
		found.is_certain &= !r->from.is_mixed;
		note_missing(r, task->tid, &found);
		if (publish(r, task->tid, &found) < 0)
			e = -ENOMEM;
		hoststack_tasks_free(&found);
	}
	return hoststack_is_over(e) ? e : 0;
}

void asyncio_free(struct reading_tasks *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->list[i].task.name);
		free(t->list[i].task.places);
	}
	free(t->list);
	*t = (struct reading_tasks){ 0 };
}

/* ------------------------------------------------------------------ answering ---------------- */

static int compare_number(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_places(const struct hoststack_task *a, const struct hoststack_task *b)
{
	int order = compare_number(a->n, b->n);

	for (size_t i = 0; i < a->n && order == 0; i++) {
		const struct hoststack_place *x = &a->places[i], *y = &b->places[i];

		order = compare_number(x->line, y->line);
		if (order == 0)
			order = strcmp(x->function, y->function);
		if (order == 0)
			order = strcmp(x->file, y->file);
	}
	return order;
}

static int compare_key(const struct reading_task *a, const struct reading_task *b)
{
	int order = compare_number(a->tid, b->tid);

	if (order == 0)
		order = compare_places(&a->task, &b->task);
	if (order == 0)
		order = compare_number(a->task.is_running, b->task.is_running);
	if (order == 0)
		order = compare_number(a->task.n_waiters > 0, b->task.n_waiters > 0);
	return order ? order : compare_number(a->task.is_cut, b->task.is_cut);
}

static int by_key(const void *a, const void *b)
{
	const struct reading_task *x = a, *y = b;
	int order = compare_key(x, y);

	return order ? order : compare_number(x->task.address, y->task.address);
}

static int by_interest(const void *a, const void *b)
{
	const struct rpc_async_tasks *x = a, *y = b;

	if (x->tasks != y->tasks)
		return x->tasks > y->tasks ? -1 : 1;
	return compare_number(x->thread, y->thread);
}

static int by_address(const void *a, const void *b)
{
	const struct hoststack_task *const *x = a, *const *y = b;

	return compare_number((*x)->address, (*y)->address);
}

static void add_name(const char **names, size_t *n, const char *name)
{
	for (size_t i = 0; i < *n; i++)
		if (!strcmp(names[i], name))
			return;
	if (*n < NAMES_MAX)
		names[(*n)++] = name;
}

static const char *name_of(const struct hoststack_task *t)
{
	return t->name ? t->name : UNNAMED;
}

/* Tasks by their addresses, to name those that await others. */
struct index {
	const struct hoststack_task **list;
	size_t n;
};

static void add_waiters(const struct index *index, const struct hoststack_task *t, struct rpc_async_tasks *g)
{
	for (size_t i = 0; i < t->n_waiters; i++) {
		const struct hoststack_task wanted = { .address = t->waiters[i] }, *key = &wanted;
		const struct hoststack_task **found =
			bsearch(&key, index->list, index->n, sizeof(*index->list), by_address);

		if (found)
			add_name(g->awaited_by, &g->n_awaited_by, name_of(*found));
	}
	g->has_awaited_by = g->n_awaited_by > 0;
}

static void fill_frames(struct rpc_arena *a, const struct hoststack_task *t, struct rpc_async_tasks *g)
{
	g->frames = rpc_arena_array(a, t->n, sizeof(*g->frames));
	for (size_t i = 0; g->frames && i < t->n; i++)
		g->frames[g->n_frames++] = (struct rpc_thread_frame){
			.function = t->places[i].function, .file = t->places[i].file,
			.has_line = t->places[i].line > 0, .line = t->places[i].line,
		};
}

/* @return how many tasks are of the group that the first begins. */
static size_t fill_group(struct rpc_arena *a, const struct index *index, const struct reading_task *list, size_t n,
			 struct rpc_async_tasks *g)
{
	size_t size = 1;

	while (size < n && compare_key(list, &list[size]) == 0)
		size++;
	*g = (struct rpc_async_tasks){
		.tasks = (uint32_t)size, .thread = list->tid, .consistent = list->is_certain && !list->task.is_cut,
		.has_running = list->task.is_running, .running = list->task.is_running,
		.names = rpc_arena_array(a, NAMES_MAX, sizeof(*g->names)),
		.awaited_by = rpc_arena_array(a, NAMES_MAX, sizeof(*g->awaited_by)),
	};
	fill_frames(a, &list->task, g);
	for (size_t i = 0; g->names && g->awaited_by && i < size; i++) {
		add_name(g->names, &g->n_names, name_of(&list[i].task));
		add_waiters(index, &list[i].task, g);
	}
	return size;
}

void asyncio_fill(struct rpc_arena *a, const struct reading_tasks *t, struct rpc_host_stacks_result *ret)
{
	struct index index = { rpc_arena_array(a, t->n, sizeof(struct hoststack_task *)), t->n };
	struct rpc_async_tasks *groups = rpc_arena_array(a, t->n, sizeof(*groups));

	if (!t->n || !index.list || !groups)
		return;
	qsort(t->list, t->n, sizeof(*t->list), by_key);
	for (size_t i = 0; i < t->n; i++)
		index.list[i] = &t->list[i].task;
	qsort(index.list, index.n, sizeof(*index.list), by_address);
	for (size_t i = 0; i < t->n && !rpc_arena_error(a);)
		i += fill_group(a, &index, &t->list[i], t->n - i, &groups[ret->n_tasks++]);
	qsort(groups, ret->n_tasks, sizeof(*groups), by_interest);
	ret->tasks = groups;
	ret->has_tasks = true;
}
