/* SPDX-License-Identifier: MIT */
/*
 * Locations as texts and as keys.  A key says where waves are in terms that hold in another
 * process, or on another day: names and lines before addresses.
 */
#include "ctl/document/place.h"

#include <inttypes.h>
#include <string.h>

#include "base/out.h"
#include "base/str.h"
#include "ctl/document/code_text.h"
#include "protocol/stop_reason.h"

/*
 * Most frames of a path.  What is left out are the outermost ones, in a chain longer than a person
 * reads.
 */
#define DEPTH_MAX 64

const char *place_reasons(struct rpc_arena *a, const struct rpc_group *g)
{
	return stop_reason_text(a, g->exception, g->reasons, g->n_reasons);
}

static bool has_line(const struct rpc_frame *f)
{
	return f->file && f->has_line;
}

bool place_is_line(const struct rpc_group *g)
{
	return g->n_frames && has_line(&g->frames[0]);
}

static const char *kernel_name(struct rpc_arena *a, const struct rpc_group *g)
{
	return code_text_kernel(a, g->has_kernel ? &g->kernel : NULL);
}

/* The innermost position: `reduce.cl:41`, or the pc. */
static const char *position(struct rpc_arena *a, const struct rpc_group *g)
{
	if (place_is_line(g))
		return rpc_arena_printf(a, "%s:%" PRIu32, str_base_name(g->frames[0].file),
					g->frames[0].line);
	return rpc_arena_printf(a, "0x%" PRIx64, g->pc);
}

const char *place_name(struct rpc_arena *a, const struct rpc_group *g)
{
	const char *where = position(a, g), *kernel = kernel_name(a, g);

	return kernel && where ? rpc_arena_printf(a, "%s in %s", where, kernel) : where;
}

/* Append ` <- ` and a function, unless it is unknown. */
static void put_function(struct out *o, struct rpc_arena *a, const struct rpc_frame *f, size_t i)
{
	const char *name = f->function ? code_text_name(a, f->function) : NULL;

	if (name)
		out_fmt(o, "%s%s", i ? " <- " : " ", name);
}

/* Is a function the kernel of the group? */
static bool is_kernel(struct rpc_arena *a, const struct rpc_group *g, const char *function)
{
	const char *kernel = kernel_name(a, g), *name = function ? code_text_name(a, function) : NULL;

	return kernel && name && !strcmp(kernel, name);
}

/* The outermost function that a stack shows; NULL: it is not known. */
static const char *outermost(const struct rpc_group *g)
{
	const struct rpc_caller *last = g->n_callers ? &g->callers[g->n_callers - 1] : NULL;

	if (last)
		return last->n_frames ? last->frames[last->n_frames - 1].function : NULL;
	return g->n_frames ? g->frames[g->n_frames - 1].function : NULL;
}

const char *place_where_arguments(struct rpc_arena *a, const struct rpc_group *g)
{
	const char *where = place_where(a, g), *kernel = kernel_name(a, g);
	auto_out struct out o = { 0 };

	if (!where || !kernel || !g->has_arguments)
		return where;
	out_str(&o, where);
	/* What called a function that is not inlined is named already. */
	if (!g->n_callers || !is_kernel(a, g, outermost(g)))
		out_fmt(&o, "%s%s", strchr(where, ' ') ? " <- " : " ", kernel);
	/* A narrow column goes on below between words: a number is never torn apart. */
	out_char(&o, ' ');
	code_text_arguments(&o, g);
	return out_error(&o) ? NULL : rpc_arena_strdup(a, o.data);
}

const char *place_of_group(struct rpc_arena *a, const struct rpc_group *g)
{
	const char *where = position(a, g), *kernel = kernel_name(a, g);
	auto_out struct out o = { 0 };

	if (!kernel || !where)
		return where;
	out_str(&o, kernel);
	code_text_arguments(&o, g);
	out_fmt(&o, ", %s", where);
	return out_error(&o) ? NULL : rpc_arena_strdup(a, o.data);
}

const char *place_where(struct rpc_arena *a, const struct rpc_group *g)
{
	const char *where = position(a, g), *kernel = kernel_name(a, g);
	auto_out struct out o = { 0 };
	size_t n = g->n_frames;

	/* The outermost function is the kernel, unless something that is not inlined called it. */
	if (n && kernel && !g->n_callers && g->frames[n - 1].function) {
		const char *outer = code_text_name(a, g->frames[n - 1].function);

		n -= outer && !strcmp(outer, kernel);
	}
	out_str(&o, where ? where : "?");
	for (size_t i = 0; i < n; i++)
		put_function(&o, a, &g->frames[i], i);
	code_text_callers(&o, a, g);
	return out_error(&o) ? NULL : rpc_arena_strdup(a, o.data);
}

const char *place_of_kernel(struct rpc_arena *a, const struct rpc_kernel *kernel,
			    const struct rpc_frame *frames, size_t n_frames, uint64_t pc)
{
	const struct rpc_group g = { .has_kernel = kernel != NULL,
				     .kernel = kernel ? *kernel : (struct rpc_kernel){ 0 },
				     .frames = (struct rpc_frame *)frames,
				     .n_frames = n_frames,
				     .pc = pc };
	const char *where = position(a, &g), *name = kernel_name(a, &g);

	return name && where ? rpc_arena_printf(a, "%s, %s", name, where) : where;
}

const char *place_words(struct rpc_arena *a, const char *name)
{
	const char *colon = name ? strstr(name, ": ") : NULL;
	char *words;

	if (!name)
		return NULL;
	if (str_starts_with(name, "CUDA_EXCEPTION") && colon)
		return rpc_arena_strdup(a, colon + 2);
	words = rpc_arena_strdup(a, name);
	for (char *c = words; c && *c; c++)
		*c = *c == '_' ? ' ' : *c == ',' ? '/' : *c;
	return words;
}

