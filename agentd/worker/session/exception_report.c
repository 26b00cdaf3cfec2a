/* SPDX-License-Identifier: MIT */
#include "agentd/worker/session/exception_report.h"

#include <string.h>

#include "agentd/worker/snapshot/convert.h"
#include "agentd/worker/snapshot/exited.h"
#include "agentd/worker/snapshot/locations.h"
#include "agentd/worker/snapshot/wave_convert.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/out.h"

#define GROUPS_MAX  8
/*
 * Time to read debug information that was not read before; the application waits for its fault
 * meanwhile.
 */
#define LOOK_UP_MS  200
#define MISSING_MAX (CODE_MISSING_MAX + 4)

/* A notification while it is filled in, of one event. */
struct filling {
	struct target *t;
	const struct target_event *event;
	struct rpc_arena *a;
	struct rpc_exception_raised_params *ret;
};

static void add_missing(const struct filling *f, const char *text)
{
	if (f->ret->missing && text && f->ret->n_missing < MISSING_MAX)
		f->ret->missing[f->ret->n_missing++] = text;
}

/* ------------------------------------------------------------------ waves -------------------- */

/* What of a capture concerns this exception, as a copy: others use the whole capture. */
struct concerned {
	struct wave *waves; /* Waves that stand still for a reason, or their parts that do. */
	size_t n_waves;     /* How many of them are listed, parts one by one. */
	uint32_t n_whole;   /* How many waves these are, and their active lanes. */
	uint64_t lanes;
	struct wave *exited;
	size_t n_exited;
};

static bool is_concerned(const struct filling *f, const struct wave *w)
{
	return w->reasons && exception_concerns(&f->event->source, w->gpu_id, w->queue_id);
}

/* How many entries a wave takes: one, or one for each part that stands still for a reason. */
static size_t count_entries(const struct wave *w)
{
	size_t n = 0;

	for (uint32_t i = 0; i < wave_n_parts(w); i++)
		n += w->parts->list[i].reasons != 0;
	return n ? n : 1;
}

static void add_entry(struct concerned *to, const struct wave *w, uint32_t leader)
{
	to->waves[to->n_waves] = *w;
	to->waves[to->n_waves++].leader = leader;
}

static void add_concerned(struct concerned *to, const struct wave *w, uint32_t leader)
{
	to->n_whole++;
	to->lanes += w->lanes;
	if (!wave_n_parts(w))
		add_entry(to, w, leader);
	for (uint32_t i = 0; i < wave_n_parts(w); i++) {
		if (!w->parts->list[i].reasons)
			continue;
		add_entry(to, &w->parts->list[i], leader);
		to->waves[to->n_waves - 1].stack = i ? NULL : w->stack;
	}
}

static int choose_waves(const struct filling *f, const struct target_waves *from,
			struct concerned *ret)
{
	/* For each old leader: where its workgroup begins now, plus 1. */
	uint32_t *leaders = rpc_arena_array(f->a, from->n_waves, sizeof(*leaders));
	size_t n = 0;

	for (size_t i = 0; i < from->n_waves; i++)
		if (is_concerned(f, &from->waves[i]))
			n += count_entries(&from->waves[i]);
	ret->waves = rpc_arena_array(f->a, n, sizeof(*ret->waves));
	if (!leaders || !ret->waves)
		return rpc_arena_error(f->a);
	for (size_t i = 0; i < from->n_waves; i++) {
		const struct wave *w = &from->waves[i];

		if (!is_concerned(f, w))
			continue;
		if (!leaders[w->leader])
			leaders[w->leader] = (uint32_t)ret->n_waves + 1;
		add_concerned(ret, w, leaders[w->leader] - 1);
	}
	return 0;
}

/* Choose the exceptions of exited waves, which belong to a unit of a device and to no queue. */
static int choose_exited(const struct filling *f, const struct target_waves *from,
			 struct concerned *ret)
{
	const struct target_source *source = &f->event->source;

	ret->exited = rpc_arena_array(f->a, from->n_exited, sizeof(*ret->exited));
	if (!ret->exited)
		return rpc_arena_error(f->a);
	for (size_t i = 0; i < from->n_exited; i++)
		if (!source->has_gpu || from->exited[i].gpu_id == source->gpu_id)
			ret->exited[ret->n_exited++] = from->exited[i];
	return 0;
}

static int fill_groups(const struct filling *f, struct wave *waves, size_t n,
		       const struct locations *places)
{
	auto_free struct group *groups = NULL;
	auto_free uint32_t *group_of = NULL;
	struct group *kept;
	size_t n_groups;
	int r = group_waves(waves, n, &groups, &n_groups, &group_of);

	if (r < 0)
		return r;
	if (n_groups > GROUPS_MAX)
		n_groups = GROUPS_MAX;
	kept = rpc_arena_array(f->a, n_groups, sizeof(*kept));
	if (!kept)
		return rpc_arena_error(f->a);
	memcpy(kept, groups, n_groups * sizeof(*kept));
	f->ret->groups = waves_convert_groups(f->a, waves, kept, n_groups, places);
	f->ret->n_groups = f->ret->groups ? n_groups : 0;
	return rpc_arena_error(f->a);
}

