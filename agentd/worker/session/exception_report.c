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
/* Debug information that was not read before; the application waits for its fault meanwhile. */
#define LOOK_UP_MS  200
#define REST_FACTOR 9 /* a look of 1 ms, then 9 ms without */
#define MISSING_MAX (CODE_MISSING_MAX + 4)

/* What one event becomes. */
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

bool exception_report_may_look(const struct exception_report *r, const struct target *t,
			       const struct target_event *e)
{
	return t->ops->waves && e->source.exceptions & TARGET_EXCEPTIONS_OF_WAVES &&
	       clock_now_ns() >= r->rest_until;
}

/* ------------------------------------------------------------------ waves -------------------- */

/* The queues that can be concerned, in front; the list is ours. */
static size_t choose_queues(const struct target_source *source, struct target_queue *queues,
			    size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (source->has_queue ? queues[i].queue_id == source->queue_id :
					!source->has_gpu || queues[i].gpu_id == source->gpu_id)
			queues[kept++] = queues[i];
	return kept;
}

/*
 * Only waves that stand still for a reason, in front.
 * @param leaders  Room for n: where the workgroup of each old leader begins now, plus 1; zeroed.
 */
static size_t choose_waves(struct wave *waves, size_t n, uint32_t *leaders)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct wave w = waves[i];

		if (!w.reasons)
			continue;
		if (!leaders[w.leader])
			leaders[w.leader] = (uint32_t)kept + 1;
		w.leader = leaders[w.leader] - 1;
		waves[kept++] = w;
	}
	return kept;
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

static int fill_exited(const struct filling *f, struct code_set *code, const struct target_waves *w,
		       bool *ret_unknown)
{
	struct rpc_exception_raised_params *to = f->ret;
	int r = exited_convert(code, w->exited, w->n_exited, &to->exited, &to->n_exited, ret_unknown);

	if (to->n_exited > GROUPS_MAX)
		to->n_exited = GROUPS_MAX;
	to->has_exited = to->n_exited > 0;
	return r;
}

static int tell(const struct filling *f, const struct target_waves *w, size_t n)
{
	const char *texts[CODE_MISSING_MAX];
	struct locations places = { 0 };
	struct code_set code = { 0 };
	size_t n_texts = 0;
	bool unknown = false;
	int r = code_set_init(&code, f->t, f->a, LOOK_UP_MS);

	if (r == 0)
		r = locations_find(&code, w->waves, n, &places);
	if (r == 0)
		r = fill_groups(f, w->waves, n, &places);
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

static int tell_waves(const struct filling *f, const struct target_waves *w)
{
	uint32_t *leaders = rpc_arena_array(f->a, w->n_waves, sizeof(*leaders));
	size_t n;

	if (!leaders)
		return rpc_arena_error(f->a);
	n = choose_waves(w->waves, w->n_waves, leaders);
	f->ret->has_waves = f->ret->has_lanes = true;
	f->ret->waves = (uint32_t)n;
	for (size_t i = 0; i < n; i++)
		f->ret->lanes += w->waves[i].lanes;
	for (size_t i = 0; i < w->n_missing; i++)
		add_missing(f, w->missing[i]);
	return n || w->n_exited ? tell(f, w, n) : 0;
}

/* Stop, copy, let run; then put it into words. */
static void look(struct exception_report *r, const struct filling *f, uint32_t look_ms)
{
	struct target_waves_from from = { .max_stop_ms = look_ms };
	struct target_device *devices;
	struct target_queue *queues;
	struct target_waves waves = { 0 };
	struct agent_err err = { 0 };
	uint64_t start = clock_now_ns();
	int e = f->t->ops->devices(f->t, f->a, &devices, &from.n_devices, &err);

	if (e == 0)
		e = f->t->ops->queues(f->t, f->a, &queues, &from.n_queues, &err);
	if (e == 0) {
		from.devices = devices;
		from.queues = queues;
		from.n_queues = choose_queues(&f->event->source, queues, from.n_queues);
		e = f->t->ops->waves(f->t, &from, f->a, &waves, &err);
	}
	r->rest_until = clock_now_ns() + (clock_now_ns() - start) * REST_FACTOR;
	if (e < 0) {
		add_missing(f, rpc_arena_printf(f->a, "waves: %s", err.message));
		return;
	}
	f->ret->has_stopped_us = true;
	f->ret->stopped_us = waves.stopped_us;
	if (tell_waves(f, &waves) < 0)
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
			   const struct target_event *e, uint32_t look_ms, struct rpc_arena *a,
			   struct rpc_exception_raised_params *ret)
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
	else if (look_ms)
		look(r, &f, look_ms);
	else
		add_missing(&f,
			    "waves: not looked at, by choice or because a look was a moment ago");
}