const char *place_state(struct rpc_arena *a, const struct rpc_group *g)
{
	const char *reasons = place_reasons(a, g), *state = rpc_enum_name(&rpc_wave_state_enum, g->state);

	if (!str_is_empty(reasons))
		return place_words(a, reasons);
	return state ? state : rpc_arena_printf(a, "%d", (int)g->state);
}

/* The multiprocessors that recorded an exception. */
static const char *units(struct rpc_arena *a, const struct rpc_exited_exception *e)
{
	if (e->units == 1)
		return rpc_arena_printf(a, "multiprocessor %" PRIu32 " of device %" PRIu32, e->unit,
					e->gpu_id);
	return rpc_arena_printf(a, "%" PRIu32 " multiprocessors of device %" PRIu32 " (%" PRIu32
				" is the first)", e->units, e->gpu_id, e->unit);
}

const char *place_exited(struct rpc_arena *a, const struct rpc_exited_exception *e)
{
	const char *on = units(a, e), *place = NULL;

	if (e->has_pc)
		place = code_text_location(a, e->frames, e->n_frames, e->pc);
	if (!on)
		return NULL;
	return rpc_arena_printf(a, "on %s, in waves that have exited%s%s", on, place ? ", at " : "",
				place ? place : "");
}

/*
 * One frame as text: `sum_block reduce.cl:41`, or the name alone.  The line alone stands for the
 * kernel, which is a node of its own.
 */
static const char *frame_text(struct rpc_arena *a, const struct rpc_frame *f, const char *kernel)
{
	const char *name = f->function ? code_text_name(a, f->function) : "?";

	if (!name || !has_line(f))
		return name;
	if (!f->function || (kernel && !strcmp(name, kernel)))
		return rpc_arena_printf(a, "%s:%" PRIu32, str_base_name(f->file), f->line);
	return rpc_arena_printf(a, "%s %s:%" PRIu32, name, str_base_name(f->file), f->line);
}

size_t place_path(struct rpc_arena *a, const struct rpc_group *g, const char *const **ret)
{
	const char **path = rpc_arena_array(a, DEPTH_MAX + 2, sizeof(*path));
	size_t n = 0, frames = g->n_frames < DEPTH_MAX ? g->n_frames : DEPTH_MAX;

	if (!path)
		return 0;
	if (g->has_kernel)
		path[n++] = kernel_name(a, g);
	for (size_t i = frames; i > 0; i--)
		path[n++] = frame_text(a, &g->frames[i - 1], i == frames ? kernel_name(a, g) : NULL);
	if (!place_is_line(g))
		path[n++] = position(a, g);
	*ret = path;
	return rpc_arena_error(a) < 0 ? 0 : n;
}

int place_compare_paths(const char *const *x, size_t n_x, const char *const *y, size_t n_y)
{
	for (size_t i = 0; i < n_x && i < n_y; i++) {
		int c = strcmp(x[i], y[i]);

		if (c)
			return c;
	}
	return (n_x > n_y) - (n_x < n_y);
}

/*
 * Append a text to a key.  The length in front keeps a text that a target chose from looking like
 * other members.
 */
static void key_text(struct out *o, const char *text)
{
	if (text)
		out_fmt(o, "%zu:%s ", strlen(text), text);
	else
		out_str(o, "- ");
}

/* Append the kernel: by its name, or by its address, which only this process has it at. */
static void key_kernel(struct out *o, const struct rpc_group *g)
{
	if (!g->has_kernel)
		out_str(o, "- ");
	else if (g->kernel.raw || g->kernel.name)
		key_text(o, g->kernel.raw ? g->kernel.raw : g->kernel.name);
	else
		out_fmt(o, "0x%" PRIx64 " ", g->kernel.address);
}

static void key_reasons(struct out *o, const struct rpc_group *g)
{
	for (size_t i = 0; i < g->n_reasons; i++)
		out_fmt(o, ",%u", g->reasons[i]);
	if (g->exception)
		key_text(o, g->exception);
}

const char *place_key(struct rpc_arena *a, const struct rpc_group *g, bool device)
{
	/*
	 * Code objects lie elsewhere in each process but keep their shape: the pc is counted from
	 * the kernel, where that has a name to be found by.
	 */
	bool relative = g->has_kernel && (g->kernel.raw || g->kernel.name);
	auto_out struct out o = { 0 };

	key_kernel(&o, g);
	for (size_t i = 0; i < g->n_frames; i++) {
		const struct rpc_frame *f = &g->frames[i];

		key_text(&o, f->raw ? f->raw : f->function);
		key_text(&o, f->file);
		out_fmt(&o, "%" PRIu32 " ", f->has_line ? f->line : 0);
	}
	if (!place_is_line(g))
		out_fmt(&o, "0x%" PRIx64 " ", g->pc - (relative ? g->kernel.address : 0));
	out_fmt(&o, "%u", g->state);
	key_reasons(&o, g);
	if (device)
		out_fmt(&o, " on %u", g->gpu_id);
	return out_error(&o) ? NULL : rpc_arena_strndup(a, o.data, o.size);
}

const char *place_kernel_key(struct rpc_arena *a, const struct rpc_group *g)
{
	auto_out struct out o = { 0 };

	if (g->has_kernel && (g->kernel.raw || g->kernel.name))
		key_kernel(&o, g);
	key_reasons(&o, g);
	return out_error(&o) ? NULL : rpc_arena_strndup(a, o.data ? o.data : "", o.size);
}
