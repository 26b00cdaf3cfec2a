/* SPDX-License-Identifier: MIT */
/* Decode the copied bytes of waves, and say which waves could not be copied or decoded. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "agentd/worker/kfd/waves.h"
#include "agentd/worker/snapshot/convert.h"
#include "base/cleanup.h"

/* The version of most runtimes, for one whose r_debug is unreadable. */
#define R_VERSION_USUAL 10u
/* From this version on the pc of a wave that an s_trap stopped is at it; before, behind it. */
#define R_VERSION_AT_TRAP 12u
#define TRAP_BYTES	  4u /* Bytes of an s_trap instruction. */
/* No workgroup has more (1024 work-items in waves of 32). */
#define GROUP_WAVES_MAX 32u

/* The workgroup that the walk is in. */
struct workgroup {
	uint32_t leader;   /* The leader's number in the layout. */
	uint32_t position; /* Position of its first wave in the result. */
	struct kfdtrap_wave_state state; /* The state of its first wave, if has_state. */
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
			reasons |= STOP_REASON_BIT(rows[i].reason);
	return reasons ? reasons : STOP_REASON_BIT(RPC_STOP_REASON_DEBUGGER);
}

/* Workgroups at the edge of the grid may be smaller than the others. */
static uint16_t waves_of_group(const struct symbols_aql_packet *p, const struct wave *w)
{
	uint64_t items = 1;

	if (!w->has_workgroup || !w->width)
		return 0;
	for (int i = 0; i < 3; i++) {
		uint64_t begin = (uint64_t)w->workgroup[i] * p->workgroup_size[i];
		uint64_t left = begin < p->grid_size[i] ? p->grid_size[i] - begin : 0;

		items *= left < p->workgroup_size[i] ? left : p->workgroup_size[i];
	}
	items = (items + w->width - 1) / w->width;
	return items <= GROUP_WAVES_MAX ? (uint16_t)items : 0;
}

/* Take what the packet of the wave's dispatch says, if the packet was copied. */
static void take_packet(const struct queue_capture *l, struct wave *to)
{
	uint8_t bytes[SYMBOLS_AQL_PACKET_SIZE];
	struct symbols_aql_packet p;

	if (!queue_capture_packet(l, to->dispatch - l->read, bytes) ||
	    symbols_aql_decode(bytes, sizeof(bytes), &p) < 0)
		return;
	to->kernel_handle = p.kernel_object;
	to->arguments = p.kernarg_address;
	to->group_waves = waves_of_group(&p, to);
}

/* Only AQL queues have their counters copied, so only their waves get a dispatch. */
static void find_dispatch(struct queue_capture *l, const struct kfdtrap_wave_state *s,
			  struct wave *to)
{
	enum kfdtrap_wave_problem problem;

	if (!(s->valid & KFDTRAP_WAVE_HAS_PACKET) || !l->has_read || !l->has_write)
		return;
	problem = kfdtrap_wave_dispatch_id(l->read, l->write, l->queue->ring_bytes, s->packet,
					   &to->dispatch);
	if (problem && !l->n_lost++)
		l->lost = problem;
	to->has_dispatch = !problem;
	if (to->has_dispatch)
		take_packet(l, to);
}

/* @return the named barriers of a first wave, for as long as the result lives; NULL: they are not known. */
static const uint32_t *keep_named(const struct wave_cursor *c)
{
	uint32_t *words = c->named ? rpc_arena_array(c->capture->arena, KFDTRAP_WAVE_NAMED_BARRIERS, sizeof(*words)) :
				     NULL;

	for (size_t i = 0; words && i < KFDTRAP_WAVE_NAMED_BARRIERS; i++)
		words[i] = le32toh(c->named[i]);
	return words;
}

static void fill_wave(struct wave *to, const struct wave_cursor *c)
{
	const struct queue_capture *l = c->area->capture;
	const struct kfdtrap_wave_layout *layout = &c->layout;
	const struct kfdtrap_wave_state *s = &c->state;
	uint32_t r_version = c->context.r_version;

	*to = (struct wave){
		.pc = s->pc,
		.exec = s->exec,
		.gpu_id = l->device->rpc.gpu_id,
		.queue_id = l->queue->queue_id,
		.unit = c->area->xcc,
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
		.behind = s->stopped && s->trap_id && r_version < R_VERSION_AT_TRAP ? TRAP_BYTES : 0,
		.has_workgroup = s->valid & KFDTRAP_WAVE_HAS_WORKGROUP_X,
		.has_wave_in_group = s->valid & KFDTRAP_WAVE_HAS_WAVE_IN_GROUP,
	};
	to->saved = (struct wave_saved){ s->status, s->state_priv, s->barrier, s->cluster_barrier, keep_named(c) };
	find_dispatch(c->area->capture, s, to);
}

struct kfdtrap_wave_context wave_capture_context(const struct wave_capture *w,
						 const struct save_area *a)
{
	const struct rpc_runtime *rt = &w->k->t.runtime;

	return (struct kfdtrap_wave_context){
		.ttmp_setup = rt->ttmp_setup,
		.debug_prop = (uint32_t)a->capture->device->rpc.debug_prop,
		.r_version = rt->has_r_version ? rt->r_version : R_VERSION_USUAL,
	};
}

