/* SPDX-License-Identifier: MIT */
#include "hoststack/native/recovery.h"

#include <errno.h>

#define SEARCH_BYTES   UINT64_C(65536)
#define CANDIDATES_MAX 64
enum candidate {
	CANDIDATE_NONE,
	CANDIDATE_ANY, /* Something is called. */
	CANDIDATE_STRONG, /* The function itself is. */
};

/* A search, and what it has found. */
struct search {
	struct native_unwinder *unwinder;
	const struct native_walk *cut;
	const struct native_registers *registers;
	uint64_t places[CANDIDATES_MAX];
	enum candidate kinds[CANDIDATES_MAX];
	size_t n;
	struct native_walk found, trial;
	size_t n_found;
};

/* What does the code in front of a return address call? */
static enum candidate judge(struct search *s, uint64_t address, uint64_t function)
{
	const struct native_processor *p = s->unwinder->processor;
	const struct native_module *module = native_unwinder_find(s->unwinder, address - 1);
	uint8_t b[NATIVE_CALL_MAX];
	uint64_t called;

	if (!module || hoststack_read(s->unwinder->stack.memory, address - p->call_size, b, p->call_size) < 0)
		return CANDIDATE_NONE;
	switch (p->calls(b + p->call_size, address, &called)) {
	case NATIVE_CALLS_NOTHING:
		return CANDIDATE_NONE;
	case NATIVE_CALLS_ADDRESS:
		return function && called == function ? CANDIDATE_STRONG : CANDIDATE_ANY;
	default:
		return CANDIDATE_ANY;
	}
}

/* List the places that the frame pointer may point to.  @return 0, or why nothing more can be read. */
static int list(struct search *s)
{
	const uint64_t function = s->cut->frames[s->cut->n - 1].function;
	const struct native_processor *p = s->unwinder->processor;
	const uint64_t begin = s->registers->values[p->stack_pointer] & ~UINT64_C(7);

	for (uint64_t at = begin; at - begin < SEARCH_BYTES && s->n < CANDIDATES_MAX; at += 8) {
		uint64_t address;
		enum candidate kind;
		int e = native_stack_copy_read(&s->unwinder->stack, at + 8, &address, sizeof(address));

		if (e < 0)
			return hoststack_is_over(e) ? e : 0;
		address &= p->address_bits;
		kind = address < 4096 ? CANDIDATE_NONE : judge(s, address, function);
		if (kind == CANDIDATE_NONE)
			continue;
		s->places[s->n] = at;
		s->kinds[s->n++] = kind;
	}
	return 0;
}

/* Does the walk only skip frames of the one that was found?  The frames of callers further out lead outwards, too. */
static bool skips(const struct search *s)
{
	const size_t more = s->found.n - s->cut->n, n = s->trial.n - s->cut->n;

	if (s->found.end != NATIVE_END_OUTERMOST || n >= more)
		return false;
	for (size_t i = 1; i <= n; i++)
		if (s->found.frames[s->found.n - i].pc != s->trial.frames[s->trial.n - i].pc)
			return false;
	return true;
}

/* Keep what the walk and those before have in common. */
static void agree(struct search *s)
{
	size_t same = 0;

	if (s->n_found++ == 0) {
		s->found = s->trial;
		return;
	}
	if (skips(s))
		return;
	while (same < s->found.n && same < s->trial.n && s->found.frames[same].pc == s->trial.frames[same].pc)
		same++;
	if (same == s->found.n && same == s->trial.n)
		return;
	s->found.n = same;
	s->found.end = NATIVE_END_AMBIGUOUS;
}

static int try(struct search *s, enum candidate kind)
{
	for (size_t i = 0; i < s->n; i++) {
		struct native_registers registers = *s->registers;
		int e;

		if (s->kinds[i] != kind)
			continue;
		native_registers_set(&registers, s->unwinder->processor->frame_pointer, s->places[i]);
		s->trial = *s->cut;
		e = native_walk_on(s->unwinder, &s->trial, &registers);
		if (e < 0)
			return e;
		if (s->trial.end == NATIVE_END_OUTERMOST)
			agree(s);
	}
	return 0;
}

int native_recover(struct native_unwinder *u, struct native_walk *w, const struct native_registers *registers)
{
	struct search s;
	bool is_guessed;
	int e;

	if (w->end != NATIVE_END_REGISTER || w->missing != u->processor->frame_pointer)
		return 0;
	s = (struct search){ .unwinder = u, .cut = w, .registers = registers };
	e = list(&s);
	if (e == 0)
		e = try(&s, CANDIDATE_STRONG);
	is_guessed = !s.n_found;
	if (e == 0 && is_guessed)
		e = try(&s, CANDIDATE_ANY);
	if (e < 0 || !s.n_found)
		return e;
	is_guessed |= s.found.end == NATIVE_END_AMBIGUOUS;
	for (size_t i = w->n; is_guessed && i < s.found.n; i++)
		s.found.frames[i].is_guessed = true;
	*w = s.found;
	return 0;
}
