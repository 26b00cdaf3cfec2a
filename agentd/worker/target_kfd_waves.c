/* SPDX-License-Identifier: MIT */
/*
 * What every wave is doing: stop the queues, copy as little as possible, let them run, decode.
 *
 * Between the stop and the resume there is nothing but copying: no text, no arena, no decoding
 * beyond the walk that finds the records.  Every size comes from memory that the target can write.
 */
#include <errno.h>
#include <kfdtrap_wave.h>
#include <string.h>

#include "agentd/worker/target_kfd.h"
#include "base/cleanup.h"
#include "base/clock.h"

/* Several times what the largest nodes can hold. */
#define WAVES_MAX (UINT32_C(1) << 18)
/* The kernel's formula gives 40 KiB for the largest devices (cwsr.md section 1). */
#define STACK_MAX  (UINT32_C(1) << 20)
#define STACKS_MAX ((size_t)32 << 20)
#define XCCS_MAX   32u
/* Of the runtimes of the last years; only for one whose r_debug is unreadable. */
#define R_VERSION_USUAL 10u

enum look_state {
	LOOK_RUNNING, /* not stopped yet */
	LOOK_OFF,     /* its waves are saved */
	LOOK_SKIPPED,
	LOOK_FAILED,
};

/* A queue whose waves are wanted. */
struct look {
	const struct target_queue *queue;
	const struct target_device *device;
	const struct kfdtrap_wave_arch *arch;
	enum look_state state;
	uint64_t read, write; /* packets */
	bool has_read, has_write;
};

enum area_state {
	AREA_NOT_READ,
	AREA_HEADER_UNREADABLE,
	AREA_STACK_TOO_LARGE,
	AREA_STACK_UNREADABLE,
	AREA_BROKEN, /* see problem */
	AREA_READ,
};

/* The saved waves of a queue on one compute die. */
struct area {
	struct look *look;
	uint64_t address;
	uint32_t xcc;
	enum area_state state;
	bool got; /* what was asked for last */
	enum kfdtrap_wave_problem problem;
	uint8_t raw_header[KFDTRAP_WAVE_HEADER_SIZE];
	struct kfdtrap_wave_header header;
	size_t stack; /* where its control stack is in work.stacks */
	size_t first; /* its waves in work.hot */
	uint32_t n_waves;
};

struct work {
	struct target_kfd *k;
	struct rpc_arena *arena;
	uint32_t max_stop_ms;
	uint64_t deadline_ns;
	bool late;

	struct look *looks;
	size_t n_looks;
	struct area *areas;
	size_t n_areas;

	struct memory_piece *pieces; /* MEMORY_PIECES_MAX */
	uint8_t *stacks;
	size_t stacks_size;
	uint8_t *hot; /* KFDTRAP_WAVE_HOT_SIZE for each wave found */
	bool *copied; /* for each of them */
	size_t n_hot;

	const char **missing;
	size_t n_missing, missing_capacity;
};

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

static void add_missing(struct work *w, const char *text)
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

static uint32_t dies_of(const struct target_device *d)
{
	return d->xcc_count && d->xcc_count <= XCCS_MAX ? d->xcc_count : 1;
}

