/* SPDX-License-Identifier: MIT */
#include "hoststack/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* Low bits of a pointer to an object that say something about the reference (3.14 on). */
#define TAG_MASK UINT64_C(7)
/* Owners from here on are no frames of Python code (3.12 on). */
#define OWNER_PYTHON_MAX 2

static int add(struct hoststack_walk *w, const struct hoststack_frame *f)
{
	if (vec_reserve(&w->frames, w->n, 1, &w->capacity, sizeof(*w->frames)) < 0)
		return -ENOMEM;
	w->frames[w->n++] = *f;
	return 0;
}

/* @return 0, -EBADMSG, or as add(). */
static int take(const struct hoststack_python *p, const uint8_t *bytes, uint64_t address, struct hoststack_walk *w)
{
	const struct hoststack_layout *l = &p->layout;
	struct hoststack_frame f = { .frame = address,
				     .code = hoststack_number(bytes, l->frame_code, 8) & ~TAG_MASK,
				     .at = hoststack_number(bytes, l->frame_at, l->minor < 11 ? 4 : 8) };

	if (l->frame_owner && bytes[l->frame_owner] > OWNER_PYTHON_MAX) {
		if (l->minor < 12 || bytes[l->frame_owner] > 15)
			return -EBADMSG;
		/* From 3.12 on such a one lies below that of each call of the evaluation function. */
		if (w->n)
			w->frames[w->n - 1].is_entry = 1;
		return 0;
	}
	f.is_entry = l->minor < 11 || (l->frame_entry && bytes[l->frame_entry]);
	if (l->frame_tlbc && l->free_threaded)
		f.tlbc = hoststack_number(bytes, l->frame_tlbc, 4);
	return f.code ? add(w, &f) : -EBADMSG;
}

int hoststack_walk(struct hoststack_memory *m, const struct hoststack_python *p, struct hoststack_copy *c,
		   struct hoststack_walk *w)
{
	struct hoststack_circle circle = { 0 };
	uint8_t bytes[HOSTSTACK_FRAME_MAX];
	uint64_t at = c->frame;
	int r = 0;

	w->n = 0;
	w->is_live = false;
	for (size_t depth = 0; r == 0 && at; depth++) {
		if (depth == HOSTSTACK_DEPTH_MAX)
			r = -E2BIG;
		else if (hoststack_circle_closes(&circle, at))
			r = -ELOOP;
		else
			r = hoststack_copy_read(c, m, at, bytes, p->layout.frame_size, &w->is_live);
		if (r == 0)
			r = take(p, bytes, at, w);
		if (r == 0)
			at = hoststack_number(bytes, p->layout.frame_previous, 8);
	}
	w->end = r;
	return hoststack_is_over(r) ? r : 0;
}

void hoststack_walk_free(struct hoststack_walk *w)
{
	free(w->frames);
	*w = (struct hoststack_walk){ 0 };
}

bool hoststack_walk_equal(const struct hoststack_walk *a, const struct hoststack_walk *b)
{
	return a->n == b->n && a->end == b->end &&
	       (!a->n || !memcmp(a->frames, b->frames, a->n * sizeof(*a->frames)));
}
