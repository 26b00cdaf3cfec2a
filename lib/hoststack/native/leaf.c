/* SPDX-License-Identifier: MIT */
#include "hoststack/native/leaf.h"

#include <errno.h>

#define SEARCH_BYTES UINT64_C(65536)
/* Bytes of a function in which calls of the leaf are looked for, and how many are read at once. */
#define CODE_MAX   UINT64_C(65536)
#define CODE_CHUNK 1024
/* What one search may read in all. */
#define READ_MAX   (UINT64_C(1) << 20)

/* A search, and the caller that it has found. */
struct search {
	struct native_unwinder *unwinder;
	const struct native_registers *registers;
	uint64_t leaf; /* Where it begins. */
	uint64_t stack; /* The stack pointer of its caller. */
	uint64_t bytes_begin; /* What might be read when it began. */
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
	return p->follow(u->stack.memory, called);
}

/* What is found then may not be all. */
static bool is_spent(const struct search *s)
{
	return s->bytes_begin - s->unwinder->stack.memory->bytes_left > READ_MAX;
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

	for (uint64_t at = begin; at < end && n < 2 && !is_spent(s); at += sizeof(code)) {
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
		cfa = s->stack + (uint64_t)rules->cfa.value;
	else if (rules->cfa_register == p->frame_pointer)
		/* It leads to that of the caller, with the return address above it. */
		cfa = (*ret_frame = place - sizeof(uint64_t)) + (uint64_t)rules->cfa.value;
	else
		return false;
	return cfa + (uint64_t)cell->value == place;
}

/* The same, of a function that may be none.  @return how many, at most 2; what hoststack_read() returns at its end. */
static int count_calls(struct search *s, const struct native_module *module, uint64_t function, uint64_t *ret_first)
{
	const struct native_rules *rules;
	int n = native_unwinder_rules(s->unwinder, module, function, &rules);

	if (n == 0 && rules->begin == function && rules->end - rules->begin <= CODE_MAX)
		n = find_calls(s, rules->begin, rules->end, ret_first);
	return n >= 0 || hoststack_is_over(n) ? n : 0;
}

/* The same, remembered: functions stand in the stack many times, and threads wait alike. */
static int recall_calls(struct search *s, const struct native_module *module, uint64_t function, uint64_t *ret_first)
{
	struct native_leaf_calls *list = s->unwinder->leaf_calls, new = { .leaf = s->leaf, .function = function };

	for (size_t i = 0; i < NATIVE_LEAF_CALLS; i++)
		if (list[i].leaf == s->leaf && list[i].function == function) {
			*ret_first = list[i].first;
			return list[i].n;
		}
	new.n = count_calls(s, module, function, &new.first);
	if (new.n >= 0 && !is_spent(s))
		list[s->unwinder->n_leaf_calls++ % NATIVE_LEAF_CALLS] = new;
	*ret_first = new.first;
	return new.n;
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
	n = recall_calls(s, module, called, &pc);
	if (n <= 0)
		return n;
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
	const uint64_t begin = s->stack & ~UINT64_C(7);
	int e = 0;

	for (uint64_t at = begin; at - begin < SEARCH_BYTES && e == 0 && s->n_found < 2; at += sizeof(uint64_t)) {
		uint64_t address;

		e = native_stack_copy_read(&s->unwinder->stack, at, &address, sizeof(address));
		if (e < 0)
			return hoststack_is_over(e) ? e : 0;
		address &= p->address_bits;
		/* Most words are small numbers. */
		if (address >= 4096 && !is_spent(s))
			e = try(s, at, address);
	}
	return e;
}

/* Where the stack was before the leaf was called.  @return 0; -ENOENT: its table does not tell; -errno. */
static int find_stack(struct search *s, const struct native_frame *leaf)
{
	const struct native_module *module = native_unwinder_find(s->unwinder, leaf->pc);
	const struct native_rules *rules;
	const unsigned sp = s->unwinder->processor->stack_pointer;
	int e = module ? native_unwinder_rules(s->unwinder, module, leaf->pc - !leaf->is_exact, &rules) : -ENOENT;

	if (e < 0 || rules->cfa.rule != NATIVE_IS_OFFSET || rules->cfa_register != sp)
		return e < 0 ? e : -ENOENT;
	s->stack = s->registers->values[sp] + (uint64_t)rules->cfa.value;
	return 0;
}

int native_leaf_recover(struct native_unwinder *u, struct native_walk *w, struct native_registers *registers)
{
	const struct native_processor *p = u->processor;
	struct search s = { .unwinder = u, .registers = registers, .leaf = w->frames[w->n - 1].function };
	struct native_registers caller = { .known = 0 };
	int e;

	if (w->end != NATIVE_END_REGISTER || w->missing != p->return_address || !p->follow || !s.leaf ||
	    w->n == NATIVE_DEPTH_MAX)
		return 0;
	e = find_stack(&s, &w->frames[w->n - 1]);
	if (e < 0)
		return hoststack_is_over(e) ? e : 0;
	s.bytes_begin = u->stack.memory->bytes_left;
	e = search(&s);
	if (e < 0 || !s.n_found || (is_spent(&s) && s.n_found < 2))
		return e;
	if (s.n_found > 1) {
		w->end = NATIVE_END_AMBIGUOUS;
		return 0;
	}
	native_registers_set(&caller, p->stack_pointer, s.stack);
	native_registers_set(&caller, p->instruction, s.pc);
	if (s.frame)
		native_registers_set(&caller, p->frame_pointer, s.frame);
	w->frames[w->n++] = (struct native_frame){ .pc = s.pc, .is_guessed = s.has_more };
	*registers = caller;
	return native_walk_on(u, w, registers);
}
