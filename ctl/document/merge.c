/* SPDX-License-Identifier: MIT */
/*
 * Merges snapshots.  Each document is reduced to what the result needs and kept; merge_finish()
 * sorts the ranks, renumbers them in each document, and joins groups of one key.
 */
#include "ctl/document/merge.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/out.h"
#include "base/str.h"
#include "ctl/document/place.h"
#include "protocol/rpc_copy.h"
#include "protocol/stop_reason.h"

/* One document that was added. */
struct source {
	struct rpc_gpu_snapshot_result s; /* Without what is not kept; always with ranks. */
	size_t first_rank;
	size_t n_ranks;
};

struct merge {
	struct rpc_arena arena;
	struct out sources; /* An array of struct source. */
	struct out ranks;   /* An array of struct rpc_rank, in the order in which they came. */
	struct out missing; /* An array of const char *. */
};

struct merge *merge_create(void)
{
	struct merge *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	rpc_arena_init(&m->arena, MERGE_MEMORY_MAX);
	out_init(&m->sources, 0);
	out_init(&m->ranks, 0);
	out_init(&m->missing, 0);
	return m;
}

void merge_destroy(struct merge *m)
{
	if (!m)
		return;
	rpc_arena_deinit(&m->arena);
	out_deinit(&m->sources);
	out_deinit(&m->ranks);
	out_deinit(&m->missing);
	free(m);
}

static struct source *sources_of(const struct merge *m, size_t *ret_n)
{
	*ret_n = m->sources.size / sizeof(struct source);
	return (struct source *)(void *)m->sources.data;
}

static struct rpc_rank *ranks_of(const struct merge *m)
{
	return (struct rpc_rank *)(void *)m->ranks.data;
}

size_t merge_ranks(const struct merge *m)
{
	return m->ranks.size / sizeof(struct rpc_rank);
}

int merge_add_missing(struct merge *m, const char *text)
{
	const char *copy = rpc_arena_strdup(&m->arena, text);

	out_bytes(&m->missing, &copy, sizeof(copy));
	return copy ? out_error(&m->missing) : rpc_arena_error(&m->arena);
}

/* ------------------------------------------------------------------ adding ------------------- */

/* Make a deep copy of what is kept. */
static int copy_kept(struct merge *m, const struct rpc_gpu_snapshot_result *s, struct rpc_gpu_snapshot_result *ret)
{
	struct rpc_gpu_snapshot_result kept = *s;

	kept.has_waves = kept.has_registers = kept.has_why = kept.has_rank_graph = false;
	kept.n_devices = kept.n_queues = 0;
	return rpc_copy_struct(&m->arena, &rpc_gpu_snapshot_result_struct, &kept, ret);
}

/*
 * Count the AQL packets that devices have taken.  Copy engines do not count: their indices are
 * bytes.
 * @return false unless there is such a queue, and all of them tell.
 */
static bool count_packets(const struct rpc_gpu_snapshot_result *s, uint64_t *ret)
{
	size_t n = 0;

	*ret = 0;
	for (size_t i = 0; i < s->n_queues; i++) {
		if (s->queues[i].type != RPC_QUEUE_TYPE_COMPUTE_AQL)
			continue;
		if (!s->queues[i].has_read_index)
			return false;
		*ret += s->queues[i].read_index;
		n++;
	}
	return n != 0;
}

/* The name of a rank from that of its file: `rank3` for /tmp/job/rank3.json. */
static const char *rank_name(struct rpc_arena *a, const char *file)
{
	const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
	size_t n = strlen(base);

	if (n > 5 && !strcmp(base + n - 5, ".json"))
		n -= 5;
	return rpc_arena_strndup(a, base, n);
}

/* Of why, only what other ranks may contradict is kept. */
static int keep_collectives(struct merge *m, const struct rpc_gpu_snapshot_result *s, struct rpc_rank *to)
{
	const size_t n = s->has_why && s->why.has_collectives ? s->why.n_collectives : 0;
	int r = 0;

	/* That it executes none is known only of one of which all is known. */
	to->has_collectives = n || (s->has_why && s->why.complete);
	if (!n)
		return 0;
	to->collectives = rpc_arena_array(&m->arena, n, sizeof(*to->collectives));
	if (!to->collectives)
		return rpc_arena_error(&m->arena);
	for (size_t i = 0; i < n && r == 0; i++)
		r = rpc_copy_struct(&m->arena, &rpc_collective_struct, &s->why.collectives[i], &to->collectives[i]);
	/* What it has not read of a process may be just what would have been waited for. */
	for (size_t i = 0; i < n && !s->why.complete; i++) {
		to->collectives[i].has_waits_for = to->collectives[i].has_unchanged_since_us = false;
		to->collectives[i].has_seen_us = false;
		to->collectives[i].n_waits_for = 0;
	}
	to->n_collectives = n;
	return r;
}

