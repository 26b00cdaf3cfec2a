/* SPDX-License-Identifier: MIT */
#include "agentd/worker/host/core.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/worker/host/answer.h"
#include "agentd/worker/host/core_memory.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "corefile/amdgpu/read.h"
#include "rpc_gen.h"

struct host_core {
	const struct core_source *from;
	struct amdcore core;
	const struct corefile_processor *processor;
	struct core_memory memory;
	struct corefile_process process;
	struct tasks tasks;
	struct native_registers *registers; /* malloc'ed, one for each thread. */
	size_t n_unknown; /* Threads whose code is not there, so that nothing says whether they waited. */
	bool is_own; /* The agent wrote it. */
	struct reading *reading; /* Names in the answer are its own. */
};

/* ------------------------------------------------------------------ threads ------------------ */

/* Was it in a system call that waited?  The code next to its next instruction may have to say so. */
static void take_call(struct host_core *h, const struct corefile_thread *t, struct task *task)
{
	uint8_t code[8];
	const struct hoststack_piece piece = { .address = task->instruction - 4, .buf = code, .size = sizeof(code) };
	const bool has_code = h->processor->needs_code && core_memory_read(&h->memory, &piece, 1) == 0;
	struct corefile_call call;

	h->n_unknown += h->processor->needs_code && !has_code;
	if (!h->processor->has_waited(t->registers, has_code ? code : NULL, &call))
		return;
	task->state = 'S';
	task->has_call = true;
	task->call = call.number;
	task->first_argument = call.arguments[0];
	task->second_argument = call.arguments[1];
	task->third_argument = call.arguments[2];
}

static struct task task_of(const struct corefile_processor *p, const struct corefile_thread *t)
{
	return (struct task){ .tid = t->tid, .ns_tid = t->tid, .state = 'R', .is_off = true, .has_registers = true,
			      .stack_pointer = t->registers[p->stack_pointer],
			      .instruction = t->registers[p->instruction] };
}

static void add_thread(struct host_core *h, const struct corefile_thread *t)
{
	const size_t i = h->tasks.n;

	for (unsigned k = 0; k < h->processor->n_dwarf; k++)
		native_registers_set(&h->registers[i], k, t->registers[h->processor->dwarf[k]]);
	h->tasks.list[i] = task_of(h->processor, t);
	h->tasks.list[i].registers = &h->registers[i];
	take_call(h, t, &h->tasks.list[i]);
	/* No note names the others. */
	if (t->tid == h->process.pid)
		memcpy(h->tasks.list[i].name, h->process.comm, sizeof(h->tasks.list[i].name) - 1);
	h->tasks.n++;
}

static bool is_of_process(const struct amdcore_note *n, uint32_t type)
{
	return n->type == type && !strcmp(n->name, "CORE");
}

static void take_threads(struct host_core *h)
{
	struct corefile_thread t;

	for (uint32_t i = 0; i < h->core.n_notes; i++) {
		const struct amdcore_note *n = &h->core.notes[i];

		if (!is_of_process(n, NT_PRSTATUS) || corefile_thread_read(h->processor, n->desc, n->size, &t) < 0)
			continue;
		if (h->tasks.n < TASKS_MAX)
			add_thread(h, &t);
		else
			h->tasks.is_cut = true;
	}
	tasks_sort(&h->tasks);
}

static void take_process(struct host_core *h)
{
	for (uint32_t i = 0; i < h->core.n_notes; i++) {
		const struct amdcore_note *n = &h->core.notes[i];

		if (is_of_process(n, NT_PRPSINFO))
			(void)corefile_process_read(n->desc, n->size, &h->process);
		h->is_own |= n->type == COREFILE_AGENT_NOTE_TYPE && !strcmp(n->name, COREFILE_AGENT_NOTE);
	}
	str_make_printable(h->process.comm);
}

/* ------------------------------------------------------------------ opening ------------------ */

