/* SPDX-License-Identifier: MIT */
#include "hoststack/native/unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hoststack/native/expression.h"

/* Rules are kept by their instruction's address; another one of the same place replaces them. */
#define ROWS 4096
/* Data files are mapped as well, so the nearest file below some code need not be the one that has it. */
#define NEAR_MAX 4

struct native_row {
	uint64_t pc;
	int error; /* Why there are none. */
	struct native_rules rules;
	uint8_t *bytes; /* malloc'ed. */
};

/* ------------------------------------------------------------------ tables ------------------- */

struct native_module *native_unwinder_find(struct native_unwinder *u, uint64_t pc)
{
	size_t low = 0, high = u->n_modules;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (u->modules[middle].base <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = 0; i < NEAR_MAX && i < low; i++) {
		struct native_module *module = &u->modules[low - 1 - i];

		if (native_module_open(u->stack.memory, module) == 0 && native_module_has_code(module, pc))
			return module;
	}
	return NULL;
}

int native_unwinder_rules(struct native_unwinder *u, const struct native_module *module, uint64_t pc,
			  const struct native_rules **ret)
{
	struct native_row *row;

	if (!module)
		return -ENOENT;
	if (!u->rows)
		u->rows = calloc(ROWS, sizeof(*u->rows));
	if (!u->rows)
		return -ENOMEM;
	row = &u->rows[(pc ^ pc >> 12) % ROWS];
	if (row->pc != pc) {
		free(row->bytes);
		row->pc = pc;
		row->error = native_module_find_rules(u->stack.memory, module, pc, &row->rules, &row->bytes);
		/* Later there may be bytes and time again. */
		if (hoststack_is_over(row->error))
			row->pc = 0;
	}
	*ret = &row->rules;
	return row->error;
}

void native_unwinder_deinit(struct native_unwinder *u)
{
	for (size_t i = 0; u->rows && i < ROWS; i++)
		free(u->rows[i].bytes);
	free(u->rows);
	u->rows = NULL;
	native_stack_copy_free(&u->stack);
}

/* ------------------------------------------------------------------ one frame ---------------- */

/* @return 0, -ENODATA (a register is not known: @p w says which), what native_expression() returns. */
static int find_cfa(struct native_unwinder *u, const struct native_rules *rules, const struct native_registers *r,
		    struct native_walk *w, uint64_t *ret)
{
	const struct native_cell *cfa = &rules->cfa;

	if (cfa->rule == NATIVE_IS_EXPRESSION)
		return native_expression(cfa->expression, cfa->size, r, &u->stack, NULL, ret, &w->missing);
	if (!native_registers_has(r, rules->cfa_register)) {
		w->missing = rules->cfa_register < NATIVE_REGISTERS ? (unsigned)rules->cfa_register : NATIVE_REGISTERS;
		return -ENODATA;
	}
	*ret = r->values[rules->cfa_register] + (uint64_t)cfa->value;
	return 0;
}

/* One register of the caller.  @return 0, -ENODATA (it is not known), what native_expression() returns. */
static int find_register(struct native_unwinder *u, const struct native_cell *cell, unsigned number, uint64_t cfa,
			 const struct native_registers *r, uint64_t *ret)
{
	unsigned missing;
	int e;

	switch (cell->rule) {
	case NATIVE_AT_OFFSET:
		return native_stack_copy_read(&u->stack, cfa + (uint64_t)cell->value, ret, sizeof(*ret));
	case NATIVE_IS_OFFSET:
		*ret = cfa + (uint64_t)cell->value;
		return 0;
	case NATIVE_AT_EXPRESSION:
	case NATIVE_IS_EXPRESSION:
		e = native_expression(cell->expression, cell->size, r, &u->stack, &cfa, ret, &missing);
		if (e == 0 && cell->rule == NATIVE_AT_EXPRESSION)
			e = native_stack_copy_read(&u->stack, *ret, ret, sizeof(*ret));
		return e;
	case NATIVE_UNDEFINED:
		return -ENODATA;
	case NATIVE_UNSAID:
		if (number == u->processor->stack_pointer) {
			*ret = cfa;
			return 0;
		}
		if (!(u->processor->kept >> number & 1))
			return -ENODATA;
		break;
	default:
		break;
	}
	if (cell->rule == NATIVE_IN_REGISTER)
		number = cell->value >= 0 && cell->value < NATIVE_REGISTERS ? (unsigned)cell->value : NATIVE_REGISTERS;
	if (!native_registers_has(r, number))
		return -ENODATA;
	*ret = r->values[number];
	return 0;
}

