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

/* Errors with which the kernel ends or restarts a call that waited (its linux/errno.h). */
#define ERESTARTSYS_	      512
#define ERESTARTNOINTR_	      513
#define ERESTARTNOHAND_	      514
#define ERESTART_RESTARTBLOCK_ 516

struct host_core {
	const struct core_source *from;
	struct amdcore core;
	struct core_memory memory;
	struct corefile_process process;
	struct tasks tasks;
	struct native_registers *registers; /* malloc'ed, one for each thread. */
	bool is_own; /* The agent wrote it. */
	struct reading *reading; /* Names in the answer are its own. */
};

/* ------------------------------------------------------------------ threads ------------------ */

/* By the numbers of DWARF (System V ABI of x86-64, figure 3.36). */
static const uint8_t order[NATIVE_REGISTERS] = {
	COREFILE_RAX, COREFILE_RDX, COREFILE_RCX, COREFILE_RBX, COREFILE_RSI, COREFILE_RDI, COREFILE_RBP, COREFILE_RSP,
	COREFILE_R8,  COREFILE_R9,  COREFILE_R10, COREFILE_R11, COREFILE_R12, COREFILE_R13, COREFILE_R14, COREFILE_R15,
	COREFILE_RIP,
};

/* Was it in a system call that waited?  One that was done, or none, leaves other values. */
static bool has_waited(const struct corefile_thread *t)
{
	switch (0 - t->registers[COREFILE_RAX]) {
	case EINTR:
	case ERESTARTSYS_:
	case ERESTARTNOINTR_:
	case ERESTARTNOHAND_:
	case ERESTART_RESTARTBLOCK_:
		return (int64_t)t->registers[COREFILE_ORIG_RAX] >= 0;
	default:
		return false;
	}
}

static struct task task_of(const struct corefile_thread *t)
{
	const bool waits = has_waited(t);

	return (struct task){ .tid = t->tid, .ns_tid = t->tid, .state = waits ? 'S' : 'R', .is_off = true,
			      .has_call = waits, .call = (int64_t)t->registers[COREFILE_ORIG_RAX],
			      .first_argument = t->registers[COREFILE_RDI],
			      .second_argument = t->registers[COREFILE_RSI],
			      .third_argument = t->registers[COREFILE_RDX], .has_registers = true,
			      .stack_pointer = t->registers[COREFILE_RSP], .instruction = t->registers[COREFILE_RIP] };
}

static void add_thread(struct host_core *h, const struct corefile_thread *t)
{
	const size_t i = h->tasks.n;

	for (unsigned k = 0; k < NATIVE_REGISTERS; k++)
		native_registers_set(&h->registers[i], k, t->registers[order[k]]);
	h->tasks.list[i] = task_of(t);
	h->tasks.list[i].registers = &h->registers[i];
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

		if (!is_of_process(n, NT_PRSTATUS) || corefile_thread_read(n->desc, n->size, &t) < 0)
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
		return refuse(h, -r, "it is no core of an x86-64 process, which alone has threads of the processors", NULL, err);
	h->registers = calloc(TASKS_MAX, sizeof(*h->registers));
	h->tasks.list = calloc(TASKS_MAX, sizeof(*h->tasks.list));
	if (!h->registers || !h->tasks.list)
		return agent_err_no_memory(err, "read the core");
	take_process(h);
	take_threads(h);
	if (!h->tasks.n)
		return refuse(h, ENODATA, "it has no threads of the processors", "`dump --unified` writes them", err);
	r = core_memory_init(&h->memory, &h->core, open("/", O_RDONLY | O_PATH | O_DIRECTORY | O_CLOEXEC));
	return r < 0 ? agent_err_no_memory(err, "read the core") : 0;
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
				     .tasks = &h->tasks, .native = !p->has_native || p->native };
	struct reading *r = calloc(1, sizeof(*r));

	if (!r || reading_take_queues(&from, a, p) < 0 || reading_init(r, &from) < 0) {
		free(r);
		return agent_err_no_memory(err, "read the core");
	}
	h->reading = r;
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