void wave_cursor_init(struct wave_cursor *c, const struct wave_capture *w,
		      const struct save_area *a)
{
	*c = (struct wave_cursor){ .capture = w, .area = a, .at = a->first,
				   .next_named = a->first_named,
				   .context = wave_capture_context(w, a) };
	wave_capture_walk(w, a, &c->iter);
}

/* Copies are in the order of the waves that they belong to. */
static void find_named(struct wave_cursor *c, size_t wave)
{
	const struct wave_capture *w = c->capture;

	while (c->next_named < w->n_named && w->named[c->next_named].wave < wave)
		c->next_named++;
	c->named = c->next_named < w->n_named && w->named[c->next_named].wave == wave && w->named[c->next_named].got ?
			   w->named[c->next_named].words :
			   NULL;
}

bool wave_cursor_next(struct wave_cursor *c)
{
	size_t at = c->at;

	if (!kfdtrap_wave_next(&c->iter, &c->layout))
		return false;
	find_named(c, at);
	c->at++;
	c->copied = c->capture->copied[at];
	c->hot = c->capture->hot + at * KFDTRAP_WAVE_HOT_SIZE;
	if (c->copied)
		c->problem = kfdtrap_wave_read_state(c->area->capture->arch, &c->context, &c->layout, c->hot,
						     &c->state);
	return true;
}

/* Decode one wave.  @return KFDTRAP_WAVE_OK: it is at the end of the result; else what is wrong. */
static enum kfdtrap_wave_problem decode_wave(const struct wave_cursor *c, struct workgroup *group,
					     struct target_waves *ret)
{
	enum kfdtrap_wave_problem problem = c->problem;
	struct wave *to = &ret->waves[ret->n_waves];

	if (!problem && group->has_state)
		problem = kfdtrap_wave_check_group(&group->state, &c->state);
	if (problem)
		return problem;
	if (!group->begun)
		group->position = (uint32_t)ret->n_waves;
	if (c->layout.first) {
		group->state = c->state;
		group->has_state = true;
	}
	group->begun = true;
	fill_wave(to, c);
	to->leader = group->position;
	ret->n_waves++;
	return KFDTRAP_WAVE_OK;
}

/* How many waves of an area are not in the result, and why. */
struct left_out {
	uint32_t late, unreadable, bad, bad_index;
	enum kfdtrap_wave_problem problem;
};

static struct left_out decode_area(struct wave_capture *w, const struct save_area *a,
				   struct target_waves *ret)
{
	struct workgroup group = { 0 };
	struct left_out out = { 0 };
	struct wave_cursor c;

	wave_cursor_init(&c, w, a);
	while (wave_cursor_next(&c)) {
		enum kfdtrap_wave_problem problem;

		if (c.layout.first || c.layout.leader != group.leader)
			group = (struct workgroup){ .leader = c.layout.leader };
		if (!c.copied) {
			(*(w->late ? &out.late : &out.unreadable))++;
			continue;
		}
		problem = decode_wave(&c, &group, ret);
		if (problem && !out.bad++) {
			out.problem = problem;
			out.bad_index = c.layout.index;
		}
	}
	return out;
}

/* ------------------------------------------------------------------ what is missing ---------- */

static const char *where(struct wave_capture *w, const struct save_area *a)
{
	if (device_dies(a->capture->device) == 1)
		return rpc_arena_printf(w->arena, "queue %u", a->capture->queue->queue_id);
	return rpc_arena_printf(w->arena, "queue %u, die %u", a->capture->queue->queue_id, a->xcc);
}

/* A failed preemption ends the kernel's walk over the queues of that device (suspend_queues()). */
static bool is_behind_a_failure(const struct wave_capture *w, const struct queue_capture *l)
{
	for (size_t i = 0; i < w->n_captures; i++)
		if (w->captures[i].state == CAPTURE_FAILED && w->captures[i].device == l->device)
			return true;
	return false;
}

static enum rpc_not_stopped why_skipped(const struct wave_capture *w, const struct queue_capture *l)
{
	const struct rpc_queue *q = l->queue;
	const uint64_t is_new = convert_exception_mask(q->exceptions, q->n_exceptions) & KFD_NEW_MASK;

	if (is_behind_a_failure(w, l))
		return RPC_NOT_STOPPED_BEHIND_FAILED;
	/* The queue snapshot has made new queues old, unless a client waits for that event. */
	return is_new & ~kfd_snapshot_clear(w->k) ? RPC_NOT_STOPPED_NEW : RPC_NOT_STOPPED_ENDING;
}

