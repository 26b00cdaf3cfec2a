/* SPDX-License-Identifier: MIT */
/*
 * Threads of many processes: groups that do the same at the same place are one, and ranks whose main threads are
 * elsewhere than the others' are odd.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/document/host/host.h"
#include "ctl/document/merge.h"

int merge_host_rank(struct rpc_arena *a, struct rpc_gpu_snapshot_result *s)
{
	size_t n = s->has_host ? s->host.n_groups : 0;

	s->host_groups = rpc_arena_array(a, n, sizeof(*s->host_groups));
	if (!s->host_groups)
		return rpc_arena_error(a);
	for (size_t i = 0; i < n; i++) {
		bool is_main = host_is_main(&s->host.groups[i], s->host.pid);

		s->host_groups[i] = (struct rpc_merged_threads){ .ranks = "0", .has_main = is_main, .main = is_main,
								 .group = s->host.groups[i] };
	}
	s->n_host_groups = n;
	s->has_host_groups = s->has_host;
	s->has_host = false;
	return 0;
}

/* A group of one document, or of the result. */
struct entry {
	const char *key;
	struct rpc_merged_threads threads;
	const struct merge_part *part;
	struct merge_set own; /* Ranks of that document. */
	struct merge_set set; /* Ranks of the result: of the first of one key, and then of all of them. */
	size_t first;	      /* The lowest of them. */
	size_t order;	      /* Among the groups of all documents. */
};

static int compare_entries(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;
	int c = strcmp(a->key, b->key);

	if (c)
		return c;
	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* Main threads first, as they are what ranks are told apart by; then the largest. */
static int compare_results(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;

	if (a->threads.main != b->threads.main)
		return a->threads.main ? -1 : 1;
	if (a->threads.group.threads != b->threads.group.threads)
		return a->threads.group.threads > b->threads.group.threads ? -1 : 1;
	return compare_entries(x, y);
}

static int fill(struct rpc_arena *a, const struct merge_part *part, size_t at, struct entry *ret)
{
	const struct rpc_merged_threads *t = &part->s->host_groups[at];
	const char *key = host_key(a, &t->group);
	int r = key ? merge_set_init(a, part->s->n_ranks, &ret->own) : -ENOMEM;

	if (r == 0)
		r = merge_set_parse(t->ranks, &ret->own);
	if (r < 0)
		return r;
	ret->key = rpc_arena_printf(a, "%d %s", t->main, key);
	ret->threads = *t;
	ret->part = part;
	ret->first = SIZE_MAX;
	for (size_t i = 0; i < ret->own.n; i++)
		if (merge_set_has(&ret->own, i) && part->ranks[i] < ret->first)
			ret->first = part->ranks[i];
	return ret->key ? 0 : rpc_arena_error(a);
}

static void add_ranks(struct merge_set *to, const struct entry *e)
{
	for (size_t i = 0; i < e->own.n; i++)
		if (merge_set_has(&e->own, i))
			merge_set_add(to, e->part->ranks[i]);
}

static void add(struct entry *to, const struct entry *more)
{
	struct rpc_thread_group *g = &to->threads.group;

	add_ranks(&to->set, more);
	g->threads = g->threads > UINT32_MAX - more->threads.group.threads ? UINT32_MAX :
									      g->threads + more->threads.group.threads;
	/* They are counts and ids of one process. */
	g->has_switches = false;
}

/* Entries of one key, which are neighbours, become one: only these have sets of all ranks. */
static int join(struct rpc_arena *a, struct entry *list, size_t n_ranks, size_t *n)
{
	size_t last = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < *n; i++) {
		if (i && !strcmp(list[last - 1].key, list[i].key)) {
			add(&list[last - 1], &list[i]);
			continue;
		}
		list[last] = list[i];
		r = merge_set_init(a, n_ranks, &list[last].set);
		if (r == 0)
			add_ranks(&list[last].set, &list[last]);
		last++;
	}
	*n = last;
	return r;
}

/* ------------------------------------------------------------------ odd ranks ---------------- */

