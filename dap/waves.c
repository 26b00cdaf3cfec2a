/* SPDX-License-Identifier: MIT */
/*
 * Waves of a thread, a page at a time: a process has more of them than anybody wants to see at once.
 * What stands still can be looked at again without any change to what the editor shows.  What runs
 * cannot: a thread may be another group by then, and the page is of what the thread is now.
 */
#include <errno.h>
#include <string.h>

#include "dap/adapter.h"

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
	ret->waves = s->doc.waves;
	ret->n = s->doc.n_waves;
	for (size_t i = 0; i < asked->n_groups; i++)
		ret->total += s->doc.groups[asked->groups[i]].waves;
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
