/* SPDX-License-Identifier: MIT */
#include "hoststack/native/leaf.h"

#include <errno.h>

#define SEARCH_BYTES UINT64_C(65536)
/* Bytes of a function in which calls of the leaf are looked for, and how many are read at once. */
#define CODE_MAX   UINT64_C(65536)
#define CODE_CHUNK 1024

/* A search, and the caller that it has found. */
struct search {
	struct native_unwinder *unwinder;
	const struct native_registers *registers;
	uint64_t leaf; /* Where it begins. */
	size_t n_found;
	uint64_t pc;	    /* The caller's, behind its first call of the leaf. */
	bool has_more;	    /* It calls the leaf elsewhere, too. */
	uint64_t frame;	    /* Its frame pointer; 0: not known, it may be that of a caller. */
};

/* The function that is called in front of an address, as far as the code says it.  @return 0: none. */
static uint64_t find_called(struct native_unwinder *u, uint64_t address)
{
	const struct native_processor *p = u->processor;
	uint8_t code[NATIVE_CALL_MAX];
	uint64_t called;

	if (!native_unwinder_find(u, address - 1) ||
	    hoststack_read(u->stack.memory, address - p->call_size, code, p->call_size) < 0 ||
	    p->calls(code + p->call_size, address, &called) != NATIVE_CALLS_ADDRESS)
		return 0;
	return p->follow ? p->follow(u->stack.memory, called) : called;
}

/*
 * Find calls of the leaf in a function.
 * @return how many, at most 2; -errno.
 */
static int find_calls(struct search *s, uint64_t begin, uint64_t end, uint64_t *ret_first)
{
	struct native_unwinder *u = s->unwinder;
	const size_t step = u->processor->call_size;
	uint8_t code[CODE_CHUNK];
	uint64_t called;
	int n = 0;

	for (uint64_t at = begin; at < end && n < 2; at += sizeof(code)) {
		const size_t size = end - at < sizeof(code) ? end - at : sizeof(code);
		int e = hoststack_read(u->stack.memory, at, code, size);

		if (e < 0)
			return e;
		for (size_t i = step; i <= size && n < 2; i += step) {
			if (u->processor->calls(code + i, at + i, &called) != NATIVE_CALLS_ADDRESS)
				continue;
			if (called != s->leaf && u->processor->follow(u->stack.memory, called) != s->leaf)
				continue;
			if (!n++)
				*ret_first = at + i;
		}
	}
	return n;
}

/* Has a function that has called the leaf its return address there?  @param ret_frame  Its frame pointer then. */
static bool returns_from(const struct search *s, const struct native_rules *rules, uint64_t place, uint64_t *ret_frame)
{
	const struct native_processor *p = s->unwinder->processor;
	const struct native_cell *cell = &rules->registers[p->return_address];
	uint64_t cfa;

	if (rules->cfa.rule != NATIVE_IS_OFFSET || cell->rule != NATIVE_AT_OFFSET)
		return false;
	*ret_frame = 0;
	if (rules->cfa_register == p->stack_pointer)
		cfa = s->registers->values[p->stack_pointer] + (uint64_t)rules->cfa.value;
	else if (rules->cfa_register == p->frame_pointer)
		/* It leads to that of the caller, with the return address above it. */
		cfa = (*ret_frame = place - sizeof(uint64_t)) + (uint64_t)rules->cfa.value;
	else
		return false;
	return cfa + (uint64_t)cell->value == place;
}

/* @return 0; what hoststack_read() returns if nothing more can be read. */
static int try(struct search *s, uint64_t place, uint64_t address)
{
	const uint64_t called = find_called(s->unwinder, address);
	const struct native_module *module = called ? native_unwinder_find(s->unwinder, called) : NULL;
	const struct native_rules *rules;
	uint64_t pc, frame;
	int n, e;

	if (!module)
		return 0;
	e = native_unwinder_rules(s->unwinder, module, called, &rules);
	if (e < 0 || rules->begin != called || rules->end - rules->begin > CODE_MAX)
		return hoststack_is_over(e) ? e : 0;
	n = find_calls(s, rules->begin, rules->end, &pc);
	if (n <= 0)
		return hoststack_is_over(n) ? n : 0;
	e = native_unwinder_rules(s->unwinder, module, pc - 1, &rules);
	if (e < 0 || !returns_from(s, rules, place, &frame))
		return hoststack_is_over(e) ? e : 0;
	if (!s->n_found++) {
		s->pc = pc;
		s->has_more = n > 1;
		s->frame = frame;
	}
	return 0;
}

static int search(struct search *s)
{
	const struct native_processor *p = s->unwinder->processor;
	const uint64_t begin = s->registers->values[p->stack_pointer] & ~UINT64_C(7);
	int e = 0;

	for (uint64_t at = begin; at - begin < SEARCH_BYTES && e == 0; at += sizeof(uint64_t)) {
		uint64_t address;

		e = native_stack_copy_read(&s->unwinder->stack, at, &address, sizeof(address));
		if (e < 0)
			return hoststack_is_over(e) ? e : 0;
		address &= p->address_bits;
		/* Most words are small numbers. */
		if (address >= 4096)
			e = try(s, at, address);
	}
	return e;
}

int native_leaf_recover(struct native_unwinder *u, struct native_walk *w, struct native_registers *registers)
{
	const struct native_processor *p = u->processor;
	struct search s = { .unwinder = u, .registers = registers, .leaf = w->frames[w->n - 1].function };
	struct native_registers caller = { .known = 0 };
	int e;

	if (w->end != NATIVE_END_REGISTER || w->missing != p->return_address || p->return_address == p->instruction ||
	    !p->follow || !s.leaf || w->n == NATIVE_DEPTH_MAX)
		return 0;
	e = search(&s);
	if (e < 0 || !s.n_found)
		return e;
	if (s.n_found > 1) {
		w->end = NATIVE_END_AMBIGUOUS;
		return 0;
	}
	native_registers_set(&caller, p->stack_pointer, registers->values[p->stack_pointer]);
	native_registers_set(&caller, p->instruction, s.pc);
	if (s.frame)
		native_registers_set(&caller, p->frame_pointer, s.frame);
	w->frames[w->n++] = (struct native_frame){ .pc = s.pc, .is_guessed = s.has_more };
	*registers = caller;
	e = native_walk_on(u, w, registers);
	return e;
}
