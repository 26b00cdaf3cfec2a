/* SPDX-License-Identifier: MIT */
/*
 * What every wave is doing: stop the queues, copy as little as possible, let them run, decode.
 *
 * Between the stop and the resume there is nothing but copying: no text, no arena, no decoding
 * beyond the walk that finds the saved waves.  All sizes come from memory that the target can
 * write, so each is checked.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/kfd/registers.h"
#include "agentd/worker/process/mappings.h"
#include "base/clock.h"
#include "symbols/code_list.h"

void wave_capture_deinit(struct wave_capture *w)
{
	free(w->captures);
	free(w->areas);
	free(w->stacks);
	free(w->packets);
	free(w->hot);
	free(w->places);
	free(w->copied);
	free(w->named);
}

void wave_capture_missing(struct wave_capture *w, const char *fmt, ...)
{
	const char *text;
	va_list ap;

	if (w->n_missing == w->missing_capacity)
		return;
	va_start(ap, fmt);
	text = rpc_arena_vprintf(w->arena, fmt, ap);
	va_end(ap);
	/* The arena remembers that it is exhausted. */
	if (text)
		w->missing[w->n_missing++] = text;
}

/* ------------------------------------------------------------------ what is there ------------ */

static bool has_waves(const struct rpc_queue *q)
{
	return q->type == RPC_QUEUE_TYPE_COMPUTE || q->type == RPC_QUEUE_TYPE_COMPUTE_AQL;
}

static const struct target_device *device_of(const struct target_waves_from *from, uint32_t gpu_id)
{
	for (size_t i = 0; i < from->n_devices; i++)
		if (from->devices[i].rpc.gpu_id == gpu_id)
			return &from->devices[i];
	return NULL;
}

static void refuse(struct wave_capture *w, const struct rpc_queue *q, enum rpc_not_stopped why)
{
	w->stops[q - w->from->queues] =
		(struct target_queue_stop){ .has_not_stopped = true, .not_stopped = why };
}

/* Add a queue and the save areas of all dies of its device, or say why its waves are unknown. */
static void add_look(struct wave_capture *w, const struct rpc_queue *q)
{
	const struct target_device *d = device_of(w->from, q->gpu_id);
	const struct kfdtrap_wave_arch *arch =
		d ? kfdtrap_wave_arch_find(d->rpc.gfx_target_version) : NULL;
	struct queue_capture *capture = &w->captures[w->n_captures];

	if (!arch) {
		refuse(w, q, RPC_NOT_STOPPED_UNKNOWN_LAYOUT);
		wave_capture_missing(w, "queue %u: the layout of saved waves of %s is unknown",
				     q->queue_id, d ? d->rpc.arch : "its device");
		return;
	}
	if (!q->save_area || q->save_area_bytes < KFDTRAP_WAVE_HEADER_SIZE) {
		refuse(w, q, RPC_NOT_STOPPED_NO_SAVE_AREA);
		wave_capture_missing(w, "queue %u: it has no area to save waves in", q->queue_id);
		return;
	}
	*capture = (struct queue_capture){ .queue = q,
					   .device = d,
					   .arch = arch,
					   .packets = w->packets + w->n_captures * PACKETS_MAX *
									   SYMBOLS_AQL_PACKET_SIZE,
					   .stop = &w->stops[q - w->from->queues],
					   .round = (uint32_t)(d - w->from->devices) };
	if (q->suspended) {
		capture->state = kfd_is_off(w->k, q->queue_id) ? CAPTURE_OFF : CAPTURE_FAILED;
		capture->round = w->n_rounds - 1;
	}
	w->n_captures++;
	for (uint32_t xcc = 0; xcc < device_dies(d); xcc++)
		w->areas[w->n_areas++] = (struct save_area){
			.capture = capture,
			.address = q->save_area + (uint64_t)xcc * q->save_area_bytes,
			.xcc = xcc,
		};
}

static bool is_looked_at(const struct wave_capture *w, const struct target_device *d)
{
	for (size_t i = 0; i < w->n_captures; i++)
		if (w->captures[i].device == d)
			return true;
	return false;
}

/* @return how many waves the devices hold, but no more than a capture takes. */
static size_t most_waves(const struct wave_capture *w)
{
	uint64_t n = 0;

	for (size_t i = 0; i < w->from->n_devices; i++) {
		const struct target_device *d = &w->from->devices[i];

		if (is_looked_at(w, d))
			n += (uint64_t)d->rpc.simd_count * d->rpc.max_waves_per_simd;
	}
	return n < WAVES_MAX ? (size_t)n : WAVES_MAX;
}

