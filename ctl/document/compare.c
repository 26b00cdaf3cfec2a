/* SPDX-License-Identifier: MIT */
/*
 * Pairs the queues and the groups of two snapshots and says what changed of each; compare_judge.c
 * makes a verdict of it.
 */
#include "ctl/document/compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/document/document.h"
#include "ctl/document/host/host.h"
#include "ctl/document/place.h"
#include "protocol/stop_reason.h"

const char *compare_mismatch(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *before,
			     const struct rpc_gpu_snapshot_result *after)
{
	const struct rpc_process *p = &before->process, *q = &after->process;

	if (before->has_ranks || after->has_ranks)
		return "one of them is merged from several processes";
	if (strcmp(before->source.host, after->source.host))
		return rpc_arena_printf(a, "they come from the hosts %.60s and %.60s",
					before->source.host, after->source.host);
	if (p->pid != q->pid)
		return rpc_arena_printf(a, "they show the processes %u and %u", p->pid, q->pid);
	if (p->has_start_ticks && q->has_start_ticks && p->start_ticks != q->start_ticks)
		return rpc_arena_printf(
			a, "process %u ended in between, and another has its number", p->pid);
	return NULL;
}

/* ------------------------------------------------------------------ queues ------------------- */

/* Orders queues.  Ids are used again: a queue with another ring or context is another queue. */
static int compare_queues(const void *x, const void *y)
{
	const struct rpc_queue *q = *(const struct rpc_queue *const *)x;
	const struct rpc_queue *r = *(const struct rpc_queue *const *)y;

	if (q->queue_id != r->queue_id)
		return q->queue_id < r->queue_id ? -1 : 1;
	if (q->gpu_id != r->gpu_id)
		return q->gpu_id < r->gpu_id ? -1 : 1;
	if (q->context != r->context)
		return q->context < r->context ? -1 : 1;
	return q->ring_base < r->ring_base ? -1 : q->ring_base > r->ring_base;
}

/* The queues of a snapshot, sorted to be found. */
struct queue_index {
	const struct rpc_queue **list;
	size_t n;
};

static int index_queues(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s,
			struct queue_index *ret)
{
	ret->list = rpc_arena_array(a, s->n_queues, sizeof(*ret->list));
	ret->n = s->n_queues;
	if (!ret->list)
		return rpc_arena_error(a);
	for (size_t i = 0; i < s->n_queues; i++)
		ret->list[i] = &s->queues[i];
	qsort(ret->list, ret->n, sizeof(*ret->list), compare_queues);
	return 0;
}

static const struct rpc_queue *find_queue(const struct queue_index *index,
					  const struct rpc_queue *like)
{
	const struct rpc_queue **found =
		bsearch(&like, index->list, index->n, sizeof(*index->list), compare_queues);

	return found ? *found : NULL;
}

/* What the earlier snapshot says of a queue. */
static void fill_before(struct rpc_queue_change *c, const struct rpc_queue *q)
{
	c->queue_id = q->queue_id;
	c->gpu_id = q->gpu_id;
	c->has_read_before = q->has_read_index;
	c->read_before = q->read_index;
	c->has_write_before = q->has_write_index;
	c->write_before = q->write_index;
	c->has_waves_before = q->has_waves;
	c->waves_before = q->waves;
}

/* What the later snapshot says of a queue. */
static void fill_after(struct rpc_queue_change *c, const struct rpc_queue *q)
{
	c->queue_id = q->queue_id;
	c->gpu_id = q->gpu_id;
	c->has_read_after = q->has_read_index;
	c->read_after = q->read_index;
	c->has_write_after = q->has_write_index;
	c->write_after = q->write_index;
	c->has_waves_after = q->has_waves;
	c->waves_after = q->waves;
	c->has_faulting_waves = q->has_faulting_waves;
	c->faulting_waves = q->faulting_waves;
}

/*
 * Whether anything about a queue has changed.  Digests of waves are compared only when both
 * snapshots looked at the queue's waves.
 */
static bool differs(const struct rpc_queue_change *c, const struct rpc_queue *was, const struct rpc_queue *is)
{
	if (c->has_waves_before && c->has_waves_after && was->waves_digest != is->waves_digest)
		return true;
	return c->has_read_before != c->has_read_after || c->read_before != c->read_after ||
	       c->has_write_before != c->has_write_after || c->write_before != c->write_after;
}

/* Find each queue of the later snapshot in the earlier one; those that are gone come last. */
static int pair_queues(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *before,
		       const struct rpc_gpu_snapshot_result *after, const struct rpc_queue **ret_earlier,
		       struct rpc_comparison *ret)
{
	struct rpc_queue_change *list =
		rpc_arena_array(a, before->n_queues + after->n_queues, sizeof(*list));
	struct queue_index earlier, later;
	size_t n = 0;