/* What NCCL has said to one rank is kept as that: others may have been told something else, at another time. */
static int keep_told(struct merge *m, const struct rpc_gpu_snapshot_result *s, struct rpc_rank *to)
{
	to->has_told_by_nccl = s->has_why && s->why.has_told_by_nccl;
	if (!to->has_told_by_nccl)
		return 0;
	return rpc_copy_struct(&m->arena, &rpc_nccl_told_struct, &s->why.told_by_nccl, &to->told_by_nccl);
}

/* Make a snapshot a merged document of one rank. */
static int make_rank(struct merge *m, const struct document *d, struct rpc_gpu_snapshot_result *s)
{
	struct rpc_rank *r = rpc_arena_array(&m->arena, 1, sizeof(*r));
	const char **missing = rpc_arena_array(&m->arena, s->n_missing, sizeof(*missing));

	if (!r || !missing)
		return rpc_arena_error(&m->arena);
	*r = (struct rpc_rank){
		.name = rank_name(&m->arena, d->name),
		.host = s->source.host,
		.pid = s->process.pid,
		.has_start_ticks = s->process.has_start_ticks,
		.start_ticks = s->process.start_ticks,
		.comm = s->process.comm,
		.time_us = s->time_us,
		.waves = s->wave_count,
		.complete = s->complete,
	};
	r->has_rank = s->has_host && s->host.has_rank;
	r->rank = s->host.rank;
	r->has_packets = count_packets(&d->snapshot, &r->packets);
	if (keep_collectives(m, &d->snapshot, r) < 0 || keep_told(m, &d->snapshot, r) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < s->n_missing; i++)
		missing[i] = rpc_arena_printf(&m->arena, "%s: %s", r->name, s->missing[i]);
	s->missing = missing;
	s->ranks = r;
	s->n_ranks = 1;
	s->has_ranks = true;
	for (size_t i = 0; i < s->n_groups; i++)
		s->groups[i].ranks = "0";
	for (size_t i = 0; i < s->n_exited; i++)
		s->exited[i].ranks = "0";
	return merge_host_rank(&m->arena, s);
}

static bool is_same_process(const struct rpc_rank *r, const struct rpc_rank *s)
{
	return r->pid == s->pid && r->has_start_ticks == s->has_start_ticks &&
	       r->start_ticks == s->start_ticks && !strcmp(r->host, s->host);
}

static int refuse(struct agent_err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int refuse(struct agent_err *err, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL, "%s", text);
}

/* @return the rank that is this process, or NULL. */
static const struct rpc_rank *find_rank(const struct merge *m, const struct rpc_rank *rank)
{
	const struct rpc_rank *known = ranks_of(m);

	for (size_t i = 0, n = merge_ranks(m); i < n; i++)
		if (is_same_process(rank, &known[i]))
			return &known[i];
	return NULL;
}

bool merge_has(const struct merge *m, const struct rpc_gpu_snapshot_result *s)
{
	for (size_t i = 0; i < s->n_ranks; i++)
		if (!find_rank(m, &s->ranks[i]))
			return false;
	return s->n_ranks > 0;
}

/* Refuse a process that is there already, since its waves would count twice. */
static int check_ranks(const struct merge *m, const char *name,
		       const struct rpc_gpu_snapshot_result *s, struct agent_err *err)
{
	if (!s->n_ranks || s->n_ranks > MERGE_RANKS_MAX - merge_ranks(m))
		return refuse(err, "%.100s: %s", name,
			      s->n_ranks ? "too many ranks" : "the list of ranks is empty");
	for (size_t i = 0; i < s->n_ranks; i++) {
		const struct rpc_rank *known = find_rank(m, &s->ranks[i]);

		if (known)
			return refuse(err, "%.60s: process %u of %.40s is in it, and in %.40s already", name,
				      s->ranks[i].pid, s->ranks[i].host, known->name);
	}
	return 0;
}

/* Refuse lists of ranks that are not lists; merge_finish() relies on it. */
static int check_groups(const char *name, const struct rpc_gpu_snapshot_result *s,
			struct agent_err *err)
{
	auto_rpc_arena struct rpc_arena scratch;
	struct merge_set set;

