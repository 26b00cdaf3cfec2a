/* SPDX-License-Identifier: MIT */
#include "agentd/worker/host/native.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "hoststack/native/leaf.h"
#include "hoststack/native/recovery.h"

_Static_assert((int)NATIVE_END_OUTERMOST == (int)RPC_NATIVE_END_OUTERMOST &&
		       (int)NATIVE_END_REGISTER == (int)RPC_NATIVE_END_REGISTER &&
		       (int)NATIVE_END_AMBIGUOUS == (int)RPC_NATIVE_END_AMBIGUOUS &&
		       (int)NATIVE_END_TABLE == (int)RPC_NATIVE_END_TABLE &&
		       (int)NATIVE_END_MEMORY == (int)RPC_NATIVE_END_MEMORY &&
		       (int)NATIVE_END_DEPTH == (int)RPC_NATIVE_END_DEPTH,
	       "hoststack/native/unwind.h");

int native_reader_init(struct native_reader *r, uint16_t machine, struct memory_guard *guard,
		       struct hoststack_memory *memory, int root_fd)
{
	const struct native_processor *processor = native_processor_find(machine);
	int e = memory_guard_refresh(guard);

	r->debug = (struct debug_files){ .root_fd = root_fd };
	if (e < 0)
		return e;
	r->modules = calloc(guard->n_files + 1, sizeof(*r->modules));
	if (!r->modules)
		return -ENOMEM;
	for (size_t i = 0; i < guard->n_files; i++) {
		char *name = strdup(guard->files[i].path);

		if (!name)
			return -ENOMEM;
		str_make_printable(name);
		r->modules[r->n_modules++] = (struct native_module){ .base = guard->files[i].begin, .name = name,
								  .processor = processor };
	}
	r->unwinder = (struct native_unwinder){ .processor = processor,
						.modules = r->modules, .n_modules = r->n_modules,
						.stack = { .memory = memory } };
	return 0;
}

void native_reader_deinit(struct native_reader *r)
{
	native_unwinder_deinit(&r->unwinder);
	debug_files_deinit(&r->debug);
	for (size_t i = 0; i < r->n_modules; i++) {
		native_symbols_free(&r->modules[i].symbols);
		free((char *)r->modules[i].name);
	}
	free(r->modules);
}

static struct native_place name_frame(struct native_reader *r, const struct native_frame *f)
{
	struct native_place p = { .address = f->pc, .frame = *f };
	struct hoststack_memory *memory = r->unwinder.stack.memory;
	struct native_module *module = f->module;
	const uint64_t at = f->pc - !f->is_exact;
	uint64_t begin;

	if (!module)
		return p;
	p.module = module->name;
	p.build_id = module->build_id[0] ? module->build_id : NULL;
	p.address = f->pc - module->bias;
	if (module->has_symbols)
		p.function = native_symbols_name(&module->symbols, memory, &module->elf, at, f->function, &begin);
	p.is_internal = !p.function;
	if (p.function)
		p.offset = f->pc - begin;
	return p;
}

bool native_reader_name(struct native_reader *r, struct native_place *p)
{
	const struct native_frame *f = &p->frame;
	uint64_t begin;

	if (p->function || !f->module)
		return false;
	p->function = debug_files_name(&r->debug, r->unwinder.stack.memory, f->module, f->pc - !f->is_exact,
				       f->function, &begin);
	if (p->function)
		p->offset = f->pc - begin;
	return p->function != NULL;
}

static int name_frames(struct native_reader *r, const struct native_walk *w, struct native_stack *ret)
{
	ret->places = calloc(w->n, sizeof(*ret->places));
	if (!ret->places)
		return -ENOMEM;
	for (; ret->n < w->n; ret->n++)
		ret->places[ret->n] = name_frame(r, &w->frames[ret->n]);
	ret->end = w->end == NATIVE_END_COPY ? RPC_NATIVE_END_COPY : (enum rpc_native_end)w->end;
	return 0;
}

int native_reader_read(struct native_reader *r, const struct tasks *tasks, const struct task *task,
		       struct native_stack *ret)
{
	const struct native_processor *processor = r->unwinder.processor;
	struct native_registers registers = { .known = 0 };
	struct native_walk w;
	int e;

	*ret = (struct native_stack){ .switches = task_moment(tasks, task) };
	/* Whether it runs everybody may know. */
	ret->end = task->is_refused && task->state != 'R' ? RPC_NATIVE_END_REFUSED : RPC_NATIVE_END_RUNNING;
	if (!task->is_off || !task->has_registers)
		return task->is_refused;
	ret->end = RPC_NATIVE_END_TABLE;
	if (!processor)
		return 1;
	native_registers_set(&registers, processor->stack_pointer, task->stack_pointer);
	native_registers_set(&registers, processor->instruction, task->instruction);
	if (task->registers)
		registers = *task->registers;
	native_stack_copy_begin(&r->unwinder.stack, task->stack_pointer);
	native_walk_begin(&w, task->instruction);
	e = native_walk_on(&r->unwinder, &w, &registers);
	if (e == 0)
		e = native_leaf_recover(&r->unwinder, &w, &registers);
	if (e == 0)
		e = native_recover(&r->unwinder, &w, &registers);
	if (e < 0)
		return e;
	ret->reached = registers.values[processor->stack_pointer];
	ret->end = RPC_NATIVE_END_UNPROVEN;
	if (!task_has_rested(tasks, task))
		return 0;
	e = name_frames(r, &w, ret);
	return e < 0 ? e : 1;
}

int native_reader_read_copy(struct native_reader *r, const struct native_registers *registers, uint64_t begin,
			    const void *bytes, size_t size, struct native_stack *ret)
{
	const struct native_processor *processor = r->unwinder.processor;
	struct native_registers last = *registers;
	struct native_walk w;
	int e = native_stack_copy_take(&r->unwinder.stack, begin, bytes, size);

	*ret = (struct native_stack){ .was_stopped = true };
	if (e < 0)
		return e;
	native_walk_begin(&w, registers->values[processor->instruction]);
	e = native_walk_on(&r->unwinder, &w, &last);
	if (e < 0)
		return e;
	ret->reached = last.values[processor->stack_pointer];
	return name_frames(r, &w, ret);
}