/*
 * Provide pages and threads before the stop, so that they cost no time while queues stand still.
 * The pages for a full GPU cost more than the capture of a few waves, so that a later capture
 * provides those for twice as many waves as the one before found.
 */
static void get_ready(struct wave_capture *w)
{
	size_t n = most_waves(w), seen = w->k->n_seen;

	if (seen && 2 * seen < n)
		n = 2 * seen;
	memset(w->hot, 0, n * KFDTRAP_WAVE_HOT_SIZE);
	memset(w->places, 0, n * sizeof(*w->places));
	if (!w->k->pool)
		w->k->pool = thread_pool_create(SIZE_MAX);
}

/* Does any device of the capture save named barriers? */
static bool has_named(const struct wave_capture *w)
{
	const struct kfdtrap_wave_layout any = { 0 };
	uint32_t offset;

	for (size_t i = 0; i < w->n_captures; i++)
		if (kfdtrap_wave_named_barriers_find(w->captures[i].arch, &any, &offset))
			return true;
	return false;
}

/* Allocate all memory, and choose the queues and save areas, before anything is stopped. */
static int prepare(struct wave_capture *w)
{
	const struct target_waves_from *from = w->from;
	size_t n_areas = 0;

	for (size_t i = 0; i < from->n_queues; i++) {
		const struct target_device *d = device_of(from, from->queues[i].gpu_id);

		n_areas += d ? device_dies(d) : 0;
	}
	w->n_rounds = (uint32_t)from->n_devices + 1;
	w->missing_capacity = n_areas * 2 + from->n_queues * 2 + 5;
	w->missing = rpc_arena_array(w->arena, w->missing_capacity, sizeof(*w->missing));
	w->stops = rpc_arena_array(w->arena, from->n_queues, sizeof(*w->stops));
	w->argument_bytes = rpc_arena_array(w->arena, ARGUMENT_COPIES_MAX, ARGUMENT_COPY_BYTES);
	w->captures = calloc(from->n_queues + 1, sizeof(*w->captures));
	w->areas = calloc(n_areas + 1, sizeof(*w->areas));
	w->stacks = malloc(STACKS_MAX);
	w->packets = malloc((from->n_queues + 1) * PACKETS_MAX * SYMBOLS_AQL_PACKET_SIZE);
	w->hot = malloc((size_t)WAVES_MAX * KFDTRAP_WAVE_HOT_SIZE);
	w->places = malloc(WAVES_MAX * sizeof(*w->places));
	w->copied = calloc(WAVES_MAX, sizeof(*w->copied));
	if (!w->missing || !w->stops || !w->argument_bytes || !w->captures || !w->areas || !w->stacks || !w->packets ||
	    !w->hot || !w->places || !w->copied)
		return -ENOMEM;
	for (size_t i = 0; i < from->n_queues; i++)
		if (has_waves(&from->queues[i]))
			add_look(w, &from->queues[i]);
	if (w->n_captures)
		get_ready(w);
	if (has_named(w) && !(w->named = malloc(WAVES_MAX * sizeof(*w->named))))
		return -ENOMEM;
	return 0;
}

/* ------------------------------------------------------------------ stop, let go ------------- */

/* Keep in k->stopped only the queues that a resume has not let go. */
static void keep_standing(struct target_kfd *k)
{
	size_t n = k->n_stopped;

	k->n_stopped = 0;
	for (size_t i = 0; i < n; i++)
		if (k->stopped[i] & KFDTRAP_QUEUE_HW_FAILED)
			k->stopped[k->n_stopped++] = k->stopped[i];
}

/* The undo function of a capture: let all queues in k->stopped run. */
static int let_go(void *ctx, uint64_t arg, struct agent_err *err)
{
	struct target_kfd *k = ctx;
	int r = kfd_let_run(k, k->stopped, k->n_stopped, err);

	(void)arg;
	keep_standing(k);
	return r;
}

static enum capture_state state_of(uint32_t id)
{
	if (id & KFDTRAP_QUEUE_HW_FAILED)
		return CAPTURE_FAILED;
	return id & KFDTRAP_QUEUE_GONE ? CAPTURE_SKIPPED : CAPTURE_OFF;
}

/*
 * Note what the suspend did to each queue, and keep in k->stopped only the queues that need a
 * resume.  A queue whose preemption failed needs one, too (suspend_queues()).
 */