	rpc_arena_init(&scratch, 0);
	if (merge_set_init(&scratch, s->n_ranks, &set) < 0)
		return agent_err_no_memory(err, NULL);
	for (size_t i = 0; i < s->n_exited; i++)
		if (!s->exited[i].ranks || merge_set_parse(s->exited[i].ranks, &set) < 0)
			return refuse(err, "%.100s: document.exited[%zu].ranks: must be positions in the list of ranks, such as 0-6,9",
				      name, i);
	for (size_t i = 0; i < s->n_host_groups; i++)
		if (merge_set_parse(s->host_groups[i].ranks, &set) < 0)
			return refuse(err, "%.100s: document.host_groups[%zu].ranks: must be positions in the list of ranks, such as 0-6,9",
				      name, i);
	for (size_t i = 0; i < s->n_groups; i++)
		if (!s->groups[i].ranks || merge_set_parse(s->groups[i].ranks, &set) < 0)
			return refuse(err, "%.100s: document.groups[%zu].ranks: must be positions in the list of ranks, such as 0-6,9",
				      name, i);
	return 0;
}

/* What is missing between the ranks of a document, not in one of them. */
struct between {
	const char *list[2];
	size_t n;
	struct merge_waits waits;
};

static int find_between(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, struct between *ret)
{
	const char *absent = merge_absent(a, s);
	int r;

	*ret = (struct between){ 0 };
	r = absent ? merge_circle(a, s, &ret->waits) : rpc_arena_error(a);
	if (r < 0)
		return r;
	if (absent[0])
		ret->list[ret->n++] = absent;
	if (ret->waits.late)
		ret->list[ret->n++] = ret->waits.late;
	return 0;
}

static bool is_between(const struct between *b, const char *text)
{
	for (size_t i = 0; i < b->n; i++)
		if (!strcmp(b->list[i], text))
			return true;
	return false;
}

/* Which ranks a merged document lacks, or were looked at too late, is for the result to say: others may join them. */
static int forget_between(struct merge *m, struct rpc_gpu_snapshot_result *s)
{
	struct between between;
	size_t n = 0;
	bool complete = true;
	int r = find_between(&m->arena, s, &between);

	if (r < 0)
		return r;
	for (size_t i = 0; i < s->n_missing; i++)
		if (!is_between(&between, s->missing[i]))
			s->missing[n++] = s->missing[i];
	for (size_t i = 0; i < s->n_ranks; i++)
		complete = complete && s->ranks[i].complete;
	if (n < s->n_missing)
		s->complete = complete && !n;
	s->n_missing = n;
	return 0;
}

int merge_add(struct merge *m, const struct document *d, struct agent_err *err)
{
	struct source source = { .first_rank = merge_ranks(m) };
	int r;

	if (copy_kept(m, &d->snapshot, &source.s) < 0 || (!d->merged && make_rank(m, d, &source.s) < 0))
		return agent_err_no_memory(err, "merge");
	r = check_ranks(m, d->name, &source.s, err);
	if (r == 0)
		r = check_groups(d->name, &source.s, err);
	if (r < 0)
		return r;
	if (d->merged && forget_between(m, &source.s) < 0)
		return agent_err_no_memory(err, "merge");
	source.n_ranks = source.s.n_ranks;
	out_bytes(&m->ranks, source.s.ranks, source.n_ranks * sizeof(struct rpc_rank));
	out_bytes(&m->sources, &source, sizeof(source));
	if (out_error(&m->ranks) || out_error(&m->sources))
		return agent_err_no_memory(err, "merge");
	return 0;
}

/* ------------------------------------------------------------------ putting together --------- */

struct numbered {
	struct rpc_rank rank;
	size_t was; /* Position in merge.ranks. */
};

/*
 * Orders ranks by name, with rank10 behind rank9; the rest makes the order total, whatever the
 * order in which documents came.
 */
static int compare_ranks(const void *x, const void *y)
{
	const struct rpc_rank *r = &((const struct numbered *)x)->rank;
	const struct rpc_rank *s = &((const struct numbered *)y)->rank;
	int c = strverscmp(r->name, s->name);

	if (!c)
		c = strcmp(r->host, s->host);
	if (c)
		return c;
	if (r->pid != s->pid)
		return r->pid < s->pid ? -1 : 1;
	return r->start_ticks < s->start_ticks ? -1 : r->start_ticks > s->start_ticks;
}

