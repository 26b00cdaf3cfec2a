/* SPDX-License-Identifier: MIT */
#include "ctl/document/host/host.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/out.h"

int host_miss(struct rpc_arena *a, struct rpc_gpu_snapshot_result *s, const char *what, const char *why)
{
	const char **list = rpc_arena_array(a, s->n_missing + 1, sizeof(*list));

	if (!list)
		return rpc_arena_error(a);
	if (s->n_missing)
		memcpy(list, s->missing, s->n_missing * sizeof(*list));
	list[s->n_missing++] = rpc_arena_printf(a, "%s: %s", what, why);
	s->missing = list;
	s->complete = false;
	return rpc_arena_error(a);
}

int host_add(struct rpc_arena *a, struct rpc_gpu_snapshot_result *s, const struct rpc_host_stacks_result *host)
{
	int r = 0;

	s->has_host = true;
	s->host = *host;
	s->complete = s->complete && host->complete;
	for (size_t i = 0; r == 0 && i < host->n_missing; i++)
		r = host_miss(a, s, "host", host->missing[i]);
	return r;
}

bool host_is_main(const struct rpc_thread_group *g, uint32_t pid)
{
	for (size_t i = 0; i < g->n_tids; i++)
		if (g->tids[i] == pid)
			return true;
	return false;
}

/* As far as their ids are told. */
static bool is_same_threads(const struct rpc_thread_group *a, const struct rpc_thread_group *b)
{
	return a->threads == b->threads && a->n_tids == b->n_tids &&
	       (!a->n_tids || !memcmp(a->tids, b->tids, a->n_tids * sizeof(*a->tids)));
}

bool host_find_ran(const struct rpc_thread_group *was, const struct rpc_thread_group *is, bool *ret_ran)
{
	if (!is_same_threads(was, is) || !was->has_switches || !is->has_switches)
		return false;
	/* A thread that runs without pause is never put on a processor again. */
	*ret_ran = was->switches != is->switches || is->state == RPC_THREAD_STATE_RUNNING;
	return true;
}

/* ------------------------------------------------------------------ texts -------------------- */

static const char *text_of(struct rpc_arena *a, const struct out *o)
{
	return out_error(o) ? NULL : rpc_arena_strndup(a, o->data ? o->data : "", o->size);
}

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