/* Is the return address still in a register, so that the function need not have anything on the stack? */
static bool returns_by_register(const struct native_unwinder *u, const struct native_rules *rules)
{
	const uint8_t rule = rules->registers[u->processor->return_address].rule;

	return u->processor->return_address != u->processor->instruction &&
	       (rule == NATIVE_UNSAID || rule == NATIVE_SAME || rule == NATIVE_IN_REGISTER);
}

/* What is the caller's next instruction?  Its own return address is no longer in a register: it has called. */
static int go_to_caller(const struct native_unwinder *u, const struct native_rules *rules, struct native_walk *w,
			struct native_registers *caller)
{
	const struct native_processor *p = u->processor;

	if (!native_registers_has(caller, p->return_address) && returns_by_register(u, rules)) {
		w->missing = p->return_address;
		return -ENODATA;
	}
	if (!native_registers_has(caller, p->return_address) || !native_registers_has(caller, p->stack_pointer))
		return -EBADMSG;
	const uint64_t address = caller->values[p->return_address] & p->address_bits;
	caller->known &= ~(UINT64_C(1) << p->return_address);
	native_registers_set(caller, p->instruction, address);
	return address != 0;
}

/*
 * The registers of the caller.
 * @return 1: there are some; 0: this is the outermost frame; -errno.
 */
static int step(struct native_unwinder *u, const struct native_rules *rules, struct native_walk *w,
		struct native_registers *registers)
{
	const struct native_processor *p = u->processor;
	struct native_registers caller = { .known = 0 };
	uint64_t cfa, value;
	int e = -ENOENT;

	if (rules->registers[p->return_address].rule == NATIVE_UNDEFINED)
		return 0;
	if (rules->is_signal && p->interrupted)
		e = p->interrupted(&u->stack, registers, &caller);
	if (e != -ENOENT) {
		*registers = e < 0 ? *registers : caller;
		return e < 0 ? e : 1;
	}
	e = find_cfa(u, rules, registers, w, &cfa);
	if (e < 0)
		return e;
	/* A stack grows downwards; only a signal may have been taken on another one. */
	value = registers->values[p->stack_pointer];
	if (!rules->is_signal && (cfa < value || (cfa == value && !returns_by_register(u, rules))))
		return -EBADMSG;
	for (unsigned i = 0; i < p->n_registers; i++) {
		e = find_register(u, &rules->registers[i], i, cfa, registers, &value);
		if (e == 0)
			native_registers_set(&caller, i, value);
		else if (hoststack_is_over(e))
			return e;
	}
	e = go_to_caller(u, rules, w, &caller);
	if (e >= 0)
		*registers = caller;
	return e;
}

/* ------------------------------------------------------------------ walk --------------------- */

void native_walk_begin(struct native_walk *w, uint64_t pc)
{
	w->n = 1;
	w->frames[0] = (struct native_frame){ .pc = pc, .is_exact = true };
	w->end = NATIVE_END_DEPTH;
}

/* @return 1: it goes on; 0: it ended; -errno: nothing more can be read. */
static int walk_one(struct native_unwinder *u, struct native_walk *w, struct native_registers *registers)
{
	struct native_frame *f = &w->frames[w->n - 1];
	const uint64_t pc = f->pc - !f->is_exact;
	const struct native_rules *rules;
	bool is_signal;
	int e;

	f->module = native_unwinder_find(u, pc);
	w->end = NATIVE_END_TABLE;
	e = native_unwinder_rules(u, f->module, pc, &rules);
	if (e < 0)
		return hoststack_is_over(e) ? e : 0;
	f->function = rules->begin;
	is_signal = rules->is_signal;
	e = step(u, rules, w, registers);
	w->end = e == -ENODATA ? NATIVE_END_REGISTER : e < 0 ? NATIVE_END_MEMORY : NATIVE_END_OUTERMOST;
	if (e < 0 && u->stack.was_left)
		w->end = NATIVE_END_COPY;
	if (e <= 0)
		return hoststack_is_over(e) ? e : 0;
	if (w->n == NATIVE_DEPTH_MAX) {
		w->end = NATIVE_END_DEPTH;
		return 0;
	}
	w->frames[w->n++] = (struct native_frame){ .pc = registers->values[u->processor->instruction],
						   .is_exact = is_signal, .is_guessed = f->is_guessed };
	return 1;
}

int native_walk_on(struct native_unwinder *u, struct native_walk *w, struct native_registers *registers)
{
	int e;

	do
		e = walk_one(u, w, registers);
	while (e > 0);
	return e;
}