static void add_look(struct work *w, const struct target_waves_from *from,
		     const struct target_queue *q)
{
	const struct target_device *d = device_of(from, q->gpu_id);
	const struct kfdtrap_wave_arch *arch =
		d ? kfdtrap_wave_arch_find(d->gfx_target_version) : NULL;
	struct look *look = &w->looks[w->n_looks];

	if (!arch) {
		add_missing(w, rpc_arena_printf(w->arena, "queue %u: the layout of saved waves of %s is unknown",
						q->queue_id, d ? d->gfx : "its device"));
		return;
	}
	if (!q->save_area || q->save_area_bytes < KFDTRAP_WAVE_HEADER_SIZE) {
		add_missing(w, rpc_arena_printf(w->arena, "queue %u: it has no area to save waves in",
						q->queue_id));
		return;
	}
	*look = (struct look){ .queue = q, .device = d, .arch = arch };
	if (q->suspended)
		look->state = kfd_is_off(w->k, q->queue_id) ? LOOK_OFF : LOOK_FAILED;
	w->n_looks++;
	for (uint32_t xcc = 0; xcc < dies_of(d); xcc++)
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

		n_areas += d ? dies_of(d) : 0;
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

/* ------------------------------------------------------------------ copy --------------------- */

static bool is_late(struct work *w)
{
	w->late = w->late || clock_now_ns() >= w->deadline_ns;
	return w->late;
}

/*
 * Collects pieces until there are enough for one system call.  @done says whether the piece was
 * read; it may be NULL.
 */
struct batch {
	struct work *w;
	size_t n;
	bool *done[MEMORY_PIECES_MAX];
};

static void batch_flush(struct batch *b)
{
	if (!b->n || is_late(b->w)) {
		b->n = 0;
		return;
	}
	memory_read_pieces(&b->w->k->t.memory, b->w->pieces, b->n);
	for (size_t i = 0; i < b->n; i++)
		*b->done[i] = b->w->pieces[i].ok;
	b->n = 0;
}

static void batch_add(struct batch *b, uint64_t address, void *buf, uint32_t size, bool *done)
{
	*done = false;
	b->w->pieces[b->n] = (struct memory_piece){ .address = address, .buf = buf, .size = size };
	b->done[b->n++] = done;
	if (b->n == MEMORY_PIECES_MAX)
		batch_flush(b);
}

static bool is_wanted(const struct area *a)
{
	return a->look->state == LOOK_OFF;
}

/* Headers, and the packet counters as they are now that the queue stands still. */
static void copy_headers(struct work *w, struct batch *b)
{
	for (size_t i = 0; i < w->n_areas; i++)
		if (is_wanted(&w->areas[i]))
			batch_add(b, w->areas[i].address, w->areas[i].raw_header,
				  KFDTRAP_WAVE_HEADER_SIZE, &w->areas[i].got);
	for (size_t i = 0; i < w->n_looks; i++) {
		struct look *l = &w->looks[i];

		if (l->state != LOOK_OFF || l->queue->type != RPC_QUEUE_TYPE_COMPUTE_AQL)
			continue;
		batch_add(b, l->queue->read_pointer, &l->read, sizeof(l->read), &l->has_read);
		batch_add(b, l->queue->write_pointer, &l->write, sizeof(l->write), &l->has_write);
	}
	batch_flush(b);
}

/* @return whether the area has a control stack worth copying. */
static bool judge_header(struct work *w, struct area *a)
{
	if (!a->got) {
		a->state = w->late ? AREA_NOT_READ : AREA_HEADER_UNREADABLE;
		return false;
	}
	a->problem = kfdtrap_wave_header_parse(a->raw_header, a->look->queue->save_area_bytes,
					       &a->header);
	if (a->problem) {
		a->state = AREA_BROKEN;
		return false;
	}
	if (a->header.control_stack_size > STACK_MAX ||
	    a->header.control_stack_size > STACKS_MAX - w->stacks_size) {
		a->state = AREA_STACK_TOO_LARGE;
		return false;
	}
	a->stack = w->stacks_size;
	w->stacks_size += a->header.control_stack_size;
	return true;
}

static bool copy_stacks(struct work *w, struct batch *b)
{
	for (size_t i = 0; i < w->n_areas; i++) {
		struct area *a = &w->areas[i];

		a->got = is_wanted(a) && judge_header(w, a);
	}
	w->stacks = malloc(w->stacks_size + 1);
	if (!w->stacks)
		return false;
	for (size_t i = 0; i < w->n_areas; i++) {
		struct area *a = &w->areas[i];

		if (!a->got)
			continue;
		/* What the batch answers is read in count_waves(), also when it is empty. */
		batch_add(b, a->address + a->header.control_stack_offset, w->stacks + a->stack,
			  a->header.control_stack_size, &a->got);
		a->state = AREA_STACK_UNREADABLE;
	}
	batch_flush(b);
	return true;
}

static void walk_begin(const struct work *w, const struct area *a, struct kfdtrap_wave_iter *iter)
{
	kfdtrap_wave_iter_init(iter, a->look->arch, &a->header, w->stacks + a->stack,
			       a->header.control_stack_size, (uint32_t)(WAVES_MAX - a->first));
}

/* Only a proper end confirms the waves before it. */
static void count_waves(struct work *w)
{
	for (size_t i = 0; i < w->n_areas; i++) {
		struct area *a = &w->areas[i];
		struct kfdtrap_wave_layout layout;
		struct kfdtrap_wave_iter iter;

		if (a->state != AREA_STACK_UNREADABLE)
			continue;
		if (!a->got) {
			a->state = w->late ? AREA_NOT_READ : AREA_STACK_UNREADABLE;
			continue;
		}
		a->first = w->n_hot;
		walk_begin(w, a, &iter);
		while (kfdtrap_wave_next(&iter, &layout))
			;
		a->problem = iter.problem;
		a->state = a->problem ? AREA_BROKEN : AREA_READ;
		if (!a->problem) {
			a->n_waves = iter.n_waves;
			w->n_hot += iter.n_waves;
		}
	}
}

static bool copy_waves(struct work *w, struct batch *b)
{
	count_waves(w);
	w->hot = malloc(w->n_hot * KFDTRAP_WAVE_HOT_SIZE + 1);
	w->copied = calloc(w->n_hot + 1, sizeof(*w->copied));
	if (!w->hot || !w->copied)
		return false;
	for (size_t i = 0; i < w->n_areas && !w->late; i++) {
		const struct area *a = &w->areas[i];
		struct kfdtrap_wave_layout layout;
		struct kfdtrap_wave_iter iter;
		size_t at = a->first;

		if (a->state != AREA_READ)
			continue;
		walk_begin(w, a, &iter);
		for (; kfdtrap_wave_next(&iter, &layout); at++)
			batch_add(b, a->address + kfdtrap_wave_hot_offset(&layout),
				  w->hot + at * KFDTRAP_WAVE_HOT_SIZE, KFDTRAP_WAVE_HOT_SIZE,
				  &w->copied[at]);
	}
	batch_flush(b);
	return true;
}

/* @return 0, -ENOMEM. */
static int copy(struct work *w)
{
	struct batch b = { .w = w };

	if (is_late(w))
		return 0;
	copy_headers(w, &b);
	return copy_stacks(w, &b) && copy_waves(w, &b) ? 0 : -ENOMEM;
}

/* ------------------------------------------------------------------ decode ------------------- */

/* The workgroup that the walk is in. */
struct workgroup {
	uint32_t leader;   /* as in the layout */
	uint32_t position; /* of its first wave in the result */
	struct kfdtrap_wave_state state;
	bool has_state, begun;
};

static uint32_t reasons_of(const struct kfdtrap_wave_state *s)
{
	static const struct {
		uint32_t stop;
		enum rpc_stop_reason reason;
	} rows[] = {
		{ KFDTRAP_WAVE_STOP_MEMORY_VIOLATION, RPC_STOP_REASON_MEMORY_VIOLATION },
		{ KFDTRAP_WAVE_STOP_ADDRESS_ERROR, RPC_STOP_REASON_ADDRESS_ERROR },
		{ KFDTRAP_WAVE_STOP_ILLEGAL_INSTRUCTION, RPC_STOP_REASON_ILLEGAL_INSTRUCTION },
		{ KFDTRAP_WAVE_STOP_MATH, RPC_STOP_REASON_MATH_ERROR },
		{ KFDTRAP_WAVE_STOP_WATCH, RPC_STOP_REASON_WATCHPOINT },
		{ KFDTRAP_WAVE_STOP_SINGLE_STEP, RPC_STOP_REASON_SINGLE_STEP },
		{ KFDTRAP_WAVE_STOP_BREAKPOINT, RPC_STOP_REASON_BREAKPOINT },
		{ KFDTRAP_WAVE_STOP_ASSERT, RPC_STOP_REASON_ASSERT },
		{ KFDTRAP_WAVE_STOP_DEBUG_TRAP, RPC_STOP_REASON_DEBUG_TRAP },
		{ KFDTRAP_WAVE_STOP_TRAP, RPC_STOP_REASON_TRAP },
	};
	uint32_t reasons = 0;

	if (!s->stopped)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (s->stop_reasons & rows[i].stop)
			reasons |= WAVE_REASON(rows[i].reason);
	return reasons ? reasons : WAVE_REASON(RPC_STOP_REASON_DEBUGGER);
}

static void fill_wave(struct wave *to, const struct area *a,
		      const struct kfdtrap_wave_layout *layout, const struct kfdtrap_wave_state *s)
{
	const struct look *l = a->look;

	*to = (struct wave){
		.pc = s->pc,
		.exec = s->exec,
		.gpu_id = l->device->gpu_id,
		.queue_id = l->queue->queue_id,
		.xcc = a->xcc,
		.index = layout->index,
		.workgroup = { s->workgroup[0], s->workgroup[1], s->workgroup[2] },
		.reasons = reasons_of(s),
		.state = s->stopped ? RPC_WAVE_STATE_STOPPED :
			 s->halted  ? RPC_WAVE_STATE_HALTED :
				      RPC_WAVE_STATE_RUNNING,
		.lanes = (uint8_t)__builtin_popcountll(s->exec),
		.width = layout->lanes,
		.wave_in_group = s->wave_in_group,
		.trap_id = s->trap_id,
		.has_workgroup = s->valid & KFDTRAP_WAVE_HAS_WORKGROUP_X,
		.has_wave_in_group = s->valid & KFDTRAP_WAVE_HAS_WAVE_IN_GROUP,
	};
	if (s->valid & KFDTRAP_WAVE_HAS_PACKET && l->has_read && l->has_write)
		to->has_dispatch = kfdtrap_wave_dispatch_id(l->read, l->write, l->queue->ring_bytes,
							    s->packet, &to->dispatch) == KFDTRAP_WAVE_OK;
}

static struct kfdtrap_wave_context context_of(const struct work *w, const struct area *a)
{
	const struct target_runtime *rt = &w->k->t.runtime;

	return (struct kfdtrap_wave_context){
		.ttmp_setup = rt->ttmp_setup,
		.debug_prop = (uint32_t)a->look->device->debug_prop,
		.r_version = rt->has_r_version ? rt->r_version : R_VERSION_USUAL,
	};
}

/* @return whether the bytes make sense; the wave is then at the end of the result. */
static enum kfdtrap_wave_problem decode_wave(const struct area *a,
					     const struct kfdtrap_wave_context *context,
					     const struct kfdtrap_wave_layout *layout,
					     const uint8_t *hot, struct workgroup *group,
					     struct target_waves *ret)
{
	struct kfdtrap_wave_state state;
	enum kfdtrap_wave_problem problem =
		kfdtrap_wave_read_state(a->look->arch, context, layout, hot, &state);
	struct wave *to = &ret->waves[ret->n_waves];

	if (!problem && group->has_state)
		problem = kfdtrap_wave_check_group(&group->state, &state);
	if (problem)
		return problem;
	if (!group->begun)
		group->position = (uint32_t)ret->n_waves;
	if (layout->first) {
		group->state = state;
		group->has_state = true;
	}
	group->begun = true;
	fill_wave(to, a, layout, &state);
	to->leader = group->position;
	ret->n_waves++;
	return KFDTRAP_WAVE_OK;
}

/* What of an area is not in the result. */
struct left_out {
	uint32_t late, unreadable, bad, bad_index;
	enum kfdtrap_wave_problem problem;
};

static struct left_out decode_area(struct work *w, const struct area *a, struct target_waves *ret)
{
	const struct kfdtrap_wave_context context = context_of(w, a);
	struct kfdtrap_wave_layout layout;
	struct kfdtrap_wave_iter iter;
	struct workgroup group = { 0 };
	struct left_out out = { 0 };
	size_t at = a->first;

	walk_begin(w, a, &iter);
	for (; kfdtrap_wave_next(&iter, &layout); at++) {
		enum kfdtrap_wave_problem problem;

		if (layout.first || layout.leader != group.leader)
			group = (struct workgroup){ .leader = layout.leader };
		if (!w->copied[at]) {
			(*(w->late ? &out.late : &out.unreadable))++;
			continue;
		}
		problem = decode_wave(a, &context, &layout, w->hot + at * KFDTRAP_WAVE_HOT_SIZE,
				      &group, ret);
		if (problem && !out.bad++) {
			out.problem = problem;
			out.bad_index = layout.index;
		}
	}
	return out;
}

/* ------------------------------------------------------------------ what is missing ---------- */

static const char *where(struct work *w, const struct area *a)
{
	if (dies_of(a->look->device) == 1)
		return rpc_arena_printf(w->arena, "queue %u", a->look->queue->queue_id);
	return rpc_arena_printf(w->arena, "queue %u, die %u", a->look->queue->queue_id, a->xcc);
}

/* A failure ends the kernel's walk over the queues of that device (kfd.md 3.9). */
static bool is_behind_a_failure(const struct work *w, const struct look *l)
{
	for (size_t i = 0; i < w->n_looks; i++)
		if (w->looks[i].state == LOOK_FAILED && w->looks[i].device == l->device)
			return true;
	return false;
}

static void tell_look(struct work *w, const struct look *l)
{
	const char *text = NULL;

	switch (l->state) {
	case LOOK_FAILED:
		text = "the hardware did not stop it";
		break;
	case LOOK_SKIPPED:
		text = is_behind_a_failure(w, l) ?
			       "not reached after another queue of its device failed to stop" :
			       "it was just created, or is being destroyed";
		break;
	case LOOK_RUNNING:
		text = "there are too many to stop them all";
		break;
	case LOOK_OFF:
		return;
	}
	add_missing(w, rpc_arena_printf(w->arena, "queue %u: %s; its waves are unknown",
					l->queue->queue_id, text));
}

static void tell_area(struct work *w, const struct area *a)
{
	const char *text = NULL;

	switch (a->state) {
	case AREA_HEADER_UNREADABLE:
		text = "its save area is not readable";
		break;
	case AREA_STACK_TOO_LARGE:
		text = "its control stack is larger than any hardware's";
		break;
	case AREA_STACK_UNREADABLE:
		text = "its control stack is not readable";
		break;
	case AREA_BROKEN:
		if (a->problem == KFDTRAP_WAVE_TOO_MANY)
			text = "more waves than the agent takes at once";
		else
			text = rpc_arena_printf(w->arena, "its save area is corrupt: %s",
						kfdtrap_wave_problem_text(a->problem));
		break;
	case AREA_NOT_READ:
	case AREA_READ:
		return;
	}
	add_missing(w, rpc_arena_printf(w->arena, "%s: %s", where(w, a), text ? text : "?"));
}

static void tell_left_out(struct work *w, const struct area *a, const struct left_out *out)
{
	if (out->unreadable)
		add_missing(w, rpc_arena_printf(w->arena, "%s: %u waves are not readable",
						where(w, a), out->unreadable));
	if (out->bad)
		add_missing(w, rpc_arena_printf(w->arena, "%s: %u waves are corrupt; the first is %u: %s",
						where(w, a), out->bad, out->bad_index,
						kfdtrap_wave_problem_text(out->problem)));
}

static void tell_late(struct work *w, size_t n_waves)
{
	size_t n_areas = 0;

	for (size_t i = 0; i < w->n_areas; i++)
		n_areas += is_wanted(&w->areas[i]) && w->areas[i].state == AREA_NOT_READ;
	if (n_areas)
		add_missing(w, rpc_arena_printf(w->arena, "waves: the stop budget of %u ms was used up with %zu save areas unread",
						w->max_stop_ms, n_areas));
	if (n_waves)
		add_missing(w, rpc_arena_printf(w->arena, "waves: the stop budget of %u ms was used up with %zu waves unread",
						w->max_stop_ms, n_waves));
}

static int decode(struct work *w, struct target_waves *ret)
{
	size_t n_late = 0;

	ret->waves = rpc_arena_array(w->arena, w->n_hot, sizeof(*ret->waves));
	if (!ret->waves)
		return -ENOMEM;
	for (size_t i = 0; i < w->n_looks; i++)
		tell_look(w, &w->looks[i]);
	for (size_t i = 0; i < w->n_areas; i++) {
		struct area *a = &w->areas[i];
		struct left_out out;

		if (is_wanted(a))
			tell_area(w, a);
		if (a->state != AREA_READ)
			continue;
		out = decode_area(w, a, ret);
		tell_left_out(w, a, &out);
		n_late += out.late;
	}
	/* A deadline that passed behind the last piece has cost nothing. */
	tell_late(w, n_late);
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
		copied = copy(w);
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
		add_missing(w, rpc_arena_printf(w->arena, "waves: %s", why.message));
		return 0;
	}
	return decode(w, ret) < 0 ? no_memory(err) : 0;
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
