/* SPDX-License-Identifier: MIT */
/* Groups of waves as threads of the editor's, and their frames. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "dap/code/instructions.h"
#include "dap/values/values.h"
#include "protocol/stop_reason.h"

/* ------------------------------------------------------------------ groups to threads -------- */

/* Whether two groups become one thread when kernels are summed up. */
static bool is_same_kernel(const struct rpc_group *a, const struct rpc_group *b)
{
	return a->gpu_id == b->gpu_id && a->has_kernel && b->has_kernel &&
	       a->kernel.address == b->kernel.address && a->state == b->state &&
	       a->n_reasons == b->n_reasons &&
	       !memcmp(a->reasons, b->reasons, a->n_reasons * sizeof(*a->reasons));
}

/*
 * Add a group to a sum.  The median of a sum of groups is not known: that of the first, which is
 * the largest, stays.
 */
static void add_group(struct rpc_group *sum, const struct rpc_group *g)
{
	sum->waves += g->waves;
	sum->pcs += g->pcs;
	sum->lanes_min = g->lanes_min < sum->lanes_min ? g->lanes_min : sum->lanes_min;
	sum->lanes_max = g->lanes_max > sum->lanes_max ? g->lanes_max : sum->lanes_max;
	sum->has_workgroups = false;
}

/*
 * The position of the thread that @p g belongs to: a new one, unless kernels are summed up and its
 * kernel has one.
 */
static size_t thread_of(const struct dap *d, const struct dap_snapshot *s,
			const struct rpc_group *g)
{
	size_t n = s->n_all < s->n_threads ? s->n_all : s->n_threads;

	if (!d->by_kernel)
		return s->n_all;
	for (size_t i = 0; i < n; i++)
		if (is_same_kernel(s->threads[i].group, g))
			return i;
	return s->n_all;
}

struct rpc_wave_name dap_wave_of(const struct rpc_wave_ref *ref)
{
	return (struct rpc_wave_name){
		.queue_id = ref->queue_id,
		.has_unit = true,
		.unit = ref->unit,
		.has_index = true,
		.index = ref->index,
		.has_dispatch = ref->has_dispatch,
		.dispatch = ref->dispatch,
		.has_workgroup = ref->n_workgroup != 0,
		.workgroup = ref->workgroup,
		.n_workgroup = ref->n_workgroup,
		.has_wave_in_group = ref->has_wave_in_group,
		.wave_in_group = ref->wave_in_group,
	};
}

/*
 * Begin a thread with its first group.  The sum is a copy: what the document says of its groups
 * stays true.
 */
static bool begin_thread(struct dap_snapshot *s, struct dap_thread *t, const struct rpc_group *g)
{
	*t = (struct dap_thread){ .group = rpc_arena_alloc(&s->arena, sizeof(*t->group)),
				  .wave = dap_wave_of(&g->representative) };
	dap_thread_show(t, g, g->pc, g->has_lane ? g->lane : DAP_LANE_ANY);
	if (t->group)
		*t->group = *g;
	return t->group;
}

bool dap_snapshot_index(const struct dap *d, struct dap_snapshot *s)
{
	size_t n = s->doc.n_groups;

	s->thread_of = rpc_arena_array(&s->arena, n, sizeof(*s->thread_of));
	s->n_threads = n < d->max_threads ? n : d->max_threads;
	s->threads = rpc_arena_array(&s->arena, s->n_threads, sizeof(*s->threads));
	if (!s->thread_of || !s->threads)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct rpc_group *g = &s->doc.groups[i];
		size_t at = thread_of(d, s, g);

		s->thread_of[i] = (uint32_t)at;
		if (at < s->n_all) {
			add_group(s->threads[at].group, g);
			continue;
		}
		if (at < s->n_threads && !begin_thread(s, &s->threads[at], g))
			return false;
		s->n_all++;
	}
	if (s->n_all < s->n_threads)
		s->n_threads = s->n_all;
	/* The line that says how many more there are takes a position too. */
	if (s->n_all > s->n_threads && s->n_threads == DAP_THREADS_MAX)
		s->n_threads--;
	return true;
}

void dap_snapshot_free(struct dap_snapshot *s)
{
	if (!s)
		return;
	rpc_arena_deinit(&s->arena);
	free(s);
}

