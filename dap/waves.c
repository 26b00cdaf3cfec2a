/* SPDX-License-Identifier: MIT */
/*
 * Waves of a thread, a page at a time: a process has more of them than anybody wants to see at once.
 * What stands still can be looked at again without any change to what the editor shows.  What runs
 * cannot: a thread may be another group by then, and the page is of what the thread is now.  A wave
 * counts once, although its lanes may be at several places of its kernel.
 */
#include <errno.h>
#include <string.h>

#include "dap/adapter.h"

/* Most waves that are listed to count those that are at several places of a kernel. */
#define APART_MAX 16384u

/* ------------------------------------------------------------------ pages -------------------- */

/* Positions of the groups that a thread stands for; NULL without memory. */
static uint32_t *groups_of(struct dap *d, uint32_t thread, size_t *ret_n)
{
	const struct dap_snapshot *s = d->snap;
	uint32_t *list = rpc_arena_array(&d->arena, s->doc.n_groups, sizeof(*list));

	*ret_n = 0;
	for (size_t i = 0; list && i < s->doc.n_groups; i++)
		if (s->thread_of[i] == thread)
			list[(*ret_n)++] = (uint32_t)i;
	return list;
}

static int find_groups(struct dap *d, uint32_t thread, struct rpc_wave_select *s,
		       struct agent_err *err)
{
	s->groups = groups_of(d, thread, &s->n_groups);
	if (!s->groups)
		return agent_err_no_memory(err, NULL);
	if (!s->n_groups)
		return agent_err_set(err, RPC_ERROR_NO_SUCH_WAVE, ENOENT, NULL, NULL,
				     "this thread has no waves any more");
	return 0;
}

static void take(const struct dap_snapshot *s, const struct rpc_wave_select *asked,
		 struct dap_waves *ret)
{
	uint32_t thread = s->thread_of[asked->groups[0]];

	ret->waves = s->doc.waves;
	ret->n = s->doc.n_waves;
	for (size_t i = 0; i < asked->n_groups; i++)
		ret->total += s->doc.groups[asked->groups[i]].waves;
	if (thread < s->n_threads)
		ret->total -= s->threads[thread].twice;
}

static bool is_same_group(const struct rpc_group *a, const struct rpc_group *b)
{
	return a->gpu_id == b->gpu_id && a->pc == b->pc && a->state == b->state &&
	       a->waves == b->waves;
}

/* Have the groups that were asked for stayed what they are shown as? */
static bool are_same(const struct dap_snapshot *a, const struct dap_snapshot *b,
		     const struct rpc_wave_select *asked)
{
	for (size_t i = 0; i < asked->n_groups; i++) {
		uint32_t g = asked->groups[i];

		if (g >= a->doc.n_groups || g >= b->doc.n_groups ||
		    !is_same_group(&a->doc.groups[g], &b->doc.groups[g]))
			return false;
	}
	return true;
}

/* @return 1 when it has them, 0 when the groups are others than those that are shown, or negative. */
static int look_beside(struct dap *d, const struct rpc_wave_select *s, struct dap_waves *ret,
		       struct agent_err *err)
{
	int r = dap_session_ask(d, s, &ret->beside, err);

	if (r < 0)
		return r;
	if (are_same(d->snap, ret->beside, s)) {
		take(ret->beside, s, ret);
		return 1;
	}
	dap_waves_free(ret);
	return 0;
}

/*
 * Although nothing moves, groups can be others: a pause by another client has ended, or the names of
 * places, for which the first look had no time, are known now.  Then those are shown from now on.
 */
static int get_beside(struct dap *d, uint32_t thread, struct rpc_wave_select *s,
		      struct dap_waves *ret, struct agent_err *err)
{
	int r = look_beside(d, s, ret, err);

	if (r == 0) {
		r = dap_session_snapshot(d, err);
		if (r == 0)
			dap_invalidated(d);
		if (r == 0)
			r = find_groups(d, thread, s, err);
		if (r == 0)
			r = look_beside(d, s, ret, err);
		if (r == 0)
			r = agent_err_set(err, RPC_ERROR_FAILED, ESTALE, NULL, "pause first",
					  "the waves move: each snapshot finds other groups of them");
	}
	return r < 0 ? r : 0;
}

int dap_waves_get(struct dap *d, uint32_t thread, const struct rpc_wave_select *which,
		  struct dap_waves *ret, struct agent_err *err)
{
	struct rpc_wave_select s = *which, now;
	int r = find_groups(d, thread, &s, err);

	*ret = (struct dap_waves){ 0 };
	if (r == 0 && (dap_is_still(d) || d->held))
		return get_beside(d, thread, &s, ret, err);
	for (int tries = 0; r == 0 && tries < 2; tries++) {
		r = dap_session_look(d, &s, err);
		now = s;
		if (r == 0)
			r = find_groups(d, thread, &now, err);
		if (r == 0 && now.n_groups == s.n_groups &&
		    !memcmp(now.groups, s.groups, s.n_groups * sizeof(*s.groups))) {
			take(d->snap, &s, ret);
			return 0;
		}
		s = now;
	}
	return r < 0 ? r : agent_err_set(err, RPC_ERROR_FAILED, ESTALE, NULL, "pause first",
					 "the waves move: each snapshot finds other groups of them");
}

