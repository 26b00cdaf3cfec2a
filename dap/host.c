/* SPDX-License-Identifier: MIT */
/*
 * What the threads of the process do on the processors, as further threads of the editor's.  They are never
 * stopped, and nothing of them can be changed: their frames are what was read when the snapshot was taken.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "dap/adapter.h"
#include "protocol/rpc_queue_place.h"

/* Behind the numbers of all threads of GPUs. */
#define FIRST_ID 1001u
/* With the line for those that are not shown. */
#define SHOWN_MAX 512u

/* One frame: of Python, or of native code. */
struct line {
	const struct rpc_thread_frame *python;
	const struct rpc_native_frame *native;
};

static bool is_joined(const struct rpc_thread_group *g)
{
	for (size_t i = 0; i < g->n_native_frames; i++)
		if (g->native_frames[i].has_python_frames)
			return true;
	return false;
}

/* Native frames with those of Python in the place of the calls that run them; else Python's, then the native ones. */
static size_t list_lines(struct rpc_arena *a, const struct rpc_thread_group *g, struct line **ret)
{
	struct line *lines = rpc_arena_array(a, g->n_frames + g->n_native_frames, sizeof(*lines));
	size_t n = 0, at = 0;

	*ret = lines;
	if (!lines)
		return 0;
	if (!is_joined(g))
		for (; at < g->n_frames; at++)
			lines[n++] = (struct line){ .python = &g->frames[at] };
	for (size_t i = 0; i < g->n_native_frames; i++) {
		const struct rpc_native_frame *f = &g->native_frames[i];

		if (!f->has_python_frames)
			lines[n++] = (struct line){ .native = f };
		for (uint32_t k = 0; f->has_python_frames && k < f->python_frames && at < g->n_frames; k++)
			lines[n++] = (struct line){ .python = &g->frames[at++] };
	}
	/* Those of calls that are not among the native frames. */
	while (at < g->n_frames)
		lines[n++] = (struct line){ .python = &g->frames[at++] };
	return n;
}

/* ------------------------------------------------------------------ asking ------------------- */

/* Give each frame a number; those behind the last that there is room for have none. */
static void number_frames(struct dap *d, struct dap_snapshot *s)
{
	uint32_t n = 0;

	for (size_t i = 0; i < s->host.n_groups; i++)
		n += (uint32_t)(s->host.groups[i].n_frames + s->host.groups[i].n_native_frames);
	if (d->n_refs > INT32_MAX - n)
		return;
	s->host_first = d->n_refs + 1;
	s->host_frames = n;
	d->n_refs += n;
}

void dap_host_look(struct dap *d, struct dap_snapshot *s)
{
	struct rpc_host_stacks_params p = { .pid = s->doc.process.pid };
	struct agent_err err = { 0 };
	int r;

	if (!d->host_threads || dap_is_core(d))
		return;
	r = rpc_queue_places(&s->arena, s->doc.queues, s->doc.n_queues, &p);
	if (r == 0)
		r = rpc_client_host_stacks(d->client, &p, &s->arena, &s->host, &err);
	else
		agent_err_no_memory(&err, NULL);
	if (r < 0) {
		s->host = (struct rpc_host_stacks_result){ 0 };
		if (err.err != ECANCELED)
			dap_output(d, "console", "missing: host: %s", err.message);
		return;
	}
	number_frames(d, s);
	for (size_t i = 0; i < s->host.n_missing && i < 8; i++)
		dap_output(d, "console", "missing: host: %s", s->host.missing[i]);
	for (size_t i = 0; i < s->host.n_findings; i++)
		dap_output(d, "important", "%s", s->host.findings[i]);
}

/* ------------------------------------------------------------------ threads ------------------ */

static void put_words(struct out *o, const char *name)
{
	for (; name && *name; name++)
		out_char(o, *name == '_' ? ' ' : *name);
}

static void put_wait(struct out *o, const struct rpc_thread_wait *w)
{
	if (w->has_queue_id)
		out_fmt(o, " for dispatch %" PRIu64 " of queue %u", w->dispatch, w->queue_id);
	if (w->done)
		out_str(o, ", which is done");
}

static void put_place(struct out *o, const struct rpc_thread_group *g)
{
	for (size_t i = 0; !g->n_frames && i < g->n_native_frames; i++)
		if (g->native_frames[i].function && !g->native_frames[i].guessed) {
			out_fmt(o, " %s", g->native_frames[i].function);
			return;
		}
	if (!g->n_frames)
		return;
	out_fmt(o, " %s", str_base_name(g->frames[0].file));
	if (g->frames[0].has_line)
		out_fmt(o, ":%u", g->frames[0].line);
	out_fmt(o, " %s", g->frames[0].function);
}