struct dap_thread *dap_thread_arg(struct dap *d, struct dap_json args, struct agent_err *err)
{
	struct dap_json v = dap_json_get(args, "threadId");
	int64_t id = (int64_t)d->focus + 1;

	if (dap_host_is_thread(d, args)) {
		dap_invalid(err, "this thread runs on a processor: it has no waves");
		return NULL;
	}
	if (dap_json_has(v) && !dap_json_i64(v, &id))
		id = 0;
	if (id >= 1 && (uint64_t)id <= d->snap->n_threads)
		return &d->snap->threads[id - 1];
	/* The line for threads that are not shown looks like a thread to the editor. */
	if ((uint64_t)id == d->snap->n_threads + 1 && d->snap->n_all > d->snap->n_threads)
		dap_invalid(err, "these groups are not shown: attach with a larger maxThreads, or groupBy kernel");
	else
		dap_invalid(err, "threadId: there is no thread %" PRId64, id);
	return NULL;
}

const struct rpc_device *dap_device(const struct dap *d, uint32_t gpu_id)
{
	for (size_t i = 0; i < d->snap->doc.n_devices; i++)
		if (d->snap->doc.devices[i].gpu_id == gpu_id)
			return &d->snap->doc.devices[i];
	return NULL;
}

/* ------------------------------------------------------------------ names -------------------- */

const char *dap_group_reasons(struct rpc_arena *a, const struct rpc_group *g)
{
	return stop_reason_text(a, g->exception, g->reasons, g->n_reasons);
}

const char *dap_exited_text(struct rpc_arena *a, const struct rpc_exited_exception *e)
{
	const struct rpc_frame *f = e->n_frames ? &e->frames[0] : NULL;
	const char *where = "", *more = "";

	if (e->units > 1)
		more = rpc_arena_printf(a, " and %u others", e->units - 1);
	if (f && f->file && f->has_line)
		where = rpc_arena_printf(a, ", at %s:%u", str_base_name(f->file), f->line);
	else if (e->has_pc)
		where = rpc_arena_printf(a, ", at 0x%" PRIx64, e->pc);
	return rpc_arena_printf(a, "%s on multiprocessor %u%s of device %u, in waves that have exited%s",
				e->exception, e->unit, more ? more : "", e->gpu_id, where ? where : "");
}

const char *dap_wave_text(struct rpc_arena *a, const struct rpc_wave_name *w)
{
	return rpc_arena_printf(a, "%u:%u:%u", w->queue_id, w->unit, w->index);
}

const char *dap_device_text(struct rpc_arena *a, const struct dap *d, uint32_t gpu_id)
{
	const struct rpc_device *device = dap_device(d, gpu_id);

	return device ? rpc_arena_printf(a, "GPU %zu", device - d->snap->doc.devices) :
			rpc_arena_printf(a, "device %u", gpu_id);
}

const char *dap_thread_name(struct rpc_arena *a, const struct dap *d, size_t i)
{
	const struct rpc_group *g = d->snap->threads[i].group;
	const struct rpc_frame *f = g->n_frames ? &g->frames[0] : NULL;
	const char *why = dap_group_reasons(a, g), *kernel = NULL, *where;

	if (g->has_kernel)
		kernel = g->kernel.name ? g->kernel.name :
					  rpc_arena_printf(a, "0x%" PRIx64, g->kernel.address);
	where = f && f->file && f->has_line && !d->by_kernel ?
			rpc_arena_printf(a, " %s:%u", str_base_name(f->file), f->line) :
			rpc_arena_printf(a, " 0x%" PRIx64, g->pc);
	return rpc_arena_printf(a, "%s%s%u x %s%s%s%s",
				d->snap->doc.n_devices > 1 ? dap_device_text(a, d, g->gpu_id) : "",
				d->snap->doc.n_devices > 1 ? ": " : "", g->waves, kernel ? kernel : "wave",
				where ? where : "", why && why[0] ? " " : "", why ? why : "");
}

/* ------------------------------------------------------------------ threads ------------------ */

int dap_threads(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	struct dap_snapshot *s = d->snap;

	out_json_fmt(&ret->body, "{'threads':[");
	/* Editors take a program without threads for one that has ended, and offer no pause. */
	if (!s->n_all)
		out_json_fmt(&ret->body, "{'id':1,'name':'no waves on the GPU'}");
	for (size_t i = 0; i < s->n_threads; i++)
		out_json_fmt(&ret->body, ",{'id':%zu,'name':%s}", i + 1,
			     dap_thread_name(&d->arena, d, i));
	if (s->n_all > s->n_threads)
		out_json_fmt(&ret->body, ",{'id':%zu,'name':'%zu more groups'}", s->n_threads + 1,
			     s->n_all - s->n_threads);
	dap_host_threads(d, &ret->body);
	out_str(&ret->body, "]}");
	return 0;
}

