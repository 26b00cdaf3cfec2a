/* SPDX-License-Identifier: MIT */
/* What one capture adds to a recording: waves by kernel, function and line, and threads by their frames. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/out.h"
#include "base/str.h"
#include "ctl/record/recording.h"

/* Functions of a stack; the root, a kernel, a place and a state come to them. */
#define FUNCTIONS_MAX (RECORDING_DEPTH_MAX - 4)

/* A stack that is being put together. */
struct path {
	struct recording *r;
	const struct recording_frame *frames[RECORDING_DEPTH_MAX];
	size_t depth;
};

static void push(struct path *p, enum recording_kind kind, const char *name, const char *file, uint32_t line)
{
	if (p->depth < RECORDING_DEPTH_MAX)
		p->frames[p->depth++] = recording_frame(p->r, kind, name, file, line);
}

/* Begin a stack.  @return 0, -ENOMEM (not even the root has room). */
static int begin(struct path *p, struct recording *r, const char *behind)
{
	char root[300];

	snprintf(root, sizeof(root), "%.250s%s", r->process, behind);
	*p = (struct path){ .r = r };
	push(p, RECORDING_ROOT, root, NULL, 0);
	return p->frames[0] ? 0 : -ENOMEM;
}

/* Give each of several parts its part of a capture: all together are a whole one, whatever is rounded. */
static uint64_t part_of_capture(uint64_t *done, uint64_t part, uint64_t whole)
{
	uint64_t before = *done;

	*done += part;
	return *done * RECORDING_CAPTURE / whole - before * RECORDING_CAPTURE / whole;
}

/* ------------------------------------------------------------------ waves -------------------- */

static void push_kernel(struct path *p, const struct rpc_group *g)
{
	char address[32] = "(unknown kernel)";

	if (g->has_kernel)
		snprintf(address, sizeof(address), "0x%" PRIx64, g->kernel.address);
	push(p, RECORDING_KERNEL, g->has_kernel && g->kernel.name ? g->kernel.name : address, NULL, 0);
}

/* The functions of a group, innermost first. */
static size_t functions_of(const struct rpc_group *g, const struct rpc_frame **ret)
{
	size_t n = 0;

	for (size_t i = 0; i < g->n_frames && n < FUNCTIONS_MAX; i++)
		ret[n++] = &g->frames[i];
	for (size_t i = 0; i < g->n_callers; i++)
		for (size_t k = 0; k < g->callers[i].n_frames && n < FUNCTIONS_MAX; k++)
			ret[n++] = &g->callers[i].frames[k];
	return n;
}

/* The outermost function of a stack is the kernel itself, which has a frame already. */
static bool is_kernel(const struct rpc_group *g, const struct rpc_frame *f)
{
	if (!g->has_kernel)
		return false;
	if (f->raw && g->kernel.raw && !strcmp(f->raw, g->kernel.raw))
		return true;
	return f->function && g->kernel.name && !strcmp(f->function, g->kernel.name);
}

static void push_place(struct path *p, const struct rpc_group *g)
{
	const struct rpc_frame *f = g->n_frames ? &g->frames[0] : NULL;
	char text[300];

	if (f && f->file && f->has_line) {
		snprintf(text, sizeof(text), "%.250s:%" PRIu32, str_base_name(f->file), f->line);
		push(p, RECORDING_PLACE, text, f->file, f->line);
	} else {
		snprintf(text, sizeof(text), "0x%" PRIx64, g->pc);
		push(p, RECORDING_PLACE, text, NULL, 0);
	}
}

static int add_group(struct recording *r, const struct rpc_group *g, uint64_t weight)
{
	const struct rpc_frame *functions[FUNCTIONS_MAX];
	size_t n = functions_of(g, functions);
	struct path p;

	if (begin(&p, r, "") < 0)
		return -ENOMEM;
	push_kernel(&p, g);
	if (n && is_kernel(g, functions[n - 1]))
		n--;
	for (; n > 0; n--)
		if (functions[n - 1]->function)
			push(&p, RECORDING_FUNCTION, functions[n - 1]->function, functions[n - 1]->file, 0);
	push_place(&p, g);
	return recording_add(r, false, p.frames, p.depth, weight);
}