/*
 * Sort the ranks.
 * @param ret_new  For each position in merge.ranks, the position in the result.
 */
static int sort_ranks(struct merge *m, struct rpc_gpu_snapshot_result *ret, size_t **ret_new)
{
	size_t n = merge_ranks(m), *new = rpc_arena_array(&m->arena, n, sizeof(*new));
	struct numbered *list = rpc_arena_array(&m->arena, n, sizeof(*list));
	const struct rpc_rank *ranks = ranks_of(m);

	ret->ranks = rpc_arena_array(&m->arena, n, sizeof(*ret->ranks));
	if (!new || !list || !ret->ranks)
		return rpc_arena_error(&m->arena);
	for (size_t i = 0; i < n; i++)
		list[i] = (struct numbered){ ranks[i], i };
	qsort(list, n, sizeof(*list), compare_ranks);
	for (size_t i = 0; i < n; i++) {
		ret->ranks[i] = list[i].rank;
		/* Among other ranks another one may be odd. */
		ret->ranks[i].odd = NULL;
		new[list[i].was] = i;
	}
	ret->n_ranks = n;
	ret->has_ranks = true;
	*ret_new = new;
	return 0;
}

/* A group of one document. */
struct entry {
	const char *key;
	const struct rpc_group *group;
	const struct source *source;
	size_t first; /* The lowest of its ranks in the result. */
};

static int compare_entries(const void *x, const void *y)
{
	const struct entry *e = x, *f = y;
	int c = strcmp(e->key, f->key);

	if (c)
		return c;
	if (e->first != f->first)
		return e->first < f->first ? -1 : 1;
	/* Two groups of one rank come from one document: their order there counts. */
	return e->group < f->group ? -1 : e->group > f->group;
}