void dap_waves_free(struct dap_waves *w)
{
	dap_snapshot_free(w->beside);
	*w = (struct dap_waves){ 0 };
}

/* ------------------------------------------------------------------ waves with parts --------- */

static uint32_t parts_of(const struct rpc_group *g)
{
	return !g->has_parts ? 0 : g->parts < g->waves ? g->parts : g->waves;
}

/* Whether a group with parts is one of several such of its thread. */
static bool is_apart(const struct dap_snapshot *s, size_t i)
{
	if (!parts_of(&s->doc.groups[i]) || s->thread_of[i] >= s->n_threads)
		return false;
	for (size_t k = 0; k < s->doc.n_groups; k++)
		if (k != i && s->thread_of[k] == s->thread_of[i] && parts_of(&s->doc.groups[k]))
			return true;
	return false;
}

bool dap_snapshot_apart(struct dap_snapshot *s, struct rpc_wave_select *ret)
{
	*ret = (struct rpc_wave_select){ .has_max = true, .max = APART_MAX };
	if (!s->doc.has_diverged_waves)
		return false;
	ret->groups = rpc_arena_array(&s->arena, s->doc.n_groups, sizeof(*ret->groups));
	for (size_t i = 0; ret->groups && i < s->doc.n_groups; i++)
		if (is_apart(s, i))
			ret->groups[ret->n_groups++] = (uint32_t)i;
	return ret->n_groups;
}

/* Whether the parts of a wave are in several groups; else it is counted as a whole. */
static bool is_split(const struct rpc_wave *w)
{
	for (size_t i = 1; i < w->n_parts; i++)
		if (w->parts[i].group != w->parts[0].group)
			return true;
	return false;
}

/* Whether a wave is in a group with a part of its lanes only. */
static bool has_part_in(const struct rpc_wave *w, uint32_t group)
{
	for (size_t k = 0; is_split(w) && k < w->n_parts; k++)
		if (w->parts[k].has_group && w->parts[k].group == group)
			return true;
	return false;
}

/* Whether a list has all waves with a part in these groups. */
static bool is_whole(const struct dap_snapshot *s, const struct rpc_wave_select *which,
		     const struct rpc_gpu_snapshot_result *listed)
{
	for (size_t g = 0; g < which->n_groups; g++) {
		uint32_t n = 0;

		for (size_t i = 0; i < listed->n_waves; i++)
			n += has_part_in(&listed->waves[i], which->groups[g]);
		if (n != parts_of(&s->doc.groups[which->groups[g]]))
			return false;
	}
	return true;
}

/* How many lanes of a wave are at places of a thread. */
static uint32_t lanes_at(const struct dap_snapshot *s, const struct rpc_wave *w, uint32_t thread)
{
	uint32_t lanes = 0;

	for (size_t k = 0; k < w->n_parts; k++)
		if (w->parts[k].has_group && w->parts[k].group < s->doc.n_groups &&
		    s->thread_of[w->parts[k].group] == thread)
			lanes += w->parts[k].lanes;
	return lanes;
}

/* Count the waves of a thread once each, with all of their lanes that are there. */
static void count_thread(struct dap_snapshot *s, uint32_t thread,
			 const struct rpc_gpu_snapshot_result *listed)
{
	uint32_t parts = 0, most = 0, n = 0, min = UINT32_MAX, max = 0;
	struct dap_thread *t = &s->threads[thread];

	for (size_t i = 0; i < s->doc.n_groups; i++) {
		const struct rpc_group *g = &s->doc.groups[i];
		uint32_t of = parts_of(g);

		if (s->thread_of[i] != thread)
			continue;
		parts += of;
		most = of > most ? of : most;
		/* What is said of the lanes of a group where all are parts is said of these. */
		min = of < g->waves && g->lanes_min < min ? g->lanes_min : min;
		max = of < g->waves && g->lanes_max > max ? g->lanes_max : max;
	}
	for (size_t i = 0; listed && i < listed->n_waves; i++) {
		const struct rpc_wave *w = &listed->waves[i];
		uint32_t lanes = is_split(w) ? lanes_at(s, w, thread) : 0;

		n += lanes != 0;
		min = lanes && lanes < min ? lanes : min;
		max = lanes > max ? lanes : max;
	}
	/* Without a list there are as many at least as one place has; a list may be of a moment later. */
	n = n < most ? most : n > parts ? parts : n;
	t->twice = parts - (listed ? n : most);
	t->group->waves -= t->twice;
	if (!listed)
		return;
	t->group->lanes_min = min;
	t->group->lanes_max = max;
}

void dap_snapshot_count(struct dap_snapshot *s, const struct rpc_wave_select *which,
			const struct rpc_gpu_snapshot_result *listed)
{
	if (listed && !is_whole(s, which, listed))
		listed = NULL;
	for (size_t g = 0; g < which->n_groups; g++) {
		uint32_t thread = s->thread_of[which->groups[g]];
		bool done = false;

		for (size_t k = 0; k < g; k++)
			done |= s->thread_of[which->groups[k]] == thread;
		if (!done)
			count_thread(s, thread, listed);
	}
}