static bool is_in_collective(const struct entry *e)
{
	return e->threads.group.has_role && e->threads.group.role == RPC_THREAD_ROLE_COLLECTIVE;
}

/* Where a main thread is, for a sentence. */
static const char *where(struct rpc_arena *a, const struct entry *e)
{
	const char *python = host_python(a, &e->threads.group);
	const char *native = python && !*python ? host_native(a, &e->threads.group) : python;

	return native && !*native ? host_state(a, &e->threads.group) : native;
}

static void call_odd(struct rpc_arena *a, struct rpc_rank *r, const char *text)
{
	r->odd = r->odd && text ? rpc_arena_printf(a, "%s; %s", r->odd, text) : text;
}

/*
 * Main threads of ranks are where those of more than half are; or else the others wait in a collective operation for
 * those that are not in one.  `typical` gets what the others do.
 */
static bool find_typical(const struct entry *list, size_t n, size_t n_ranks, const struct entry **ret,
			 bool *ret_collective)
{
	size_t in_collective = 0, elsewhere = 0;

	*ret = NULL;
	for (size_t i = 0; i < n && list[i].threads.main; i++) {
		size_t count = merge_set_count(&list[i].set);

		if (is_in_collective(&list[i]) && !*ret)
			*ret = &list[i];
		in_collective += is_in_collective(&list[i]) ? count : 0;
		elsewhere += is_in_collective(&list[i]) ? 0 : count;
	}
	*ret_collective = in_collective && elsewhere && in_collective >= elsewhere;
	if (*ret_collective)
		return true;
	for (size_t i = 0; i < n && list[i].threads.main; i++)
		if (merge_set_count(&list[i].set) > 1 && 2 * merge_set_count(&list[i].set) > n_ranks) {
			*ret = &list[i];
			return true;
		}
	return false;
}

static int find_odd(struct rpc_arena *a, const struct entry *list, size_t n, struct rpc_gpu_snapshot_result *s)
{
	const struct entry *typical;
	bool collective;

	if (!find_typical(list, n, s->n_ranks, &typical, &collective))
		return 0;
	for (size_t i = 0; i < n && list[i].threads.main; i++) {
		if (&list[i] == typical || (collective && is_in_collective(&list[i])))
			continue;
		for (size_t r = 0; r < s->n_ranks; r++)
			if (merge_set_has(&list[i].set, r))
				call_odd(a, &s->ranks[r],
					 rpc_arena_printf(a, "its main thread is at %s, %s at %s", where(a, &list[i]),
							  collective ? "others wait in a collective operation" :
								       "most others",
							  where(a, typical)));
	}
	return rpc_arena_error(a);
}

int merge_host(struct rpc_arena *a, const struct merge_part *parts, size_t n, struct rpc_gpu_snapshot_result *ret)
{
	size_t all = 0, at = 0;
	struct entry *list;
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		all += parts[i].s->n_host_groups;
		ret->has_host_groups = ret->has_host_groups || parts[i].s->has_host_groups;
	}
	list = rpc_arena_array(a, all, sizeof(*list));
	ret->host_groups = rpc_arena_array(a, all, sizeof(*ret->host_groups));
	if (!list || !ret->host_groups)
		return rpc_arena_error(a);
	for (size_t i = 0; r == 0 && i < n; i++)
		for (size_t k = 0; r == 0 && k < parts[i].s->n_host_groups; k++, at++) {
			list[at].order = at;
			r = fill(a, &parts[i], k, &list[at]);
		}
	if (r < 0)
		return r;
	qsort(list, all, sizeof(*list), compare_entries);
	r = join(a, list, ret->n_ranks, &all);
	if (r < 0)
		return r;
	qsort(list, all, sizeof(*list), compare_results);
	for (size_t i = 0; i < all; i++) {
		ret->host_groups[i] = list[i].threads;
		ret->host_groups[i].ranks = merge_set_print(a, &list[i].set);
	}
	ret->n_host_groups = all;
	return find_odd(a, list, all, ret);
}