static int fill_exited(const struct filling *f, struct code_set *code, const struct concerned *w,
		       bool *ret_unknown)
{
	struct rpc_exception_raised_params *to = f->ret;
	int r = exited_convert(code, w->exited, w->n_exited, &to->exited, &to->n_exited, ret_unknown);

	if (to->n_exited > GROUPS_MAX)
		to->n_exited = GROUPS_MAX;
	to->has_exited = to->n_exited > 0;
	return r;
}

static int tell(const struct filling *f, const struct concerned *w)
{
	const char *texts[CODE_MISSING_MAX];
	struct locations places = { 0 };
	struct code_set code = { 0 };
	size_t n_texts = 0;
	bool unknown = false;
	int r = code_set_init(&code, f->t, f->a, LOOK_UP_MS);

	if (r == 0)
		r = locations_find(&code, w->waves, w->n_waves, &places);
	if (r == 0)
		r = fill_groups(f, w->waves, w->n_waves, &places);
	if (r == 0)
		r = fill_exited(f, &code, w, &unknown);
	if (r == 0)
		n_texts = code_missing(&code, places.n_unknown > 0 || unknown, texts);
	for (size_t i = 0; i < n_texts; i++)
		add_missing(f, texts[i]);
	locations_deinit(&places);
	code_set_deinit(&code);
	return r;
}

static int tell_waves(const struct filling *f, const struct target_waves *from)
{
	struct concerned w = { 0 };
	int r = choose_waves(f, from, &w);

	/* The queues stood still for so long, whatever fits into memory. */
	f->ret->has_stopped_us = true;
	f->ret->stopped_us = from->stopped_us;
	if (r == 0)
		r = choose_exited(f, from, &w);
	if (r < 0)
		return r;
	f->ret->has_waves = f->ret->has_lanes = true;
	f->ret->waves = w.n_whole;
	f->ret->lanes = w.lanes;
	for (size_t i = 0; i < from->n_missing; i++)
		add_missing(f, from->missing[i]);
	return w.n_waves || w.n_exited ? tell(f, &w) : 0;
}

static void fill_waves(const struct filling *f, const struct exception_capture *seen)
{
	const struct agent_err *why = &seen->waves_err;

	if (seen->begin_err.code)
		why = &seen->begin_err;
	if (why->code)
		add_missing(f, rpc_arena_printf(f->a, "waves: %s", why->message));
	else if (!seen->has_waves)
		add_missing(f, "waves: not looked at, because a look was a moment ago");
	else if (tell_waves(f, &seen->seen.waves) < 0)
		add_missing(f, "waves: they do not fit into memory");
}

/* ------------------------------------------------------------------ the rest ----------------- */

static void fill_access(const struct target_event *e, struct rpc_exception_raised_params *ret)
{
	ret->has_address = e->has_address;
	ret->address = e->address;
	ret->has_not_present = ret->has_read_only = ret->has_no_execute = e->has_access;
	ret->not_present = e->not_present;
	ret->read_only = e->read_only;
	ret->no_execute = e->no_execute;
}

void exception_report_fill(struct exception_report *r, struct target *t,
			   const struct target_event *e, const struct exception_capture *seen,
			   struct rpc_arena *a, struct rpc_exception_raised_params *ret)
{
	const struct filling f = { t, e, a, ret };

	*ret = (struct rpc_exception_raised_params){
		.time_us = clock_wall_us(),
		.has_gpu_id = e->source.has_gpu,
		.gpu_id = e->source.gpu_id,
		.has_queue_id = e->source.has_queue,
		.queue_id = e->source.queue_id,
		.forwarded = e->forwarded,
		.has_held = e->held,
		.held = e->held,
		.number = ++r->number,
	};
	ret->missing = rpc_arena_array(a, MISSING_MAX, sizeof(*ret->missing));
	ret->exceptions = convert_exceptions(a, e->source.exceptions, &ret->n_exceptions);
	ret->text = convert_exception_words(a, ret->exceptions, ret->exceptions ? ret->n_exceptions : 0);
	fill_access(e, ret);
	if (!(e->source.exceptions & TARGET_EXCEPTIONS_OF_WAVES))
		return;
	if (!t->ops->waves)
		add_missing(&f, "waves: devices of this vendor do not show them");
	else if (seen)
		fill_waves(&f, seen);
	else
		add_missing(&f, "waves: not looked at, by choice");
}
