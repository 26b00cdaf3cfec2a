/* SPDX-License-Identifier: MIT */
/*
 * What every wave is doing: stop the queues, copy as little as possible, let them run, decode.
 *
 * Between the stop and the resume there is nothing but copying: no text, no arena, no decoding
 * beyond the walk that finds the records.  Every size comes from memory that the target can write.
 */
#include <errno.h>
#include <stdlib.h>

#include "agentd/worker/target_kfd_waves.h"
#include "base/clock.h"

static void work_deinit(struct work *w)
{
	free(w->looks);
	free(w->areas);
	free(w->pieces);
	free(w->stacks);
	free(w->hot);
	free(w->copied);
}

static int no_memory(struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_INTERNAL, ENOMEM, "gpu.snapshot", NULL, "out of memory");
}

void work_add_missing(struct work *w, const char *text)
{
	if (text && w->n_missing < w->missing_capacity)
		w->missing[w->n_missing++] = text;
}

/* ------------------------------------------------------------------ what is there ------------ */

static bool has_waves(const struct target_queue *q)
{
	return q->type == RPC_QUEUE_TYPE_COMPUTE || q->type == RPC_QUEUE_TYPE_COMPUTE_AQL;
}

static const struct target_device *device_of(const struct target_waves_from *from, uint32_t gpu_id)
{
	for (size_t i = 0; i < from->n_devices; i++)
		if (from->devices[i].gpu_id == gpu_id)
			return &from->devices[i];
	return NULL;
}

static void add_look(struct work *w, const struct target_waves_from *from,
		     const struct target_queue *q)
{
	const struct target_device *d = device_of(from, q->gpu_id);
	const struct kfdtrap_wave_arch *arch =
		d ? kfdtrap_wave_arch_find(d->gfx_target_version) : NULL;
	struct look *look = &w->looks[w->n_looks];

	if (!arch) {
		work_add_missing(w, rpc_arena_printf(w->arena, "queue %u: the layout of saved waves of %s is unknown",
						q->queue_id, d ? d->gfx : "its device"));
		return;
	}
	if (!q->save_area || q->save_area_bytes < KFDTRAP_WAVE_HEADER_SIZE) {
		work_add_missing(w, rpc_arena_printf(w->arena, "queue %u: it has no area to save waves in",
						q->queue_id));
		return;
	}
	*look = (struct look){ .queue = q, .device = d, .arch = arch };
	if (q->suspended)
		look->state = kfd_is_off(w->k, q->queue_id) ? LOOK_OFF : LOOK_FAILED;
	w->n_looks++;
	for (uint32_t xcc = 0; xcc < device_dies(d); xcc++)
		w->areas[w->n_areas++] = (struct area){
			.look = look,
			.address = q->save_area + (uint64_t)xcc * q->save_area_bytes,
			.xcc = xcc,
		};
}

static int prepare(struct work *w, const struct target_waves_from *from)
{
	size_t n_areas = 0;

	for (size_t i = 0; i < from->n_queues; i++) {
		const struct target_device *d = device_of(from, from->queues[i].gpu_id);

		n_areas += d ? device_dies(d) : 0;
	}
	w->missing_capacity = n_areas * 2 + from->n_queues + 4;
	w->missing = rpc_arena_array(w->arena, w->missing_capacity, sizeof(*w->missing));
	w->looks = calloc(from->n_queues + 1, sizeof(*w->looks));
	w->areas = calloc(n_areas + 1, sizeof(*w->areas));
	w->pieces = calloc(MEMORY_PIECES_MAX, sizeof(*w->pieces));
	if (!w->missing || !w->looks || !w->areas || !w->pieces)
		return -ENOMEM;
	for (size_t i = 0; i < from->n_queues; i++)
		if (has_waves(&from->queues[i]))
			add_look(w, from, &from->queues[i]);
	return 0;
}

/* ------------------------------------------------------------------ stop, let go ------------- */

static int let_go(void *ctx, uint64_t arg, struct agent_err *err)
{
	static const char op[] = "KFD RESUME_QUEUES";
	struct target_kfd *k = ctx;
	size_t n = k->n_stopped;
	int r;

	(void)arg;
	k->n_stopped = 0;
	r = n ? kfdtrap_resume_queues(k->kt, k->stopped, n, NULL) : 0;
	if (r == -ESRCH)
		return kfd_hw_error(k, r, op, err);
	/* EINVAL, EPERM: session or runtime went off, and the kernel has resumed all. */
	if (r < 0 && !kfd_is_undone(r))
		return kfd_hw_error(k, r, op, err);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (k->stopped[i] & KFDTRAP_QUEUE_HW_FAILED)
			return agent_err_set(err, RPC_ERROR_FAILED, EIO, op,
					     "the GPU may hang: look at the kernel log",
					     "queue %u could not be resumed",
					     k->stopped[i] & ~KFDTRAP_QUEUE_VERDICT_MASK);
	return 0;
}