/* ------------------------------------------------------------------ stackTrace --------------- */

/* Append a source that is a file, or is only named, with line and column. */
static void put_file(struct dap *d, struct out *o, const struct rpc_frame *f, const char *path)
{
	uint32_t line = f && f->file && f->has_line ? f->line : 0;

	if (f && f->file) {
		out_json_fmt(o, ",'source':{'name':%s", str_base_name(f->file));
		if (path)
			dap_put_path(d, o, path);
		else
			out_json_fmt(o, ",'origin':%s", f->file);
		out_char(o, '}');
	}
	out_json_fmt(o, ",'line':%u,'column':%u", line && !d->lines_from ? line - 1 : line,
		     line && f->has_column && f->column ? f->column - !d->columns_from : 0);
}

/* Append a source that the adapter has, and the place in it. */
static void put_reference(struct dap *d, struct out *o, uint32_t reference, const char *name, const char *origin,
			  uint32_t line, uint32_t column)
{
	out_json_fmt(o, ",'source':{'name':%s,'sourceReference':%u,'origin':%s}", name, reference, origin);
	out_json_fmt(o, ",'line':%u,'column':%u", line - !d->lines_from, column - !d->columns_from);
}

/*
 * Append source, line and column.  Where the file is not here, that is the text in the debug information; where there
 * is none, or the place in it is not known, the code: editors show what stopped a thread at a line of a source, and
 * complain of one that they cannot open.
 */
static void put_source(struct dap *d, struct out *o, const struct dap_thread *t, const struct rpc_frame *f, uint64_t pc)
{
	const char *path = f && f->file ? dap_source_path(d, &d->arena, f->file) : NULL, *name;
	bool has_line = f && f->file && f->has_line && f->line;
	const struct rpc_code_place *place;
	const char *origin = "disassembly";
	uint32_t line, reference;

	if (path && has_line) {
		put_file(d, o, f, path);
		return;
	}
	place = dap_locate(d, &d->arena, &pc, 1);
	reference = has_line ? dap_embedded_at(d, place, f->file) : 0;
	if (reference) {
		origin = rpc_arena_printf(&d->arena, "%s, in the debug information", f->file);
		put_reference(d, o, reference, str_base_name(f->file), origin, f->line,
			      f->has_column && f->column ? f->column : 1);
		return;
	}
	reference = dap_listing_at(d, t->place->gpu_id, place, pc, &name, &line);
	if (!reference) {
		put_file(d, o, f, path);
		return;
	}
	if (f && f->file)
		origin = f->has_line ? rpc_arena_printf(&d->arena, "%s:%u", f->file, f->line) : f->file;
	put_reference(d, o, reference, name, origin, line, 1);
}

/* The length of a name without the parameters that end it. */
static size_t kernel_name_length(const char *name)
{
	size_t n = strlen(name), at = n;
	int depth = 0;

	while (n && name[n - 1] == ')' && at--) {
		depth += name[at] == ')';
		depth -= name[at] == '(';
		if (!depth)
			return at ? at : n;
	}
	return n;
}

/* Is the function of a frame the group's kernel?  Symbols of AMD's kernels end in `.kd`. */
static bool is_kernel(const struct rpc_group *g, const struct rpc_frame *f, const char *name)
{
	const char *raw = f ? f->raw ? f->raw : f->function : NULL;
	size_t n = raw ? strlen(raw) : 0;

	if (!g->has_kernel)
		return false;
	if (g->kernel.name && !strcmp(name, g->kernel.name))
		return true;
	return n && g->kernel.raw && !strncmp(raw, g->kernel.raw, n) &&
	       (!g->kernel.raw[n] || !strcmp(g->kernel.raw + n, ".kd"));
}

/*
 * How many frames a thread has: the inline chain where the wave stands, then that of each call
 * which led there.
 */
static size_t count_frames(const struct dap_thread *t)
{
	const struct rpc_group *g = t->place;
	size_t n = g->n_frames ? g->n_frames : 1;

	for (size_t i = 0; i < t->n_callers; i++)
		n += g->callers[i].n_frames ? g->callers[i].n_frames : 1;
	return n;
}

