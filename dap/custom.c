/* SPDX-License-Identifier: MIT */
/*
 * Requests that no other adapter has: what the console shows, as JSON.  Their names begin with
 * `gpuAgent/`.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "dap/values/values.h"
#include "protocol/stop_reason.h"

/* Most waves in one answer. */
#define WAVES_MAX 4096u

/* End a list, and append the devices of the process and its queues; their list stays open. */
static void put_devices(struct out *o, const struct rpc_gpu_snapshot_result *doc)
{
	out_json_fmt(o, "],'devices':[");
	for (size_t i = 0; i < doc->n_devices; i++) {
		out_str(o, i ? "," : "");
		rpc_device_encode(o, &doc->devices[i]);
	}
	out_json_fmt(o, "],'queues':[");
	for (size_t i = 0; i < doc->n_queues; i++) {
		out_str(o, i ? "," : "");
		rpc_queue_encode(o, &doc->queues[i]);
	}
}

int dap_gpu_groups(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	out_json_fmt(&ret->body, "{'groups':[");
	for (size_t i = 0; i < d->snap->n_threads; i++) {
		out_json_fmt(&ret->body, ",{'threadId':%zu,'name':%s,'faulting':%i,'group':", i + 1,
			     dap_thread_name(&d->arena, d, i),
			     stop_reason_is_faulting(d->snap->threads[i].group));
		rpc_group_encode(&ret->body, d->snap->threads[i].group);
		out_char(&ret->body, '}');
	}
	put_devices(&ret->body, &d->snap->doc);
	out_json_fmt(&ret->body, "],'total':%zu,'waves':%u,'paused':%i,'control':%i}", d->snap->n_all,
		     d->snap->doc.wave_count, dap_is_still(d), d->control);
	return 0;
}

/* The arguments are `{threadId, start, count}`. */
int dap_gpu_waves(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	const struct dap_thread *t = dap_thread_arg(d, q->args, &ret->err);
	struct rpc_wave_select which = { .has_first = true, .has_max = true };
	int64_t start = 0, count = WAVES_MAX;
	struct dap_waves page;
	int r;

	if (!t)
		return -EINVAL;
	(void)dap_json_i64(dap_json_get(q->args, "start"), &start);
	(void)dap_json_i64(dap_json_get(q->args, "count"), &count);
	if (start < 0 || start > UINT32_MAX || count < 0 || count > WAVES_MAX)
		return dap_invalid(&ret->err, "start, count: at most %u waves at a time", WAVES_MAX);
	which.first = (uint32_t)start;
	which.max = (uint32_t)count;
	r = dap_waves_get(d, (uint32_t)(t - d->snap->threads), &which, &page, &ret->err);
	if (r < 0)
		return r;
	out_json_fmt(&ret->body, "{'waves':[");
	for (size_t i = 0; i < page.n; i++) {
		out_str(&ret->body, i ? "," : "");
		rpc_wave_encode(&ret->body, &page.waves[i]);
	}
	out_json_fmt(&ret->body, "],'total':%" PRIu64 "}", page.total);
	dap_waves_free(&page);
	return 0;
}

/* Read a number of 32 bits. */
static bool u32_of(struct dap_json v, uint32_t *ret)
{
	uint64_t n;

	if (!dap_json_u64(v, &n) || n > UINT32_MAX)
		return false;
	*ret = (uint32_t)n;
	return true;
}

/*
 * Read a wave as gpuAgent/waves names it.  Dispatch and workgroup find the wave also when it is
 * saved elsewhere by now.
 */
int dap_wave_arg(struct dap_json v, uint32_t workgroup[3], struct rpc_wave_name *ret,
		 struct agent_err *err)
{
	struct dap_json list = dap_json_get(v, "workgroup");

	*ret = (struct rpc_wave_name){ .has_unit = true, .has_index = true, .workgroup = workgroup };
	if (!u32_of(dap_json_get(v, "queue_id"), &ret->queue_id) ||
	    !u32_of(dap_json_get(v, "index"), &ret->index))
		return dap_invalid(err, "wave: needs queue_id and index");
	(void)u32_of(dap_json_get(v, "unit"), &ret->unit);
	ret->has_dispatch = dap_json_u64(dap_json_get(v, "dispatch"), &ret->dispatch);
	while (ret->n_workgroup < 3 &&
	       u32_of(dap_json_item(list, ret->n_workgroup), &workgroup[ret->n_workgroup]))
		ret->n_workgroup++;
	ret->has_workgroup = ret->n_workgroup != 0;
	ret->has_wave_in_group = u32_of(dap_json_get(v, "wave_in_group"), &ret->wave_in_group);
	return 0;
}