/* A sum that stays at the largest number rather than wrap. */
static uint32_t sum(uint32_t a, uint32_t b)
{
	return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

/* Add a group to the first one of its key, which gives what cannot be added up. */
static void add_group(struct rpc_group *g, const struct rpc_group *more)
{
	g->waves = sum(g->waves, more->waves);
	g->has_parts = g->has_parts || more->has_parts;
	g->parts = sum(g->parts, more->parts);
	g->lanes_min = more->lanes_min < g->lanes_min ? more->lanes_min : g->lanes_min;
	g->lanes_max = more->lanes_max > g->lanes_max ? more->lanes_max : g->lanes_max;
	g->has_workgroups = g->has_workgroups && more->has_workgroups;
	g->workgroups = g->has_workgroups ? sum(g->workgroups, more->workgroups) : 0;
}

/* Read a list of ranks of a document, and add them as they are numbered in the result. */
static int renumber(struct rpc_arena *scratch, const struct source *source, const char *ranks,
		    const size_t *new, struct merge_set *ret)
{
	struct merge_set own;
	int r = merge_set_init(scratch, source->n_ranks, &own);

	if (r == 0)
		r = merge_set_parse(ranks, &own);
	if (r < 0)
		return r;
	for (size_t i = 0; i < own.n; i++)
		if (merge_set_has(&own, i))
			merge_set_add(ret, new[source->first_rank + i]);
	return 0;
}

static int ranks_of_group(struct rpc_arena *scratch, const struct entry *e, const size_t *new,
			  struct merge_set *ret)
{
	return renumber(scratch, e->source, e->group->ranks, new, ret);
}

/* The lowest rank of a group in the result.  A set of all ranks for each group of each document would take too long. */
static int find_first(struct rpc_arena *scratch, const struct entry *e, const size_t *new, size_t *ret)
{
	const size_t *ranks = new + e->source->first_rank;
	struct merge_set own;
	int r = merge_set_init(scratch, e->source->n_ranks, &own);

	if (r == 0)
		r = merge_set_parse(e->group->ranks, &own);
	*ret = SIZE_MAX;
	for (size_t i = 0; r == 0 && i < own.n; i++)
		if (merge_set_has(&own, i) && ranks[i] < *ret)
			*ret = ranks[i];
	return r;
}

/* List the groups of all documents, with their keys and first ranks. */
static int make_entries(struct merge *m, const size_t *new, struct entry **ret, size_t *ret_n)
{
	auto_rpc_arena struct rpc_arena scratch;
	size_t n_sources, n = 0;
	struct source *sources = sources_of(m, &n_sources);
	struct entry *list;

	for (size_t i = 0; i < n_sources; i++)
		n += sources[i].s.n_groups;
	rpc_arena_init(&scratch, 0);
	list = rpc_arena_array(&m->arena, n, sizeof(*list));
	*ret = list;
	*ret_n = n;
	for (size_t i = 0; list && i < n_sources; i++)
		for (size_t k = 0; k < sources[i].s.n_groups; k++) {
			rpc_arena_reset(&scratch);
			*list = (struct entry){ .group = &sources[i].s.groups[k],
						.source = &sources[i] };
			list->key = place_key(&m->arena, list->group, false);
			if (!list->key || find_first(&scratch, list, new, &list->first) < 0)
				return -ENOMEM;
			list++;
		}
	return list ? 0 : rpc_arena_error(&m->arena);
}

/* A group of the result. */
struct joined {
	struct rpc_group group;
	struct merge_set set;
	const char *key;
};

/* Orders groups as the agent does: faults first, then by waves; keys make the order total. */
static int compare_joined(const void *x, const void *y)
{
	const struct joined *a = x, *b = y;
	bool fault = stop_reason_is_faulting(&a->group);

	if (fault != stop_reason_is_faulting(&b->group))
		return fault ? -1 : 1;
	if (a->group.waves != b->group.waves)
		return a->group.waves > b->group.waves ? -1 : 1;
	return strcmp(a->key, b->key);
}

/* Join entries of one key, which are neighbours, into one group. */
static int join_entries(struct merge *m, const struct entry *entries, size_t n, const size_t *new,
			struct joined *list, size_t *ret_n)
{
	auto_rpc_arena struct rpc_arena scratch;
	size_t last = 0;
	int r = 0;

	rpc_arena_init(&scratch, 0);
	for (size_t i = 0; r == 0 && i < n; i++) {
		bool more = i && !strcmp(entries[i].key, entries[i - 1].key);

		rpc_arena_reset(&scratch);
		if (more) {
			add_group(&list[last - 1].group, entries[i].group);
		} else {
			list[last].group = *entries[i].group;
			list[last].group.has_waiting = list[last].group.has_wait = false;
			list[last].key = entries[i].key;
			r = merge_set_init(&m->arena, merge_ranks(m), &list[last++].set);
		}
		if (r == 0)
			r = ranks_of_group(&scratch, &entries[i], new, &list[last - 1].set);
	}
	*ret_n = last;
	return r;
}

static int join_groups(struct merge *m, const size_t *new, struct rpc_gpu_snapshot_result *ret)
{
	struct merge_set *sets;
	struct joined *list;
	struct entry *entries;
	size_t n;
	int r = make_entries(m, new, &entries, &n);

	if (r < 0)
		return r;
	qsort(entries, n, sizeof(*entries), compare_entries);
	list = rpc_arena_array(&m->arena, n, sizeof(*list));
	r = list ? join_entries(m, entries, n, new, list, &n) : rpc_arena_error(&m->arena);
	if (r < 0)
		return r;
	qsort(list, n, sizeof(*list), compare_joined);
	ret->groups = rpc_arena_array(&m->arena, n, sizeof(*ret->groups));
	sets = rpc_arena_array(&m->arena, n, sizeof(*sets));
	if (!ret->groups || !sets)
		return rpc_arena_error(&m->arena);
	for (size_t i = 0; i < n; i++) {
		ret->groups[i] = list[i].group;
		ret->groups[i].ranks = merge_set_print(&m->arena, &list[i].set);
		sets[i] = list[i].set;
	}
	ret->n_groups = n;
	return merge_find_odd(&m->arena, ret, sets);
}

/*
 * Collect exceptions of waves that have exited.  Each stays what it is: what devices recorded is
 * not summed up.
 */
static int join_exited(struct merge *m, const size_t *new, struct rpc_gpu_snapshot_result *ret)
{
	auto_rpc_arena struct rpc_arena scratch;
	size_t n_sources, n = 0;
	struct source *sources = sources_of(m, &n_sources);
	int r = 0;

	for (size_t i = 0; i < n_sources; i++)
		n += sources[i].s.n_exited;
	rpc_arena_init(&scratch, 0);
	ret->has_exited = n > 0;
	ret->exited = rpc_arena_array(&m->arena, n, sizeof(*ret->exited));
	for (size_t i = 0; ret->exited && i < n_sources; i++)
		for (size_t k = 0; r == 0 && k < sources[i].s.n_exited; k++) {
			struct rpc_exited_exception *to = &ret->exited[ret->n_exited++];
			struct merge_set set;

			rpc_arena_reset(&scratch);
			*to = sources[i].s.exited[k];
			r = merge_set_init(&scratch, merge_ranks(m), &set);
			if (r == 0)
				r = renumber(&scratch, &sources[i], to->ranks, new, &set);
			to->ranks = r == 0 ? merge_set_print(&m->arena, &set) : NULL;
		}
	return r < 0 ? r : rpc_arena_error(&m->arena);
}

static int join_host(struct merge *m, const size_t *new, struct rpc_gpu_snapshot_result *ret)
{
	size_t n;
	struct source *sources = sources_of(m, &n);
	struct merge_part *parts = rpc_arena_array(&m->arena, n, sizeof(*parts));

	if (!parts)
		return rpc_arena_error(&m->arena);
	for (size_t i = 0; i < n; i++)
		parts[i] = (struct merge_part){ &sources[i].s, new + sources[i].first_rank };
	return merge_host(&m->arena, parts, n, ret);
}

static int compare_texts(const void *x, const void *y)
{
	return strverscmp(*(const char *const *)x, *(const char *const *)y);
}

/* What is missing, and what ranks wait for each other. */
static int join_missing(struct merge *m, struct rpc_gpu_snapshot_result *ret)
{
	size_t n_sources;
	const struct source *sources = sources_of(m, &n_sources);
	struct out *all = &m->missing;
	struct between between;
	int r = find_between(&m->arena, ret, &between);

	if (r < 0)
		return r;
	ret->has_rank_graph = between.waits.has_graph;
	ret->rank_graph = between.waits.graph;
	ret->complete = ret->complete && !between.n;
	out_bytes(all, between.list, between.n * sizeof(*between.list));
	for (size_t i = 0; i < n_sources; i++)
		out_bytes(all, sources[i].s.missing,
			  sources[i].s.n_missing * sizeof(*sources[i].s.missing));
	if (out_error(all))
		return out_error(all);
	ret->n_missing = all->size / sizeof(*ret->missing);
	ret->missing = (const char **)(void *)all->data;
	if (ret->n_missing)
		qsort(ret->missing, ret->n_missing, sizeof(*ret->missing), compare_texts);
	return 0;
}

/* Fill in what has one value in a document: that of the first rank, or a sum, or the largest. */
static void join_heads(struct merge *m, const size_t *new, struct rpc_gpu_snapshot_result *ret)
{
	size_t n_sources, lowest = SIZE_MAX;
	const struct source *sources = sources_of(m, &n_sources);

	*ret = (struct rpc_gpu_snapshot_result){ .schema = DOCUMENT_SNAPSHOT, .complete = true };
	for (size_t i = 0; i < n_sources; i++) {
		const struct rpc_gpu_snapshot_result *s = &sources[i].s;

		for (size_t k = 0; k < sources[i].n_ranks; k++)
			if (new[sources[i].first_rank + k] < lowest) {
				lowest = new[sources[i].first_rank + k];
				ret->process = s->process;
				ret->runtime = s->runtime;
				ret->interface_version = s->interface_version;
				ret->source = s->source;
			}
		ret->time_us = s->time_us > ret->time_us ? s->time_us : ret->time_us;
		ret->stopped_us = s->stopped_us > ret->stopped_us ? s->stopped_us : ret->stopped_us;
		ret->wave_count = sum(ret->wave_count, s->wave_count);
		ret->has_diverged_waves = ret->has_diverged_waves || s->has_diverged_waves;
		ret->diverged_waves = sum(ret->diverged_waves, s->diverged_waves);
		ret->budget_exceeded = ret->budget_exceeded || s->budget_exceeded;
		ret->complete = ret->complete && s->complete;
	}
	ret->source.kind = DOCUMENT_MERGED;
	ret->complete = ret->complete && !m->missing.size;
}

int merge_finish(struct merge *m, struct rpc_gpu_snapshot_result *ret)
{
	struct rpc_gpu_snapshot_result ranks = { 0 };
	size_t *new = NULL;
	int r;

	if (!merge_ranks(m))
		return -EINVAL;
	r = sort_ranks(m, &ranks, &new);
	if (r < 0)
		return r;
	join_heads(m, new, ret);
	ret->ranks = ranks.ranks;
	ret->n_ranks = ranks.n_ranks;
	ret->has_ranks = true;
	r = join_groups(m, new, ret);
	if (r == 0)
		r = join_exited(m, new, ret);
	if (r == 0)
		r = join_host(m, new, ret);
	return r < 0 ? r : join_missing(m, ret);
}