static enum look_state state_of(uint32_t id)
{
	if (id & KFDTRAP_QUEUE_HW_FAILED)
		return LOOK_FAILED;
	return id & KFDTRAP_QUEUE_GONE ? LOOK_SKIPPED : LOOK_OFF;
}

/* Keep of k->stopped those that need a resume; a failed preemption does (kfd.md 3.9). */
static void note_verdicts(struct work *w, struct look **asked)
{
	struct target_kfd *k = w->k;
	size_t n = k->n_stopped;

	k->n_stopped = 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t id = k->stopped[i];

		asked[i]->state = state_of(id);
		if (asked[i]->state != LOOK_SKIPPED)
			k->stopped[k->n_stopped++] = id & ~KFDTRAP_QUEUE_VERDICT_MASK;
	}
}

static int stop(struct work *w, struct agent_err *err)
{
	struct look *asked[KFDTRAP_QUEUES_MAX];
	struct target_kfd *k = w->k;
	int r;

	k->n_stopped = 0;
	for (size_t i = 0; i < w->n_looks && k->n_stopped < KFDTRAP_QUEUES_MAX; i++)
		if (w->looks[i].state == LOOK_RUNNING) {
			asked[k->n_stopped] = &w->looks[i];
			k->stopped[k->n_stopped++] = w->looks[i].queue->queue_id;
		}
	if (!k->n_stopped)
		return 0;
	/* On failure all stay listed: resuming a queue that runs does nothing. */
	r = kfdtrap_suspend_queues(k->kt, 0, k->stopped, k->n_stopped, 0, NULL);
	if (r < 0) {
		for (size_t i = 0; i < k->n_stopped; i++)
			k->stopped[i] = asked[i]->queue->queue_id;
		return kfd_hw_error(k, r, "KFD SUSPEND_QUEUES", err);
	}
	note_verdicts(w, asked);
	return 0;
}

/* ------------------------------------------------------------------ all of it ---------------- */

/* @return 0 or -ENOMEM of the copy; negative with @p err when the queues do not run again. */
static int stop_and_copy(struct work *w, struct target_waves *ret, bool *ret_stopped,
			 struct agent_err *stop_err, struct agent_err *err)
{
	struct target *t = &w->k->t;
	uint64_t begin_ns;
	uint32_t ticket;
	int r, copied = 0, resumed;

	r = undo_push(&t->undo, "resume queues of a snapshot", let_go, w->k, 0, &ticket, err);
	if (r < 0)
		return r;
	begin_ns = clock_now_ns();
	w->deadline_ns = begin_ns + w->max_stop_ms * UINT64_C(1000000);
	r = stop(w, stop_err);
	*ret_stopped = r == 0;
	if (r == 0)
		copied = work_copy(w);
	r = w->k->n_stopped > 0;
	resumed = undo_run_one(&t->undo, ticket, err);
	if (r)
		ret->stopped_us = (clock_now_ns() - begin_ns) / 1000;
	if (resumed < 0) {
		/* Ending the session is the stronger way to resume: the kernel does it itself. */
		target_end(t, RPC_END_REASON_LOST, "KFD RESUME_QUEUES", NULL);
		return resumed;
	}
	return copied < 0 ? no_memory(err) : 0;
}

static int look_at_waves(struct work *w, struct target_waves *ret, struct agent_err *err)
{
	struct agent_err why = { 0 };
	bool stopped = false;
	int r;

	if (!w->n_looks)
		return 0;
	r = kfd_need_runtime(w->k, "gpu.snapshot", &why);
	if (r == 0) {
		r = stop_and_copy(w, ret, &stopped, &why, err);
		if (r < 0)
			return r;
	}
	if (w->k->t.ended)
		return target_end(&w->k->t, w->k->t.end_reason, "gpu.snapshot", err);
	if (!stopped) {
		work_add_missing(w, rpc_arena_printf(w->arena, "waves: %s", why.message));
		return 0;
	}
	return work_decode(w, ret) < 0 ? no_memory(err) : 0;
}

int kfd_waves(struct target *t, const struct target_waves_from *from, struct rpc_arena *a,
	      struct target_waves *ret, struct agent_err *err)
{
	struct work w = { .k = kfd_of(t), .arena = a, .max_stop_ms = from->max_stop_ms };
	int r;

	*ret = (struct target_waves){ 0 };
	r = prepare(&w, from) < 0 ? no_memory(err) : look_at_waves(&w, ret, err);
	ret->missing = w.missing;
	ret->n_missing = w.n_missing;
	ret->budget_exceeded = w.late;
	work_deinit(&w);
	return r;
}