static void note_verdicts(struct wave_capture *w, struct queue_capture **asked)
{
	struct target_kfd *k = w->k;
	size_t n = k->n_stopped;

	k->n_stopped = 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t id = k->stopped[i];

		asked[i]->state = state_of(id);
		asked[i]->must_resume = asked[i]->state != CAPTURE_SKIPPED;
		if (asked[i]->must_resume)
			k->stopped[k->n_stopped++] = id & ~KFDTRAP_QUEUE_VERDICT_MASK;
	}
}

/* Suspend the queues that run, all with one command.  Queues under a lease are off already. */
static int stop(struct wave_capture *w, struct agent_err *err)
{
	struct queue_capture *asked[KFDTRAP_QUEUES_MAX];
	struct target_kfd *k = w->k;
	uint64_t asked_ns;
	int r;

	k->n_stopped = 0;
	for (size_t i = 0; i < w->n_captures && k->n_stopped < KFDTRAP_QUEUES_MAX; i++)
		if (w->captures[i].state == CAPTURE_RUNNING) {
			w->captures[i].must_resume = true;
			asked[k->n_stopped] = &w->captures[i];
			k->stopped[k->n_stopped++] = w->captures[i].queue->queue_id;
		}
	if (!k->n_stopped)
		return 0;
	/* After a failure k->stopped keeps all: to resume a queue that runs does nothing. */
	asked_ns = clock_now_ns();
	r = kfdtrap_suspend_queues(k->kt, 0, k->stopped, k->n_stopped, 0, NULL);
	w->kernel_ns += clock_now_ns() - asked_ns;
	if (r < 0) {
		for (size_t i = 0; i < k->n_stopped; i++)
			k->stopped[i] = asked[i]->queue->queue_id;
		return kfd_hw_error(k, r, "KFD SUSPEND_QUEUES", err);
	}
	note_verdicts(w, asked);
	return 0;
}

/* Note that queues run again.  @param round  Only those of this round; NULL: all. */
static void note_resumed(struct wave_capture *w, const uint32_t *round)
{
	uint64_t us = (clock_now_ns() - w->begin_ns) / 1000;

	for (size_t i = 0; i < w->n_captures; i++) {
		struct queue_capture *l = &w->captures[i];

		if (!l->must_resume || (round && l->round != *round))
			continue;
		l->must_resume = false;
		l->stop->has_stopped_us = true;
		l->stop->stopped_us = us;
	}
}

/* Let the queues of one round run.  Until that has succeeded k->stopped has them, for the undo. */
static int let_go_round(struct wave_capture *w, uint32_t round, struct agent_err *err)
{
	struct target_kfd *k = w->k;
	uint32_t ids[KFDTRAP_QUEUES_MAX];
	unsigned tries = 0;
	uint64_t asked_ns;
	size_t n = 0, rest = 0;
	int r;

	/*
	 * In k->stopped the queues of later rounds come first, so that cutting the list off leaves
	 * exactly those when the queues of this round run.
	 */
	for (size_t i = 0; i < w->n_captures; i++) {
		const struct queue_capture *l = &w->captures[i];

		if (l->must_resume && l->round == round)
			ids[n++] = l->queue->queue_id;
		else if (l->must_resume)
			k->stopped[rest++] = l->queue->queue_id;
	}
	if (!n)
		return 0;
	memcpy(k->stopped + rest, ids, n * sizeof(*ids));
	asked_ns = clock_now_ns();
	do
		r = kfd_let_run(k, ids, n, err);
	while (r < 0 && undo_again(&tries));
	w->kernel_ns += clock_now_ns() - asked_ns;
	if (r < 0)
		return r;
	k->n_stopped = rest;
	note_resumed(w, &round);
	return 0;
}

/* ------------------------------------------------------------------ all of it ---------------- */

static int copy_and_let_go(struct wave_capture *w, struct agent_err *err)
{
	int r = 0;

	for (uint32_t round = 0; r == 0 && round < w->n_rounds; round++) {
		wave_capture_copy(w, round);
		if (w->more)
			w->more(w, round);
		r = let_go_round(w, round, err);
	}
	return r;
}

/*
 * The undo entry is there before the stop and is run in any case, so that it resumes whatever the
 * rounds have not.
 * @param stop_err  Why the queues could not be stopped; they run then, and nothing was copied.
 * @return negative with @p err if the queues do not run again.
 */
static int stop_and_copy(struct wave_capture *w, bool *ret_stopped, struct agent_err *stop_err,
			 struct agent_err *err)
{
	struct target *t = &w->k->t;
	uint32_t ticket;
	int r, rest;