/* A capture that saw nothing counts as much as any other. */
static int add_nothing(struct recording *r, const char *behind, bool threads, const char *what)
{
	struct path p;

	if (begin(&p, r, behind) < 0)
		return -ENOMEM;
	push(&p, RECORDING_STATE, what, NULL, 0);
	return recording_add(r, threads, p.frames, p.depth, RECORDING_CAPTURE);
}

int recording_add_waves(struct recording *r, const struct rpc_gpu_snapshot_result *s)
{
	uint64_t waves = 0, done = 0;
	int k = 0;

	for (size_t i = 0; i < s->n_groups; i++)
		waves += s->groups[i].waves;
	if (!waves)
		k = add_nothing(r, "", false, "(no waves)");
	for (size_t i = 0; k == 0 && waves && i < s->n_groups; i++)
		k = add_group(r, &s->groups[i], part_of_capture(&done, s->groups[i].waves, waves));
	r->captures += k == 0;
	return k;
}

/* ------------------------------------------------------------------ threads ------------------ */

static void push_python(struct path *p, const struct rpc_thread_group *g)
{
	const struct rpc_thread_frame *f = g->frames;
	size_t n = g->n_frames < FUNCTIONS_MAX / 2 ? g->n_frames : FUNCTIONS_MAX / 2;
	char text[300];

	for (; n > 0; n--)
		push(p, RECORDING_FUNCTION, f[n - 1].function, f[n - 1].file, 0);
	if (!g->n_frames || !f->has_line)
		return;
	snprintf(text, sizeof(text), "%.250s:%" PRIu32, str_base_name(f->file), f->line);
	push(p, RECORDING_PLACE, text, f->file, f->line);
}

/* Native frames, of a thread in Python only those that it has called: the interpreter's own say nothing. */
static void push_native(struct path *p, const struct rpc_thread_group *g)
{
	size_t n = 0, most = FUNCTIONS_MAX - 1 - (p->depth < FUNCTIONS_MAX - 1 ? p->depth : FUNCTIONS_MAX - 1);

	while (n < g->n_native_frames && n < most && !(g->n_frames && g->native_frames[n].has_python_frames))
		n++;
	for (; n > 0; n--) {
		const struct rpc_native_frame *f = &g->native_frames[n - 1];

		if (f->function)
			push(p, RECORDING_FUNCTION, f->function, f->module, 0);
	}
}

static int add_thread_group(struct recording *r, const char *behind, const struct rpc_thread_group *g, uint64_t weight)
{
	const char *state = rpc_thread_state_name(g->state);
	char text[160];
	struct path p;

	if (begin(&p, r, behind) < 0)
		return -ENOMEM;
	push_python(&p, g);
	push_native(&p, g);
	snprintf(text, sizeof(text), "(%.40s%s%.80s)", state ? state : "?", g->waits_in ? " in " : "",
		 g->waits_in ? g->waits_in : "");
	push(&p, RECORDING_PLACE, text, NULL, 0);
	return recording_add(r, true, p.frames, p.depth, weight);
}

int recording_add_threads(struct recording *r, const struct rpc_host_stacks_result *h)
{
	static const char behind[] = ", threads";
	uint64_t threads = 0, done = 0;
	int k = 0;

	for (size_t i = 0; i < h->n_groups; i++)
		threads += h->groups[i].threads;
	if (!threads)
		k = add_nothing(r, behind, true, "(no threads)");
	for (size_t i = 0; k == 0 && threads && i < h->n_groups; i++)
		k = add_thread_group(r, behind, &h->groups[i], part_of_capture(&done, h->groups[i].threads, threads));
	r->thread_captures += k == 0;
	return k;
}
