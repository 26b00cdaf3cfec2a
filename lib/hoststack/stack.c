/* SPDX-License-Identifier: MIT */
#include "hoststack/stack.h"

#include <errno.h>

#define TRIES 8

/* Name the frames of the walk.  @return 0; else the places up to the first frame that makes no sense are there. */
static int name_frames(struct hoststack_reader *r, struct hoststack_stack *s)
{
	const struct hoststack_walk *w = &r->walk;
	int e = 0;

	s->n = 0;
	s->elided = w->n > HOSTSTACK_PLACES_MAX ? w->n - HOSTSTACK_PLACES_MAX : 0;
	s->n_inner = s->elided ? HOSTSTACK_INNER_MAX : w->n;
	for (size_t i = 0; i < w->n && e == 0; i++) {
		if (s->elided && i == HOSTSTACK_INNER_MAX)
			i += s->elided;
		e = hoststack_codes_name(&r->codes, r->memory, r->python, &w->frames[i], &s->places[s->n]);
		s->n += e == 0;
	}
	if (e < 0 && s->n <= s->n_inner)
		s->elided = 0;
	s->is_cut = e < 0 || w->end < 0;
	return e;
}

/*
 * Read the thread once.
 * @param ret_whole  Everything that was read makes sense.
 * @return 0, -EAGAIN (it changed), -ENOMEM and others that end everything.
 */
static int read_once(struct hoststack_reader *r, const struct hoststack_thread *thread, struct hoststack_stack *s,
		     bool *ret_whole)
{
	int e = hoststack_copy_take(r->memory, r->python, thread, &r->copy);

	*ret_whole = false;
	if (e == 0)
		e = hoststack_walk(r->memory, r->python, &r->copy, &r->walk);
	if (e < 0)
		return hoststack_is_over(e) ? e : -EAGAIN;
	e = name_frames(r, s);
	*ret_whole = e == 0 && (r->walk.end == 0 || r->walk.end == -E2BIG);
	return hoststack_is_over(e) ? e : 0;
}

/* A whole stack of a thread that runs: what speaks for it? */
static enum hoststack_proof judge(struct hoststack_reader *r, bool has_last)
{
	struct hoststack_walk older = r->last;
	bool has_blocks = r->python->layout.minor >= 11;
	enum hoststack_proof proof = HOSTSTACK_ONE_READING;

	/* A frame that was not in the copy was read at another moment; the next copy has it. */
	if (has_blocks && r->walk.is_live)
		return HOSTSTACK_TORN;
	if (has_last && hoststack_walk_equal(&r->last, &r->walk))
		proof = HOSTSTACK_TWO_READINGS;
	else if (!has_blocks)
		proof = HOSTSTACK_TORN;
	r->last = r->walk;
	r->walk = older;
	return proof;
}

int hoststack_stack_read(struct hoststack_reader *r, const struct hoststack_thread *thread,
			 struct hoststack_stack *ret)
{
	bool has_last = false, has_any = false, is_whole;
	static const struct hoststack_stack nothing = { .proof = HOSTSTACK_TORN };

	*ret = nothing;
	ret->is_cut = true;
	hoststack_copy_forget(&r->copy);
	for (int i = 0; i < TRIES; i++) {
		bool rests = r->watch.rests(r->watch.ctx, thread->tid);
		struct hoststack_stack s;
		int e;

		s.proof = HOSTSTACK_TORN;
		e = read_once(r, thread, &s, &is_whole);
		if (hoststack_is_over(e))
			return e;
		if (e < 0)
			continue;
		if (rests && r->watch.rested(r->watch.ctx, thread->tid)) {
			/* It stands still, so another try would find the same. */
			s.proof = is_whole ? HOSTSTACK_NOT_SCHEDULED : HOSTSTACK_TORN;
			*ret = s;
			return 0;
		}
		if (is_whole) {
			s.proof = judge(r, has_last);
			has_last |= s.proof != HOSTSTACK_TORN || r->python->layout.minor < 11;
		}
		if (!has_any || s.proof <= ret->proof)
			*ret = s;
		has_any = true;
		if (s.proof == HOSTSTACK_TWO_READINGS)
			return 0;
	}
	return has_any ? 0 : -EBADMSG;
}

void hoststack_reader_deinit(struct hoststack_reader *r)
{
	hoststack_codes_free(&r->codes);
	hoststack_copy_free(&r->copy);
	hoststack_walk_free(&r->walk);
	hoststack_walk_free(&r->last);
}