/*
 * The frame of a level.
 * @param pc  The pc of the wave; becomes that of the frame.
 * @return NULL when nothing is known there.
 */
static const struct rpc_frame *frame_at(const struct dap_thread *t, size_t level, uint64_t *pc)
{
	const struct rpc_group *g = t->place;
	const struct rpc_frame *frames = g->frames;
	size_t n = g->n_frames;

	for (size_t i = 0; level >= (n ? n : 1) && i < t->n_callers; i++) {
		level -= n ? n : 1;
		frames = g->callers[i].frames;
		n = g->callers[i].n_frames;
		*pc = g->callers[i].address;
	}
	return level < n ? &frames[level] : NULL;
}

uint64_t dap_frame_pc(const struct dap_thread *t, size_t level)
{
	uint64_t pc = t->pc;

	(void)frame_at(t, level, &pc);
	return pc;
}

/* The name of a frame as the code has it; NULL when that is not known. */
static const char *frame_name(const struct dap_thread *t, const struct rpc_frame *f, uint64_t pc)
{
	if (f && f->function)
		return f->function;
	return t->place->has_kernel && pc == t->pc ? t->place->kernel.name : NULL;
}

bool dap_is_kernel_frame(const struct dap_thread *t, size_t level)
{
	uint64_t pc = t->pc;
	const struct rpc_frame *f = frame_at(t, level, &pc);
	const char *name = frame_name(t, f, pc);

	/* A stack may be cut, or its outermost function unknown. */
	return name && level + 1 == count_frames(t) && is_kernel(t->place, f, name);
}

/* The name of the outermost frame: the kernel, as it was launched. */
static const char *with_arguments(struct rpc_arena *a, const struct rpc_group *g, const char *function)
{
	auto_out struct out o = { 0 };

	out_bytes(&o, function, kernel_name_length(function));
	dap_put_arguments(&o, g);
	return out_error(&o) ? function : rpc_arena_strdup(a, o.data);
}

static void put_frame(struct dap *d, struct out *o, uint32_t thread, size_t level)
{
	const struct dap_ref of = { .thread = thread, .refs = &d->refs };
	const struct dap_thread *t = &d->snap->threads[thread];
	uint64_t pc = t->pc;
	const struct rpc_frame *f = frame_at(t, level, &pc);
	const char *name = frame_name(t, f, pc);

	if (dap_has_arguments(t) && dap_is_kernel_frame(t, level))
		name = with_arguments(&d->arena, t->place, name);
	if (!name)
		name = rpc_arena_printf(&d->arena, "0x%" PRIx64, pc);
	out_json_fmt(o, ",{'id':%u,'name':%s",
		     dap_ref_within(d, &of, DAP_SCOPE_FRAME, (uint32_t)level), name);
	put_source(d, o, t, f, pc);
	out_json_fmt(o, ",'instructionPointerReference':%" PRIx64 "}", pc);
}

/* Read a number that is not negative, or a default. */
static uint64_t number_or(struct dap_json args, const char *name, uint64_t fallback)
{
	int64_t n;

	return dap_json_i64(dap_json_get(args, name), &n) && n >= 0 ? (uint64_t)n : fallback;
}

int dap_stack_trace(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	const struct dap_thread *t;
	uint64_t start = number_or(q->args, "startFrame", 0);
	uint64_t levels = number_or(q->args, "levels", 0);
	size_t n;

	if (dap_host_is_thread(d, q->args))
		return dap_host_stack(d, q, start, levels, ret);
	if (!d->snap->n_all) {
		out_json_fmt(&ret->body, "{'stackFrames':[],'totalFrames':0}");
		return 0;
	}
	t = dap_thread_arg(d, q->args, &ret->err);
	if (!t)
		return -EINVAL;
	d->focus = (uint32_t)(t - d->snap->threads);
	n = count_frames(t);
	/* The levels behind these have no references. */
	if (n > DAP_INDEXES)
		n = DAP_INDEXES;
	out_json_fmt(&ret->body, "{'stackFrames':[");
	for (size_t i = start; i < n && (!levels || i - start < levels); i++)
		put_frame(d, &ret->body, d->focus, i);
	out_json_fmt(&ret->body, "],'totalFrames':%zu}", n);
	return 0;
}