static int refuse(const struct host_core *h, int error, const char *why, const char *hint, struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_FAILED, error, "read stacks", hint, "%.120s: %s", h->from->name, why);
}

static int open_core(struct host_core *h, struct agent_err *err)
{
	struct corefile_problem why = { 0 };
	int r = amdcore_read_process(h->from->data, h->from->size, &h->core, &why);

	if (r == -ENOMEM)
		return agent_err_no_memory(err, "read the core");
	if (r < 0)
		return refuse(h, -r, "it is no core of a process on x86-64 or aarch64, which alone has threads",
			      NULL, err);
	h->processor = corefile_processor_find(h->core.machine);
	if (!h->processor)
		return refuse(h, ENODATA, "it has no threads of the processors", "`dump --unified` writes them", err);
	h->registers = calloc(TASKS_MAX, sizeof(*h->registers));
	h->tasks.list = calloc(TASKS_MAX, sizeof(*h->tasks.list));
	if (!h->registers || !h->tasks.list)
		return agent_err_no_memory(err, "read the core");
	h->tasks.machine = h->core.machine;
	r = core_memory_init(&h->memory, &h->core, open("/", O_RDONLY | O_PATH | O_DIRECTORY | O_CLOEXEC));
	if (r < 0)
		return agent_err_no_memory(err, "read the core");
	take_process(h);
	take_threads(h);
	if (!h->tasks.n)
		return refuse(h, ENODATA, "it has no threads of the processors", "`dump --unified` writes them", err);
	return 0;
}

static void close_core(struct host_core *h)
{
	if (h->reading)
		reading_deinit(h->reading);
	free(h->reading);
	if (h->memory.root_fd >= 0)
		close(h->memory.root_fd);
	core_memory_deinit(&h->memory);
	free(h->registers);
	free(h->tasks.list);
	amdcore_deinit(&h->core);
}

/* ------------------------------------------------------------------ answering ---------------- */

static int read_core(struct host_core *h, struct rpc_arena *a, const struct rpc_host_stacks_params *p,
		     struct agent_err *err)
{
	struct reading_from from = { .core = &h->memory, .is_mixed = h->is_own, .environment_fd = -1, .maps_fd = -1,
				     .root_fd = -1, .tasks = &h->tasks };
	struct reading *r = calloc(1, sizeof(*r));

	if (!r || reading_take_params(&from, a, p) < 0 || reading_init(r, &from) < 0) {
		free(r);
		return agent_err_no_memory(err, "read the core");
	}
	h->reading = r;
	if (h->n_unknown)
		reading_note(r, "threads: whether %zu of %zu waited is not known, for want of their code",
			     h->n_unknown, h->tasks.n);
	reading_run(r);
	return 0;
}

static int do_stacks(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		     const struct rpc_host_stacks_params *params, struct rpc_host_stacks_result *ret,
		     struct agent_err *err)
{
	struct host_core *h = ctx;
	const uint64_t begin = clock_now_ns();
	int r = open_core(h, err);

	if (r == 0)
		r = read_core(h, arena, params, err);
	if (r < 0)
		return r;
	ret->time_us = h->from->time_us;
	ret->pid = h->process.pid;
	ret->uid = h->process.uid;
	ret->comm = h->process.comm;
	ret->duration_us = (clock_now_ns() - begin) / 1000;
	answer_fill(arena, h->reading, 0, ret);
	return rpc_arena_error(arena) ? agent_err_no_memory(err, NULL) : 0;
}

static const struct rpc_inspect_handlers handlers = { .host_stacks = do_stacks };

int core_stacks(const struct core_source *from, struct rpc_arena *a, const char *params, size_t size, struct out *reply,
		struct agent_err *err)
{
	struct host_core h = { .from = from, .tasks = { .fd = -1, .is_still = true }, .memory = { .root_fd = -1 } };
	int r = rpc_inspect_dispatch(&handlers, &h, NULL, a, RPC_METHOD_HOST_STACKS, params, size, reply, err);

	close_core(&h);
	return r;
}