/* `CPU: 3 x python3 train.py:12 train_step, blocked in ioctl, gpu wait for dispatch 7 of queue 1` */
static const char *name_of(struct rpc_arena *a, const struct rpc_thread_group *g)
{
	auto_out struct out o = { 0 };

	out_fmt(&o, "CPU: %u x %s", g->threads, g->representative.name);
	put_place(&o, g);
	out_str(&o, ", ");
	put_words(&o, rpc_enum_name(&rpc_thread_state_enum, g->state));
	if (g->waits_in)
		out_fmt(&o, " in %s", g->waits_in);
	if (g->has_role) {
		out_str(&o, ", ");
		put_words(&o, rpc_enum_name(&rpc_thread_role_enum, g->role));
	}
	if (g->has_waits_for)
		put_wait(&o, &g->waits_for);
	if (g->holds_lock)
		out_str(&o, ", holds the lock");
	if (!g->consistent)
		out_str(&o, ", frames may be of different moments");
	return out_error(&o) ? NULL : rpc_arena_strdup(a, o.data);
}

static size_t count_shown(const struct dap_snapshot *s)
{
	return s->host.n_groups > SHOWN_MAX ? SHOWN_MAX - 1 : s->host.n_groups;
}

void dap_host_threads(struct dap *d, struct out *o)
{
	const struct dap_snapshot *s = d->snap;
	size_t n = count_shown(s);

	for (size_t i = 0; i < n; i++)
		out_json_fmt(o, ",{'id':%zu,'name':%s}", FIRST_ID + i, name_of(&d->arena, &s->host.groups[i]));
	if (n < s->host.n_groups)
		out_json_fmt(o, ",{'id':%zu,'name':'CPU: %zu more groups of threads'}", FIRST_ID + n,
			     s->host.n_groups - n);
}

bool dap_host_is_thread(const struct dap *d, struct dap_json args)
{
	int64_t id;

	return dap_json_i64(dap_json_get(args, "threadId"), &id) && id >= FIRST_ID &&
	       (uint64_t)id - FIRST_ID < count_shown(d->snap);
}

/* ------------------------------------------------------------------ frames ------------------- */

static bool has_frame(const struct dap_snapshot *s, uint64_t number)
{
	return s && number >= s->host_first && number - s->host_first < s->host_frames;
}

bool dap_host_is_frame(const struct dap *d, struct dap_json v)
{
	int64_t n;

	return dap_json_i64(v, &n) && n > 0 && (has_frame(d->snap, (uint64_t)n) || has_frame(d->before, (uint64_t)n));
}

static void put_python(struct dap *d, struct out *o, const struct rpc_thread_frame *f)
{
	const char *path = dap_source_path(d, &d->arena, f->file);

	out_json_fmt(o, ",'name':%s,'source':{'name':%s", f->function, str_base_name(f->file));
	if (path)
		dap_put_path(d, o, path);
	else
		out_json_fmt(o, ",'origin':%s", f->file);
	out_json_fmt(o, "},'line':%u,'column':%u}", f->has_line && f->line ? f->line - !d->lines_from : 0,
		     f->has_line ? d->columns_from : 0);
}

static void put_native(struct dap *d, struct out *o, const struct rpc_native_frame *f)
{
	const char *function = f->function ? f->function : rpc_arena_printf(&d->arena, "0x%" PRIx64, f->address);
	const char *module = f->module ? str_base_name(f->module) : "code of no file";

	out_json_fmt(o, ",'name':%s,'line':0,'column':0,'presentationHint':'subtle'}",
		     rpc_arena_printf(&d->arena, "%s (%s)%s", function ? function : "", module,
				      f->guessed ? " (guessed)" : ""));
}

int dap_host_stack(struct dap *d, const struct dap_request *q, uint64_t start, uint64_t levels, struct dap_answer *ret)
{
	const struct dap_snapshot *s = d->snap;
	uint32_t number = s->host_first;
	struct line *lines;
	int64_t id = 0;
	size_t n;

	(void)dap_json_i64(dap_json_get(q->args, "threadId"), &id);
	for (size_t i = 0; i < (size_t)id - FIRST_ID; i++)
		number += (uint32_t)(s->host.groups[i].n_frames + s->host.groups[i].n_native_frames);
	n = list_lines(&d->arena, &s->host.groups[(size_t)id - FIRST_ID], &lines);
	out_json_fmt(&ret->body, "{'stackFrames':[");
	for (size_t i = start; s->host_first && i < n && (!levels || i - start < levels); i++) {
		out_json_fmt(&ret->body, ",{'id':%u", number + (uint32_t)i);
		if (lines[i].python)
			put_python(d, &ret->body, lines[i].python);
		else
			put_native(d, &ret->body, lines[i].native);
	}
	out_json_fmt(&ret->body, "],'totalFrames':%zu}", s->host_first ? n : 0);
	return 0;
}