/* Where a wave is, or a part of its lanes. */
struct where {
	uint32_t group, lane;
	uint64_t pc;
};

/* Find the part of a wave that a thread stands for; all of it if its lanes are together. */
static bool find_part(const struct dap_snapshot *s, const struct rpc_wave *w, uint32_t thread,
		      struct where *ret)
{
	*ret = (struct where){ .group = w->group, .lane = DAP_LANE_ANY, .pc = w->pc };
	if (w->has_group && w->group < s->doc.n_groups && s->thread_of[w->group] == thread)
		return true;
	for (size_t i = 0; i < w->n_parts; i++) {
		const struct rpc_wave_part *part = &w->parts[i];

		if (!part->has_group || part->group >= s->doc.n_groups || !part->exec ||
		    s->thread_of[part->group] != thread)
			continue;
		*ret = (struct where){ .group = part->group, .pc = part->pc,
				       .lane = (uint32_t)__builtin_ctzll(part->exec) };
		return true;
	}
	return false;
}

/*
 * Show the first wave of a page for a thread, if it is one of the thread's.
 * @return 0, -ENOENT (the thread has no such wave), -ENOMEM.
 */
static int show_wave(struct dap *d, uint32_t thread, const struct dap_waves *page)
{
	const struct rpc_wave *w = page->waves;
	struct dap_snapshot *s = d->snap;
	struct where where;
	uint32_t *workgroup;

	if (!page->n || thread >= s->n_threads || !find_part(s, w, thread, &where))
		return -ENOENT;
	/* The page is freed, but the name stays: it moves to the snapshot's arena. */
	workgroup = rpc_arena_array(&s->arena, w->ref.n_workgroup, sizeof(*workgroup));
	if (!workgroup)
		return -ENOMEM;
	if (w->ref.n_workgroup)
		memcpy(workgroup, w->ref.workgroup, w->ref.n_workgroup * sizeof(*workgroup));
	s->threads[thread].wave = dap_wave_of(&w->ref);
	s->threads[thread].wave.workgroup = workgroup;
	dap_thread_show(&s->threads[thread], &s->doc.groups[where.group], where.pc, where.lane);
	d->focus = thread;
	return 0;
}

/* Show the wave that is named. */
static int focus_wave(struct dap *d, uint32_t thread, struct dap_json wave, struct agent_err *err)
{
	struct rpc_wave_select which = { .has_wave = true };
	uint32_t workgroup[3];
	struct dap_waves page;
	int r = dap_wave_arg(wave, workgroup, &which.wave, err);

	if (r == 0)
		r = dap_waves_get(d, thread, &which, &page, err);
	if (r < 0)
		return r;
	r = show_wave(d, thread, &page);
	dap_waves_free(&page);
	if (r == -ENOENT)
		return agent_err_set(err, RPC_ERROR_NO_SUCH_WAVE, ENOENT, NULL, NULL,
				     "wave: the group of this thread has no such wave");
	if (r < 0)
		return agent_err_set(err, RPC_ERROR_INTERNAL, -r, NULL, NULL, "out of memory");
	dap_registers_forget(d);
	return 0;
}

/*
 * The arguments are `{threadId, wave: {queue_id, unit, index, ...}, lane, reveal}`: a wave, a lane, or
 * both.  With `reveal` the editor goes to the thread.
 */
int dap_gpu_focus(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	struct dap_thread *t = dap_thread_arg(d, q->args, &ret->err);
	struct dap_json wave = dap_json_get(q->args, "wave");
	uint32_t thread, lane = 0;
	bool reveal = dap_json_is_true(dap_json_get(q->args, "reveal")), has_lane;
	int r = 0;

	if (!t || dap_lane_arg(q->args, &has_lane, &lane, &ret->err) < 0)
		return -EINVAL;
	thread = (uint32_t)(t - d->snap->threads);
	if (dap_json_has(wave) || (!has_lane && !reveal))
		r = focus_wave(d, thread, wave, &ret->err);
	/* While the GPU runs, the threads are those of another snapshot now. */
	if (r == 0 && has_lane)
		r = dap_lane_choose(d, &d->snap->threads[thread], lane, &ret->err);
	if (r < 0)
		return r;
	reveal = reveal && dap_session_reveal(d, thread);
	if (!reveal)
		dap_invalidated(d);
	out_json_fmt(&ret->body, "{'revealed':%i}", reveal);
	return 0;
}

/* The agent gives control of another client of the same user, or to an administrator. */
int dap_gpu_take_control(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	int r = dap_session_take_control(d, &ret->err);

	if (r < 0)
		return r;
	out_json_fmt(&ret->body, "{'control':%i}", d->control);
	return 0;
}