const char *host_key(struct rpc_arena *a, const struct rpc_thread_group *g)
{
	auto_out struct out o = { 0 };

	out_init(&o, 0);
	out_fmt(&o, "%d %d %s", g->state, g->has_role ? (int)g->role : -1, or_empty(g->waits_in));
	if (g->has_waits_for && g->waits_for.has_queue_id)
		out_fmt(&o, " queue %u", g->waits_for.queue_id);
	for (size_t i = 0; i < g->n_frames; i++)
		out_fmt(&o, "\np %s\n%s\n%u", g->frames[i].function, g->frames[i].file, g->frames[i].line);
	for (size_t i = 0; i < g->n_native_frames; i++) {
		const struct rpc_native_frame *f = &g->native_frames[i];

		/* Addresses within a file are the same in each process; without a file they are not. */
		out_fmt(&o, "\nn %s\n%s\n%" PRIx64, or_empty(f->module), or_empty(f->function),
			f->module ? f->address : 0);
	}
	return text_of(a, &o);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

const char *host_python(struct rpc_arena *a, const struct rpc_thread_group *g)
{
	const struct rpc_thread_frame *f = g->frames;

	if (!g->n_frames)
		return "";
	return f->has_line ? rpc_arena_printf(a, "%s:%u %s", base_name(f->file), f->line, f->function) :
			     rpc_arena_printf(a, "%s %s", base_name(f->file), f->function);
}

const char *host_native(struct rpc_arena *a, const struct rpc_thread_group *g)
{
	for (size_t i = 0; i < g->n_native_frames; i++) {
		const struct rpc_native_frame *f = &g->native_frames[i];

		if (f->function && !f->guessed)
			return f->module ? rpc_arena_printf(a, "%s in %s", f->function, base_name(f->module)) :
					   f->function;
	}
	return "";
}

const char *host_role(struct rpc_arena *a, enum rpc_thread_role role)
{
	static const char *const words[] = {
		[RPC_THREAD_ROLE_GPU_WAIT] = "GPU wait",       [RPC_THREAD_ROLE_RUNTIME] = "runtime",
		[RPC_THREAD_ROLE_COLLECTIVE] = "collective",   [RPC_THREAD_ROLE_WATCHDOG] = "watchdog",
		[RPC_THREAD_ROLE_DATA_LOADER] = "data loader", [RPC_THREAD_ROLE_AUTOGRAD] = "autograd",
		[RPC_THREAD_ROLE_LOCK_WAIT] = "lock wait",
	};

	return (size_t)role < ARRAY_SIZE(words) ? words[role] : rpc_arena_printf(a, "role %d", role);
}

void host_put_wait(struct out *o, const struct rpc_thread_wait *w)
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

const char *host_state(struct rpc_arena *a, const struct rpc_thread_group *g)
{
	const char *state = rpc_enum_name(&rpc_thread_state_enum, g->state);
	auto_out struct out o = { 0 };

	out_init(&o, 0);
	out_str(&o, state ? state : "?");
	if (g->waits_in)
		out_fmt(&o, " in %s", g->waits_in);
	if (g->has_role)
		out_fmt(&o, ", %s", host_role(a, g->role));
	if (g->has_waits_for)
		host_put_wait(&o, &g->waits_for);
	if (g->holds_lock)
		out_str(&o, ", holds the lock");
	if (!g->consistent)
		out_str(&o, ", frames may be of different moments");
	return text_of(a, &o);
}

/* ------------------------------------------------------------------ order -------------------- */

/* A group and how far below others it belongs. */
struct ranked {
	int weight;
	size_t at;
};

static int compare_ranked(const void *x, const void *y)
{
	const struct ranked *a = x, *b = y;

	if (a->weight != b->weight)
		return a->weight < b->weight ? -1 : 1;
	return a->at < b->at ? -1 : 1;
}

/* Nothing runs, and no queue has packets that wait: without a look at waves these alone tell. */
static bool are_gpus_idle(const struct rpc_gpu_snapshot_result *s)
{
	for (size_t i = 0; i < s->n_queues; i++) {
		const struct rpc_queue *q = &s->queues[i];

		if (q->type == RPC_QUEUE_TYPE_COMPUTE_AQL && q->has_read_index && q->has_write_index &&
		    q->write_index > q->read_index)
			return false;
	}
	return !s->wave_count;
}

/* @param idle  Who gives the GPUs work is of more interest than who waits for it. */
static int weigh(const struct rpc_thread_group *g, bool idle, uint32_t pid)
{
	bool serves = g->has_role && (g->role == RPC_THREAD_ROLE_RUNTIME || g->role == RPC_THREAD_ROLE_WATCHDOG);
	bool waits = g->has_role && g->role == RPC_THREAD_ROLE_GPU_WAIT;

	if (g->state == RPC_THREAD_STATE_ENDED)
		return 9;
	if (serves)
		return 8;
	/* Work that is done, and nobody has woken who waits for it. */
	if (g->has_waits_for && g->waits_for.done)
		return 0;
	if (!idle && waits)
		return g->has_waits_for && g->waits_for.has_queue_id ? 1 : 2;
	if (host_is_main(g, pid))
		return 3;
	if (g->n_frames)
		return 4;
	return waits || g->has_role ? 5 : 6;
}

int host_order(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, size_t **ret)
{
	size_t n = s->host.n_groups, *order = rpc_arena_array(a, n, sizeof(*order));
	struct ranked *list = rpc_arena_array(a, n, sizeof(*list));
	bool idle;

	if (!order || !list)
		return rpc_arena_error(a);
	idle = are_gpus_idle(s);
	for (size_t i = 0; i < n; i++)
		list[i] = (struct ranked){ weigh(&s->host.groups[i], idle, s->host.pid), i };
	qsort(list, n, sizeof(*list), compare_ranked);
	for (size_t i = 0; i < n; i++)
		order[i] = list[i].at;
	*ret = order;
	return 0;
}

/* ------------------------------------------------------------------ two snapshots ------------ */

/* The first group of a key that is not taken yet. */
static size_t find_key(const char *const *keys, const bool *taken, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (!taken[i] && !strcmp(keys[i], key))
			return i;
	return n;
}

static const char **keys_of(struct rpc_arena *a, const struct rpc_host_stacks_result *h)
{
	const char **keys = rpc_arena_array(a, h->n_groups, sizeof(*keys));

	for (size_t i = 0; keys && i < h->n_groups; i++)
		if (!(keys[i] = host_key(a, &h->groups[i])))
			return NULL;
	return keys;
}

/* @param is_equal  Their stacks are equal. */
static struct rpc_thread_change change_of(const struct rpc_thread_group *was, const struct rpc_thread_group *is,
					  bool is_equal)
{
	struct rpc_thread_change c = { .change = !was ? RPC_CHANGE_ADDED :
						 !is  ? RPC_CHANGE_REMOVED :
							RPC_CHANGE_CHANGED,
				       .threads_before = was ? was->threads : 0,
				       .threads_after = is ? is->threads : 0,
				       .group = is ? *is : *was };

	if (is_equal && is_same_threads(was, is))
		c.change = RPC_CHANGE_SAME;
	c.has_ran = was && is && host_find_ran(was, is, &c.ran);
	return c;
}

/* Of groups whose stacks were read less well one time, or have changed: those of the very same threads. */
static size_t find_threads(const struct rpc_host_stacks_result *b, const bool *taken, const struct rpc_thread_group *is)
{
	size_t k = 0;

	while (k < b->n_groups && (taken[k] || !is->n_tids || !is_same_threads(&b->groups[k], is)))
		k++;
	return k;
}

/* Find what each group was: the one of equal stacks, or else of the same threads.  @p ret has n_groups for none. */
static void pair(const struct rpc_host_stacks_result *b, const struct rpc_host_stacks_result *h, const char **was,
		 const char **is, bool *taken, size_t *ret)
{
	for (size_t i = 0; i < h->n_groups; i++) {
		ret[i] = find_key(was, taken, b->n_groups, is[i]);
		if (ret[i] < b->n_groups)
			taken[ret[i]] = true;
	}
	for (size_t i = 0; i < h->n_groups; i++) {
		if (ret[i] < b->n_groups)
			continue;
		ret[i] = find_threads(b, taken, &h->groups[i]);
		if (ret[i] < b->n_groups)
			taken[ret[i]] = true;
	}
}

int host_compare(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *before,
		 const struct rpc_gpu_snapshot_result *after, struct rpc_comparison *ret)
{
	const struct rpc_host_stacks_result *b = &before->host, *h = &after->host;
	const char **was, **is;
	struct rpc_thread_change *list;
	size_t *pairs;
	bool *taken;

	if (!before->has_host || !after->has_host)
		return 0;
	was = keys_of(a, b);
	is = keys_of(a, h);
	taken = rpc_arena_array(a, b->n_groups, sizeof(*taken));
	list = rpc_arena_array(a, b->n_groups + h->n_groups, sizeof(*list));
	pairs = rpc_arena_array(a, h->n_groups, sizeof(*pairs));
	if (!was || !is || !taken || !list || !pairs)
		return -ENOMEM;
	pair(b, h, was, is, taken, pairs);
	for (size_t i = 0; i < h->n_groups; i++) {
		bool is_found = pairs[i] < b->n_groups;

		list[i] = change_of(is_found ? &b->groups[pairs[i]] : NULL, &h->groups[i],
				    is_found && !strcmp(was[pairs[i]], is[i]));
	}
	ret->n_host_groups = h->n_groups;
	for (size_t k = 0; k < b->n_groups; k++)
		if (!taken[k])
			list[ret->n_host_groups++] = change_of(&b->groups[k], NULL, false);
	ret->host_groups = list;
	ret->has_host_groups = true;
	return 0;
}
