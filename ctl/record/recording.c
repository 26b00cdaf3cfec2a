/* SPDX-License-Identifier: MIT */
#include "ctl/record/recording.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/vec.h"
#include "ctl/terminal/text.h"

/* Bytes of all frames, stacks and texts, and of one text. */
#define MEMORY_MAX ((size_t)96 << 20)
#define TEXT_MAX 1024
/* Kept for what says that there was no room: a root, and this place below it. */
#define MEMORY_KEPT ((size_t)64 << 10)
#define STACKS_KEPT 2

static const char other_places[] = "(other places)";

/* ------------------------------------------------------------------ memory ------------------- */

int recording_init(struct recording *r, const char *process)
{
	*r = (struct recording){ 0 };
	rpc_arena_init(&r->arena, MEMORY_MAX);
	r->process = rpc_arena_strdup(&r->arena, process);
	return r->process ? 0 : -ENOMEM;
}

void recording_deinit(struct recording *r)
{
	free(r->frames);
	free(r->stacks);
	rpc_arena_deinit(&r->arena);
	*r = (struct recording){ 0 };
}

int recording_reset(struct recording *r)
{
	struct recording old = *r;
	int k = recording_init(r, old.process);

	recording_deinit(&old);
	return k;
}

/* Copy a text, and cut what no reader of a flame graph would read; NULL when there is no room. */
static const char *keep_text(struct recording *r, const char *text)
{
	char cut[TEXT_MAX];

	if (strlen(text) < sizeof(cut))
		return rpc_arena_strdup(&r->arena, text);
	str_copy(cut, sizeof(cut), text);
	return rpc_arena_strdup(&r->arena, cut);
}

/* Whether there is room for something that may be left out. */
static bool has_room(const struct recording *r, size_t n)
{
	return n < RECORDING_STACKS_MAX - STACKS_KEPT && r->arena.used < MEMORY_MAX - MEMORY_KEPT;
}

/* ------------------------------------------------------------------ frames ------------------- */

/* As keep_text() keeps it: two texts that it would make equal are equal. */
static int compare_texts(const char *a, const char *b)
{
	return strncmp(a, b, TEXT_MAX - 4);
}

static int compare_frames(const struct recording_frame *a, const struct recording_frame *b)
{
	int c = compare_texts(a->name, b->name);

	if (c == 0)
		c = compare_texts(a->file, b->file);
	if (c)
		return c;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return (a->kind > b->kind) - (a->kind < b->kind);
}

