/* SPDX-License-Identifier: MIT */
/*
 * One wave in full.  Its bytes are copied while its queue stands still, and decoded to registers
 * when the queue runs again.
 */
#include <errno.h>
#include <stdlib.h>

#include "agentd/worker/kfd/registers.h"
#include "agentd/worker/snapshot/registers.h"
#include "base/cleanup.h"

/* ------------------------------------------------------------------ which wave --------------- */

static bool is_that(const struct rpc_wave_name *n, const struct save_area *a,
		    const struct kfdtrap_wave_layout *layout, const struct kfdtrap_wave_state *s)
{
	struct wave w = {
		.queue_id = a->capture->queue->queue_id,
		.unit = a->xcc,
		.index = layout->index,
		.workgroup = { s->workgroup[0], s->workgroup[1], s->workgroup[2] },
		.wave_in_group = s->wave_in_group,
		.has_workgroup = s->valid & KFDTRAP_WAVE_HAS_WORKGROUP_X,
		.has_wave_in_group = s->valid & KFDTRAP_WAVE_HAS_WAVE_IN_GROUP,
	};

	w.has_dispatch = n->has_dispatch && saved_wave_dispatch(a->capture, s, &w.dispatch);
	return wave_is_named(&w, n);
}

/* @return whether the wave is in this area; @p r then says where. */
static bool find_in(const struct wave_capture *w, const struct save_area *a,
		    const struct rpc_wave_name *n, struct saved_wave *r)
{
	struct wave_cursor c;

	wave_cursor_init(&c, w, a);
	while (wave_cursor_next(&c))
		if (c.copied && is_that(n, a, &c.layout, &c.state)) {
			r->area = a;
			r->layout = c.layout;
			r->state = c.state;
			return true;
		}
	return false;
}

bool one_wave_find(const struct wave_capture *w, struct one_wave *one)
{
	const struct rpc_wave_name *n = one->name;

	for (size_t i = 0; i < w->n_areas; i++) {
		const struct save_area *a = &w->areas[i];

		if (a->state == SAVE_AREA_READ && (wave_name_lasts(n) || a->xcc == n->unit) &&
		    find_in(w, a, n, &one->record))
			return true;
	}
	return false;
}

static void copy_one(struct wave_capture *w, uint32_t round)
{
	struct one_wave *one = w->ctx;
	struct saved_wave *record = &one->record;

	(void)round;
	if (!record->area && one_wave_find(w, one))
		saved_waves_copy(w, &record, 1);
}

/* ------------------------------------------------------------------ what went wrong ---------- */

int one_wave_is_late(const struct wave_capture *w, struct agent_err *err)
{
	int r = agent_err_set(err, RPC_ERROR_TIMEOUT, ETIME, NULL,
			      "allow a longer stop, or suspend the queue first",
			      "the stop budget of %u ms was used up", w->from->max_stop_ms);

	agent_err_set_resumed(err, true);
	return r;
}

static uint32_t count_waves(const struct wave_capture *w, const struct save_area *a)
{
	struct kfdtrap_wave_layout layout;
	struct kfdtrap_wave_iter iter;

	if (a->state != SAVE_AREA_READ)
		return 0;
	wave_capture_walk(w, a, &iter);
	while (kfdtrap_wave_next(&iter, &layout))
		;
	return iter.n_waves;
}

static int no_such_wave(const struct wave_capture *w, const struct rpc_wave_name *n,
			struct agent_err *err)
{
	static const char op[] = "find the wave";
	static const char hint[] =
		"positions change whenever the queue ran: take one from a new snapshot, "
		"or suspend the queue first";