	if (!list || index_queues(a, before, &earlier) < 0 || index_queues(a, after, &later) < 0)
		return rpc_arena_error(a);
	for (size_t i = 0; i < after->n_queues; i++) {
		const struct rpc_queue *was = find_queue(&earlier, &after->queues[i]);
		struct rpc_queue_change *c = &list[n++];

		fill_after(c, &after->queues[i]);
		if (was)
			fill_before(c, was);
		c->change = !was ? RPC_CHANGE_ADDED
			    : differs(c, was, &after->queues[i]) ? RPC_CHANGE_CHANGED
								 : RPC_CHANGE_SAME;
		ret_earlier[i] = was;
	}
	for (size_t i = 0; i < before->n_queues; i++)
		if (!find_queue(&later, &before->queues[i])) {
			fill_before(&list[n], &before->queues[i]);
			list[n++].change = RPC_CHANGE_REMOVED;
		}
	ret->queues = list;
	ret->n_queues = n;
	return 0;
}

/* ------------------------------------------------------------------ groups ------------------- */

/* All groups of a snapshot that have one key. */
struct entry {
	const char *key;
	const struct rpc_group *group; /* The first group of this key. */
	uint64_t waves;		       /* Waves of all groups of this key. */
	uint64_t workgroups;
};

static int compare_entries(const void *x, const void *y)
{
	const struct entry *e = x, *f = y;
	int r = strcmp(e->key, f->key);

	if (r)
		return r;
	return e->group < f->group ? -1 : e->group > f->group;
}

/* Make entries of groups, sorted by key; groups of one key are added up. */
static struct entry *index_groups(struct rpc_arena *a, const struct rpc_group *groups, size_t n,
				  size_t *ret_n)
{
	struct entry *list = rpc_arena_array(a, n, sizeof(*list));
	size_t last = 0;

	for (size_t i = 0; list && i < n; i++) {
		list[i] = (struct entry){ .key = place_key(a, &groups[i], true),
					  .group = &groups[i],
					  .waves = groups[i].waves,
					  .workgroups = groups[i].workgroups };
		if (!list[i].key)
			return NULL;
	}
	if (!list)
		return NULL;
	qsort(list, n, sizeof(*list), compare_entries);
	for (size_t i = 1; i < n; i++)
		if (!strcmp(list[last].key, list[i].key)) {
			list[last].waves += list[i].waves;
			list[last].workgroups += list[i].workgroups;
		} else {
			list[++last] = list[i];
		}
	*ret_n = n ? last + 1 : 0;
	return list;
}