/* Where a frame is among the sorted ones, or belongs. */
static size_t find_frame(const struct recording *r, const struct recording_frame *wanted, bool *ret_found)
{
	size_t low = 0, high = r->n_frames;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int c = compare_frames(r->frames[middle], wanted);

		*ret_found = c == 0;
		if (*ret_found)
			return middle;
		if (c < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_found = false;
	return low;
}

const struct recording_frame *recording_frame(struct recording *r, enum recording_kind kind, const char *name,
					      const char *file, uint32_t line)
{
	const struct recording_frame wanted = { .kind = kind, .name = name, .file = file ? file : "", .line = line };
	struct recording_frame *frame;
	bool found;
	size_t at = find_frame(r, &wanted, &found);

	if (found)
		return r->frames[at];
	if ((kind != RECORDING_ROOT && kind != RECORDING_STATE && !has_room(r, r->n_frames)) ||
	    vec_reserve(&r->frames, r->n_frames, 1, &r->frames_capacity, sizeof(*r->frames)) < 0)
		return NULL;
	frame = rpc_arena_alloc(&r->arena, sizeof(*frame));
	if (!frame)
		return NULL;
	*frame = wanted;
	frame->id = (uint32_t)r->n_frames;
	frame->name = keep_text(r, name);
	frame->file = keep_text(r, wanted.file);
	if (!frame->name || !frame->file)
		return NULL;
	memmove(r->frames + at + 1, r->frames + at, (r->n_frames - at) * sizeof(*r->frames));
	r->frames[at] = frame;
	r->n_frames++;
	return frame;
}

/* ------------------------------------------------------------------ stacks ------------------- */

static int compare_ids(const struct recording_frame *const *a, size_t n_a, const struct recording_frame *const *b,
		       size_t n_b)
{
	for (size_t i = 0; i < n_a && i < n_b; i++)
		if (a[i]->id != b[i]->id)
			return a[i]->id < b[i]->id ? -1 : 1;
	return (n_a > n_b) - (n_a < n_b);
}

/* Where a stack is among the sorted ones, or belongs. */
static size_t find_stack(const struct recording *r, const struct recording_frame *const *frames, size_t depth,
			 bool *ret_found)
{
	size_t low = 0, high = r->n_stacks;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct recording_stack *s = r->stacks[middle];
		int c = compare_ids(s->frames, s->depth, frames, depth);

		*ret_found = c == 0;
		if (*ret_found)
			return middle;
		if (c < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_found = false;
	return low;
}

static struct recording_stack *make_stack(struct recording *r, bool threads,
					  const struct recording_frame *const *frames, size_t depth)
{
	struct recording_stack *s = rpc_arena_alloc(&r->arena, sizeof(*s));

	if (s)
		s->frames = rpc_arena_array(&r->arena, depth, sizeof(*s->frames));
	if (!s || !s->frames)
		return NULL;
	memcpy(s->frames, frames, depth * sizeof(*frames));
	s->threads = threads;
	s->depth = (uint32_t)depth;
	return s;
}

/* @return -ENOSPC: there is no room for a new one. */
static int add_stack(struct recording *r, bool threads, const struct recording_frame *const *frames, size_t depth,
		     uint64_t weight)
{
	struct recording_stack *s;
	bool found;
	size_t at = find_stack(r, frames, depth, &found);

	if (found) {
		r->stacks[at]->weight += weight;
		return 0;
	}
	if ((depth > 2 && !has_room(r, r->n_stacks)) ||
	    vec_reserve(&r->stacks, r->n_stacks, 1, &r->stacks_capacity, sizeof(*r->stacks)) < 0)
		return -ENOSPC;
	s = make_stack(r, threads, frames, depth);
	if (!s)
		return -ENOSPC;
	s->weight = weight;
	memmove(r->stacks + at + 1, r->stacks + at, (r->n_stacks - at) * sizeof(*r->stacks));
	r->stacks[at] = s;
	r->n_stacks++;
	return 0;
}

int recording_add(struct recording *r, bool threads, const struct recording_frame *const *frames, size_t depth,
		  uint64_t weight)
{
	const struct recording_frame *other[2] = { depth ? frames[0] : NULL };
	bool whole = depth > 1;

	for (size_t i = 0; i < depth; i++)
		whole = whole && frames[i];
	if (!weight)
		return 0;
	if (whole && add_stack(r, threads, frames, depth, weight) == 0)
		return 0;
	r->full = true;
	other[1] = recording_frame(r, RECORDING_STATE, other_places, NULL, 0);
	if (!other[0] || !other[1])
		return -ENOMEM;
	return add_stack(r, threads, other, 2, weight) < 0 ? -ENOMEM : 0;
}

/* ------------------------------------------------------------------ shares ------------------- */

struct recording_share recording_share(const struct recording *r, bool threads, uint64_t weight)
{
	double captures = threads ? r->thread_captures : r->captures;
	double share = captures > 0 ? (double)weight / (captures * (double)RECORDING_CAPTURE) : 0;

	share = share < 1 ? share : 1;
	return (struct recording_share){ .share = share, .interval = interval_of(share, captures) };
}

static int compare_by_name(const void *x, const void *y)
{
	const struct recording_stack *a = *(const struct recording_stack *const *)x;
	const struct recording_stack *b = *(const struct recording_stack *const *)y;

	if (a->threads != b->threads)
		return a->threads ? 1 : -1;
	for (size_t i = 0; i < a->depth && i < b->depth; i++) {
		int c = compare_frames(a->frames[i], b->frames[i]);

		if (c)
			return c;
	}
	return (a->depth > b->depth) - (a->depth < b->depth);
}

static int compare_by_share(const void *x, const void *y)
{
	const struct recording_share *a = x, *b = y;

	if (a->share != b->share)
		return a->share > b->share ? -1 : 1;
	return compare_by_name(&a->stack, &b->stack);
}

int recording_shares(const struct recording *r, struct rpc_arena *a, struct recording_share **ret)
{
	struct recording_share *list = rpc_arena_array(a, r->n_stacks, sizeof(*list));

	if (!list)
		return rpc_arena_error(a);
	for (size_t i = 0; i < r->n_stacks; i++) {
		const struct recording_stack *s = r->stacks[i];

		list[i] = recording_share(r, s->threads, s->weight);
		list[i].stack = s;
	}
	if (r->n_stacks)
		qsort(list, r->n_stacks, sizeof(*list), compare_by_share);
	*ret = list;
	return 0;
}

int recording_sorted(const struct recording *r, struct rpc_arena *a, const struct recording_stack *const **ret)
{
	const struct recording_stack **list = rpc_arena_array(a, r->n_stacks, sizeof(const struct recording_stack *));

	if (!list)
		return rpc_arena_error(a);
	for (size_t i = 0; i < r->n_stacks; i++)
		list[i] = r->stacks[i];
	if (r->n_stacks)
		qsort(list, r->n_stacks, sizeof(*list), compare_by_name);
	*ret = list;
	return 0;
}

/* ------------------------------------------------------------------ facts -------------------- */

/* Append millionths as percent: `0.98 %`. */
static void put_percent(struct out *o, double ppm)
{
	out_fmt(o, ppm < 100 ? "%.4f %%" : ppm < 100000 ? "%.2f %%" : "%.1f %%", ppm / 10000);
}

void recording_put_facts(struct out *o, const struct recording *r, const struct recording_facts *f)
{
	double seconds = (double)f->duration_us / 1e6;

	out_fmt(o, "%" PRIu32 " capture%s in ", r->captures, r->captures == 1 ? "" : "s");
	text_duration(o, f->duration_us / 1000);
	if (r->captures && seconds > 0)
		out_fmt(o, ", %.3g a second", r->captures / seconds);
	out_str(o, "; queues stood still for ");
	put_percent(o, f->measured_ppm);
	out_str(o, " of the time, of ");
	put_percent(o, f->budget_ppm);
	out_str(o, " allowed");
	if (f->unmeasured_us)
		out_fmt(o, ", and for at most %.2f ms more in calls that failed", (double)f->unmeasured_us / 1000);
}