	if (wave_name_lasts(n))
		return agent_err_set(err, RPC_ERROR_NO_SUCH_WAVE, ENOENT, op, NULL,
				     "queue %u: wave %u of workgroup %u,%u,%u of dispatch %llu is not there (any more)",
				     n->queue_id, n->wave_in_group, n->workgroup[0],
				     n->workgroup[1], n->workgroup[2],
				     (unsigned long long)n->dispatch);
	for (size_t i = 0; i < w->n_areas; i++) {
		uint32_t n_waves = count_waves(w, &w->areas[i]);

		if (w->areas[i].xcc != n->unit)
			continue;
		if (n_waves <= n->index)
			return agent_err_set(err, RPC_ERROR_NO_SUCH_WAVE, ENOENT, op, hint,
					     "queue %u, die %u: there is no wave %u, only %u waves",
					     n->queue_id, n->unit, n->index, n_waves);
		return agent_err_set(err, RPC_ERROR_NO_SUCH_WAVE, ENOENT, op, hint,
				     "queue %u, die %u: wave %u is another one now", n->queue_id,
				     n->unit, n->index);
	}
	return agent_err_set(err, RPC_ERROR_NO_SUCH_WAVE, ENOENT, op, NULL,
			     "queue %u has no die %u", n->queue_id, n->unit);
}

static int judge(const struct wave_capture *w, const struct target_waves *waves,
		 const struct one_wave *one, struct agent_err *err)
{
	if (w->late && !one->record.area)
		return one_wave_is_late(w, err);
	if (!one->record.area && waves->n_missing)
		return agent_err_set(err, RPC_ERROR_FAILED, EIO, "find the wave", NULL, "%s",
				     waves->missing[0]);
	return one->record.area ? 0 : no_such_wave(w, one->name, err);
}

int one_wave_take(struct wave_capture *w, struct one_wave *one, struct target_waves *waves,
		  struct agent_err *err)
{
	int r = wave_name_check(one->name, "params.wave", err);

	if (r == 0)
		r = kfd_need_runtime(w->k, "wave.registers", err);
	if (r == 0)
		r = wave_capture_run(w, waves, err);
	return r < 0 ? r : judge(w, waves, one, err);
}

/* ------------------------------------------------------------------ registers ---------------- */

static int answer(const struct wave_capture *w, const struct saved_wave *r,
		  const struct target_waves *waves, const struct target_registers_wanted *what,
		  struct rpc_wave_registers *ret, struct agent_err *err)
{
	const struct registers_builder b = { w->arena, what, ret };
	const struct wave *wave = saved_wave_wave(waves, r);

	/* What was begun in time may have been given up. */
	if (!r->tried || (w->late && !r->got))
		return one_wave_is_late(w, err);
	if (!wave || !r->got)
		return agent_err_set(err, RPC_ERROR_FAILED, EIO, "read the save area", NULL,
				     "queue %u, die %u: wave %u is %s",
				     r->area->capture->queue->queue_id, r->area->xcc,
				     r->layout.index, wave ? "not readable" : "corrupt");
	saved_wave_fill(w->arena, r, what, ret);
	return registers_set_wave(&b, wave) < 0 || rpc_arena_error(w->arena) ? agent_err_no_memory(err, NULL) : 0;
}

int kfd_registers(struct target *t, const struct target_waves_from *from,
		  const struct target_registers_wanted *what, struct rpc_arena *a,
		  struct rpc_wave_registers *ret, uint64_t *ret_stopped_us, struct agent_err *err)
{
	auto_free uint8_t *bytes = malloc(SAVED_WAVE_MAX);
	struct one_wave one = { .name = what->wave, .record.bytes = bytes };
	struct wave_capture w = {
		.k = kfd_of(t), .arena = a, .from = from, .more = copy_one, .ctx = &one
	};
	struct target_waves waves = { 0 };
	int r = bytes ? one_wave_take(&w, &one, &waves, err) : agent_err_no_memory(err, NULL);

	*ret_stopped_us = waves.stopped_us;
	*ret = (struct rpc_wave_registers){ 0 };
	if (r == 0)
		r = answer(&w, &one.record, &waves, what, ret, err);
	wave_capture_deinit(&w);
	return r;
}
