/* SPDX-License-Identifier: MIT */
/* Requests that no other adapter has: what the console shows, as JSON. */
#include <errno.h>

#include "dap/adapter.h"

#define WAVES_MAX 4096u

int dap_see_waves(struct dap *d, struct agent_err *err)
{
	return d->snap->doc.has_waves ? 0 : dap_session_look(d, true, err);
}

bool dap_is_of(const struct dap *d, const struct rpc_wave *w, uint32_t thread)
{
	return w->has_group && w->group < d->snap->doc.n_groups &&
	       d->snap->thread_of[w->group] == thread;
}

int dap_gpu_groups(struct dap *d, const struct dap_request *q, struct out *body,
		   struct agent_err *err)
{
	out_str(body, "{\"groups\":[");
	for (size_t i = 0; i < d->snap->n_threads; i++) {
		out_str(body, i ? ",{" : "{");
		dap_put_u64(body, "threadId", i + 1);
		dap_put_str(body, "name", dap_thread_name(&d->arena, d, i));
		out_str(body, ",\"group\":");
		rpc_group_encode(body, d->snap->threads[i].group);
		out_char(body, '}');
	}
	out_str(body, "]");
	dap_put_u64(body, "total", d->snap->n_all);
	dap_put_u64(body, "waves", d->snap->doc.wave_count);
	dap_put_bool(body, "paused", dap_is_still(d));
	out_char(body, '}');
	return 0;
}

/* `{threadId, start, count}`: waves of one group. */
int dap_gpu_waves(struct dap *d, const struct dap_request *q, struct out *body,
		  struct agent_err *err)
{
	const struct dap_thread *t = dap_thread_arg(d, q->args, err);
	int64_t start = 0, count = WAVES_MAX;
	size_t seen = 0, written = 0;
	uint32_t thread;
	int r;

	if (!t)
		return -EINVAL;
	thread = (uint32_t)(t - d->snap->threads);
	(void)dap_json_i64(dap_json_get(q->args, "start"), &start);
	(void)dap_json_i64(dap_json_get(q->args, "count"), &count);
	if (start < 0 || count < 0 || count > WAVES_MAX)
		return dap_invalid(err, "start, count: at most %u waves at a time", WAVES_MAX);
	r = dap_see_waves(d, err);
	if (r < 0)
		return r;
	out_str(body, "{\"waves\":[");
	for (size_t i = 0; i < d->snap->doc.n_waves; i++) {
		if (!dap_is_of(d, &d->snap->doc.waves[i], thread))
			continue;
		if (seen++ < (uint64_t)start || written >= (uint64_t)count)
			continue;
		out_str(body, written++ ? "," : "");
		rpc_wave_encode(body, &d->snap->doc.waves[i]);
	}
	out_str(body, "]");
	dap_put_u64(body, "total", seen);
	out_char(body, '}');
	return 0;
}

/* `{threadId, wave: {queue_id, unit, index}}`: show this wave for the group. */
int dap_gpu_focus(struct dap *d, const struct dap_request *q, struct out *body,
		  struct agent_err *err)
{
	struct dap_thread *t = dap_thread_arg(d, q->args, err);
	struct dap_json v = dap_json_get(q->args, "wave");
	int64_t queue, unit = 0, index;
	uint32_t thread;
	int r;

	if (!t)
		return -EINVAL;
	thread = (uint32_t)(t - d->snap->threads);
	if (!dap_json_i64(dap_json_get(v, "queue_id"), &queue) ||
	    !dap_json_i64(dap_json_get(v, "index"), &index))
		return dap_invalid(err, "wave: needs queue_id and index");
	(void)dap_json_i64(dap_json_get(v, "unit"), &unit);
	r = dap_see_waves(d, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < d->snap->doc.n_waves; i++) {
		const struct rpc_wave *w = &d->snap->doc.waves[i];

		if (w->ref.queue_id != queue || w->ref.unit != unit || w->ref.index != index ||
		    !dap_is_of(d, w, thread) || thread >= d->snap->n_threads)
			continue;
		d->snap->threads[thread].wave = dap_wave_of(&w->ref);
		d->snap->threads[thread].pc = w->pc;
		d->snap->threads[thread].place = &d->snap->doc.groups[w->group];
		d->focus = thread;
		dap_registers_forget(d);
		dap_invalidated(d);
		return 0;
	}
	return agent_err_set(err, RPC_ERROR_NO_SUCH_WAVE, ENOENT, NULL, NULL,
			     "wave: the group of this thread has no such wave");
}

/* From another client of the same user, or as an administrator. */
int dap_gpu_take_control(struct dap *d, const struct dap_request *q, struct out *body,
			 struct agent_err *err)
{
	int r = dap_session_take_control(d, err);

	if (r < 0)
		return r;
	out_char(body, '{');
	dap_put_bool(body, "control", d->control);
	out_char(body, '}');
	return 0;
}