static void tell_look(struct wave_capture *w, const struct queue_capture *l)
{
	static const char *const texts[] = {
		[RPC_NOT_STOPPED_NEW] = "it was just created",
		[RPC_NOT_STOPPED_ENDING] = "it is being destroyed",
		[RPC_NOT_STOPPED_FAILED] = "the hardware did not stop it",
		[RPC_NOT_STOPPED_BEHIND_FAILED] =
			"not reached after another queue of its device failed to stop",
		[RPC_NOT_STOPPED_TOO_MANY] = "there are too many to stop them all",
	};
	enum rpc_not_stopped why = RPC_NOT_STOPPED_TOO_MANY;

	if (l->state == CAPTURE_OFF)
		return;
	if (l->state == CAPTURE_FAILED)
		why = RPC_NOT_STOPPED_FAILED;
	else if (l->state == CAPTURE_SKIPPED)
		why = why_skipped(w, l);
	l->stop->has_not_stopped = true;
	l->stop->not_stopped = why;
	wave_capture_missing(w, "queue %u: %s; its waves are unknown", l->queue->queue_id,
			     texts[why]);
}

static void tell_area(struct wave_capture *w, const struct save_area *a)
{
	const char *text = NULL;

	switch (a->state) {
	case SAVE_AREA_HEADER_UNREADABLE:
		text = "its save area is not readable";
		break;
	case SAVE_AREA_STACK_TOO_LARGE:
		text = "its control stack is larger than any hardware's";
		break;
	case SAVE_AREA_STACK_UNREADABLE:
		text = "its control stack is not readable";
		break;
	case SAVE_AREA_BROKEN:
		if (a->problem == KFDTRAP_WAVE_TOO_MANY)
			text = "more waves than the agent takes at once";
		else
			text = rpc_arena_printf(w->arena, "its save area is corrupt: %s",
						kfdtrap_wave_problem_text(a->problem));
		break;
	case SAVE_AREA_NOT_READ:
	case SAVE_AREA_READ:
		return;
	}
	wave_capture_missing(w, "%s: %s", where(w, a), text ? text : "?");
}

static void tell_left_out(struct wave_capture *w, const struct save_area *a,
			  const struct left_out *out)
{
	if (out->unreadable)
		wave_capture_missing(w, "%s: %u waves are not readable", where(w, a), out->unreadable);
	if (out->bad)
		wave_capture_missing(w, "%s: %u waves are corrupt; the first is %u: %s", where(w, a),
				     out->bad, out->bad_index,
				     kfdtrap_wave_problem_text(out->problem));
}

static void tell_dispatches(struct wave_capture *w, const struct queue_capture *l)
{
	if (l->n_lost)
		wave_capture_missing(w, "queue %u: the dispatch of %u waves is unknown: %s",
				     l->queue->queue_id, l->n_lost,
				     kfdtrap_wave_problem_text(l->lost));
}

static void tell_late(struct wave_capture *w, size_t n_waves)
{
	size_t n_areas = 0;

	for (size_t i = 0; i < w->n_areas; i++)
		n_areas += save_area_is_wanted(&w->areas[i]) &&
			   w->areas[i].state == SAVE_AREA_NOT_READ;
	if (n_areas)
		wave_capture_missing(
			w, "waves: the stop budget of %u ms was used up with %zu save areas unread",
			w->from->max_stop_ms, n_areas);
	if (n_waves)
		wave_capture_missing(
			w, "waves: the stop budget of %u ms was used up with %zu waves unread",
			w->from->max_stop_ms, n_waves);
}

/* What could not be copied is not in the list: it is looked for again, where the waves say. */
static int take_arguments(struct wave_capture *w, struct target_waves *ret)
{
	ret->arguments = rpc_arena_array(w->arena, w->n_arguments, sizeof(*ret->arguments));
	if (!ret->arguments)
		return -ENOMEM;
	for (size_t i = 0; i < w->n_arguments; i++) {
		const struct argument_copy *copy = &w->arguments[i];

		if (!copy->got)
			continue;
		ret->arguments[ret->n_arguments++] = (struct target_arguments){
			.gpu_id = copy->capture->queue->gpu_id,
			.queue_id = copy->capture->queue->queue_id,
			.dispatch = copy->dispatch,
			.bytes = w->argument_bytes + i * ARGUMENT_COPY_BYTES,
			.size = ARGUMENT_COPY_BYTES,
		};
	}
	return 0;
}

int wave_capture_decode(struct wave_capture *w, struct target_waves *ret)
{
	size_t n_late = 0;

	ret->waves = rpc_arena_array(w->arena, w->n_hot, sizeof(*ret->waves));
	if (!ret->waves || take_arguments(w, ret) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < w->n_captures; i++)
		tell_look(w, &w->captures[i]);
	for (size_t i = 0; i < w->n_areas; i++) {
		struct save_area *a = &w->areas[i];
		struct left_out out;

		if (save_area_is_wanted(a))
			tell_area(w, a);
		if (a->state != SAVE_AREA_READ)
			continue;
		out = decode_area(w, a, ret);
		tell_left_out(w, a, &out);
		n_late += out.late;
	}
	for (size_t i = 0; i < w->n_captures; i++)
		tell_dispatches(w, &w->captures[i]);
	/* A deadline that passed after the last piece has cost nothing, so only gaps are listed. */
	tell_late(w, n_late);
	return 0;
}