static uint32_t clamp(uint64_t v)
{
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/* Whether both representatives are there with the same lanes, as far as they tell. */
static bool same_lane(const struct rpc_group *g, const struct rpc_group *h)
{
	return g->has_lane == h->has_lane && g->lane == h->lane;
}

/*
 * Whether the representatives of two groups are the same wave, as far as its work tells, at another
 * pc.  Other lanes of the same wave may be anywhere.
 */
static bool example_moved(const struct rpc_group *g, const struct rpc_group *h)
{
	const struct rpc_wave_ref *r = &g->representative, *q = &h->representative;

	if (!same_lane(g, h) || !r->has_dispatch || !q->has_dispatch || !r->has_wave_in_group ||
	    !q->has_wave_in_group || r->n_workgroup != 3 || q->n_workgroup != 3)
		return false;
	return g->pc != h->pc && r->queue_id == q->queue_id && r->dispatch == q->dispatch &&
	       r->wave_in_group == q->wave_in_group &&
	       memcmp(r->workgroup, q->workgroup, 3 * sizeof(*r->workgroup)) == 0;
}

/*
 * Whether other lanes are there.  Documents of older agents count all lanes of a wave at one place,
 * so that lanes are compared only where both tell of parts, or neither does.
 */
static bool lanes_differ(const struct rpc_group *g, const struct rpc_group *h)
{
	if (g->has_parts != h->has_parts)
		return false;
	return g->lanes_min != h->lanes_min || g->lanes_median != h->lanes_median ||
	       g->lanes_max != h->lanes_max;
}

/* Whether anything about a group has changed that its key does not say. */
static bool numbers_differ(const struct entry *before, const struct entry *after)
{
	const struct rpc_group *g = before->group, *h = after->group;

	return before->waves != after->waves || before->workgroups != after->workgroups ||
	       lanes_differ(g, h) || g->pcs != h->pcs || example_moved(g, h);
}

/* Describe a change; NULL stands for a snapshot that lacks the group. */
static struct rpc_group_change change_of(const struct entry *before, const struct entry *after)
{
	return (struct rpc_group_change){
		.change = !before			  ? RPC_CHANGE_ADDED
			  : !after			  ? RPC_CHANGE_REMOVED
			  : numbers_differ(before, after) ? RPC_CHANGE_CHANGED
							  : RPC_CHANGE_SAME,
		.waves_before = before ? clamp(before->waves) : 0,
		.waves_after = after ? clamp(after->waves) : 0,
		.group = *(after ? after->group : before->group),
	};
}

/* How many waves came or went. */
static uint32_t distance(const struct rpc_group_change *c)
{
	return c->waves_before > c->waves_after ? c->waves_before - c->waves_after
						: c->waves_after - c->waves_before;
}

/*
 * Orders changes: faults first, then what changed most, then the largest; the rest only makes the
 * order stable.
 */
static int compare_changes(const void *x, const void *y)
{
	const struct rpc_group_change *c = x, *d = y;
	bool fault = stop_reason_is_faulting(&c->group);

	if (fault != stop_reason_is_faulting(&d->group))
		return fault ? -1 : 1;
	if (distance(c) != distance(d))
		return distance(c) > distance(d) ? -1 : 1;
	if (c->waves_after != d->waves_after)
		return c->waves_after > d->waves_after ? -1 : 1;
	if (c->group.pc != d->group.pc)
		return c->group.pc < d->group.pc ? -1 : 1;
	if (c->group.gpu_id != d->group.gpu_id)
		return c->group.gpu_id < d->group.gpu_id ? -1 : 1;
	return c->group.state < d->group.state ? -1 : c->group.state > d->group.state;
}

static int pair_groups(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *before,
		       const struct rpc_gpu_snapshot_result *after, struct rpc_comparison *ret)
{
	struct rpc_group_change *list =
		rpc_arena_array(a, before->n_groups + after->n_groups, sizeof(*list));
	size_t n_b = 0, n_a = 0, i = 0, j = 0, n = 0;
	struct entry *b = index_groups(a, before->groups, before->n_groups, &n_b);
	struct entry *e = index_groups(a, after->groups, after->n_groups, &n_a);

	if (!list || !b || !e)
		return rpc_arena_error(a);
	/* Both lists are sorted by key: they are merged. */
	while (i < n_b || j < n_a) {
		int order = i == n_b ? 1 : j == n_a ? -1 : strcmp(b[i].key, e[j].key);

		list[n++] = change_of(order <= 0 ? &b[i] : NULL, order >= 0 ? &e[j] : NULL);
		i += order <= 0;
		j += order >= 0;
	}
	qsort(list, n, sizeof(*list), compare_changes);
	ret->groups = list;
	ret->n_groups = n;
	return 0;
}

/* ------------------------------------------------------------------ the document ------------- */

static struct rpc_compared compared(const struct rpc_gpu_snapshot_result *s)
{
	return (struct rpc_compared){ .time_us = s->time_us,
				      .wave_count = s->wave_count,
				      .stopped_us = s->stopped_us,
				      .complete = s->complete };
}

/* What either snapshot could not have, each with the name of the snapshot. */
static int join_missing(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *before,
			const struct rpc_gpu_snapshot_result *after, struct rpc_comparison *ret)
{
	const char **list =
		rpc_arena_array(a, before->n_missing + after->n_missing, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; i < before->n_missing; i++)
		if (list)
			list[n++] = rpc_arena_printf(a, "before: %s", before->missing[i]);
	for (size_t i = 0; i < after->n_missing; i++)
		if (list)
			list[n++] = rpc_arena_printf(a, "after: %s", after->missing[i]);
	ret->missing = list;
	ret->n_missing = n;
	return rpc_arena_error(a);
}

/* Does a queue of the group say how many of its waves have faulted? */
static bool is_counted(const struct rpc_gpu_snapshot_result *s, const struct rpc_group *g)
{
	for (size_t i = 0; i < s->n_queues; i++)
		for (size_t k = 0; k < g->n_queues; k++)
			if (s->queues[i].has_faulting_waves && s->queues[i].gpu_id == g->gpu_id &&
			    s->queues[i].queue_id == g->queues[k])
				return true;
	return false;
}

/* A wave whose lanes have faulted at several places is in several groups; its queue counts it once. */
static uint64_t faulting_waves(const struct rpc_gpu_snapshot_result *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->n_queues; i++)
		n += s->queues[i].has_faulting_waves ? s->queues[i].faulting_waves : 0;
	for (size_t i = 0; i < s->n_groups; i++)
		if (stop_reason_is_faulting(&s->groups[i]) && !is_counted(s, &s->groups[i]))
			n += s->groups[i].waves;
	return n;
}

int compare_snapshots(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *before,
		      const struct rpc_gpu_snapshot_result *after, bool any_progress,
		      struct rpc_comparison *ret)
{
	const struct rpc_queue **earlier = rpc_arena_array(a, after->n_queues, sizeof(*earlier));
	int r = earlier ? 0 : rpc_arena_error(a);

	*ret = (struct rpc_comparison){
		.schema = DOCUMENT_COMPARISON,
		.source = after->source,
		.process = after->process,
		.before = compared(before),
		.after = compared(after),
		.interval_us = after->time_us > before->time_us ? after->time_us - before->time_us
								: 0,
		.faulting_waves = clamp(faulting_waves(after)),
		.complete = before->complete && after->complete,
	};
	if (r == 0)
		r = pair_queues(a, before, after, earlier, ret);
	if (r == 0)
		r = pair_groups(a, before, after, ret);
	if (r == 0)
		r = join_missing(a, before, after, ret);
	if (r == 0)
		r = host_compare(a, before, after, ret);
	if (r < 0)
		return r;
	compare_judge(a, before, after, earlier, any_progress, ret);
	return rpc_arena_error(a);
}