	r = undo_push(&t->undo, "resume queues of a snapshot", let_go, w->k, 0, &ticket, err);
	if (r < 0)
		return r;
	w->begin_ns = clock_now_ns();
	w->deadline_ns = w->begin_ns + w->from->max_stop_ms * UINT64_C(1000000);
	*ret_stopped = stop(w, stop_err) == 0;
	if (*ret_stopped)
		r = copy_and_let_go(w, err);
	rest = undo_run_one(&t->undo, ticket, r < 0 ? NULL : err);
	note_resumed(w, NULL);
	if (r == 0)
		r = rest;
	return r < 0 ? target_undo_failed(t, r) : 0;
}

/* The trap handler of a newer runtime may note other facts about a wave than the known ones. */
static void tell_newer_runtime(struct wave_capture *w)
{
	const struct rpc_runtime *rt = &w->k->t.runtime;

	if (rt->has_r_version && rt->r_version > SYMBOLS_R_VERSION_KNOWN)
		wave_capture_missing(w,
				     "waves: the runtime's interface for debuggers has version %u, "
				     "and the agent knows none beyond %d; what it says of them may "
				     "be wrong",
				     rt->r_version, SYMBOLS_R_VERSION_KNOWN);
}

/* Note that the library of ROCm's runtime is mapped; its file may be gone since. */
static void on_mapping(void *arg, const struct mapping *m)
{
	bool *has_runtime = arg;

	*has_runtime = *has_runtime || strstr(m->path, "/libhsa-runtime64.so");
}

/*
 * A program makes its queues when it has enabled its runtime, unless that is of before the kernel could be told, or
 * it makes them without that library.
 */
static const char *why_no_runtime(const struct target_kfd *k)
{
	bool has_runtime = false;

	if (k->t.runtime.state != RPC_RUNTIME_STATE_DISABLED)
		return "";
	if (mappings_read(k->t.maps_fd, on_mapping, &has_runtime) < 0)
		return ", although it has queues: its ROCm is too old to be debugged (5.2 is, 6.1 is not), or shuts down, or it "
		       "uses the GPU without ROCm";
	return has_runtime ? ", although it has queues: its ROCm is too old to be debugged (5.2 is, 6.1 is not), or shuts down" :
			     ", although it has queues: it uses the GPU without ROCm's runtime library (libhsa-runtime64.so), "
			     "and has not told the driver that it can be debugged";
}

static int look_at_waves(struct wave_capture *w, struct target_waves *ret, struct agent_err *err)
{
	struct agent_err why = { 0 };
	bool stopped = false;
	int r;

	if (!w->n_captures)
		return 0;
	r = kfd_need_runtime(w->k, "gpu.snapshot", &why);
	if (r == 0) {
		r = stop_and_copy(w, &stopped, &why, err);
		if (r < 0)
			return r;
	}
	if (w->k->t.ended)
		return target_end(&w->k->t, w->k->t.end_reason, "gpu.snapshot", err);
	w->k->n_seen = w->n_hot;
	if (!stopped) {
		wave_capture_missing(w, "waves: %s%s", why.message, why_no_runtime(w->k));
		return 0;
	}
	if (w->n_hot)
		tell_newer_runtime(w);
	return wave_capture_decode(w, ret) < 0 ? agent_err_no_memory(err, "gpu.snapshot") : 0;
}

static uint64_t longest(const struct target_queue_stop *stops, size_t n)
{
	uint64_t us = 0;

	for (size_t i = 0; i < n; i++)
		if (stops[i].has_stopped_us && stops[i].stopped_us > us)
			us = stops[i].stopped_us;
	return us;
}

int wave_capture_run(struct wave_capture *w, struct target_waves *ret, struct agent_err *err)
{
	int r;

	*ret = (struct target_waves){ 0 };
	r = prepare(w) < 0 ? agent_err_no_memory(err, "gpu.snapshot") : look_at_waves(w, ret, err);
	ret->missing = w->missing;
	ret->n_missing = w->n_missing;
	ret->stops = w->stops;
	ret->stopped_us = w->stops ? longest(w->stops, w->from->n_queues) : 0;
	if (ret->stopped_us > w->kernel_ns / 1000)
		ret->agent_us = ret->stopped_us - w->kernel_ns / 1000;
	ret->budget_exceeded = w->late;
	return r;
}

int kfd_waves(struct target *t, const struct target_waves_from *from, struct rpc_arena *a,
	      struct target_waves *ret, struct agent_err *err)
{
	struct wave_capture w = { .k = kfd_of(t), .arena = a, .from = from };
	int r = from->registers ? kfd_representatives(&w, ret, err)
				: wave_capture_run(&w, ret, err);

	wave_capture_deinit(&w);
	return r;
}
