/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agentd/access.h"
#include "agentd/worker/cuda/cuda.h"
#include "base/cleanup.h"
#include "base/log.h"

_Static_assert(sizeof(struct cudbgshim_undo) <= IPC_UNDO_SUSPENDED, "the record fits");

/* As a session does it (attach.c): a program that has become privileged refuses its user by itself. */
static int settle_in(const struct worker_options *o, const struct access_target *facts, uint64_t start, int proc_fd,
		     int *ret_mem_fd, struct cuda_tracer *tracer)
{
	bool needs_tracer = cuda_needs_tracer(o, facts);
	int r = 0;

	if (needs_tracer) {
		*ret_mem_fd = cuda_open_memory(proc_fd);
		r = *ret_mem_fd < 0 ? *ret_mem_fd :
				      cuda_tracer_start(facts, start, proc_fd, IPC_FD_TARGET, tracer);
	}
	if (r == 0)
		r = cuda_confine(facts, !needs_tracer, false, NULL);
	if (r == 0 && !needs_tracer)
		*ret_mem_fd = cuda_open_memory(proc_fd);
	return r < 0 ? r : *ret_mem_fd < 0 ? *ret_mem_fd : 0;
}

static int rescue(const struct worker_options *o, const struct access_target *facts,
		  struct cudbgshim_undo *undo)
{
	auto_close int proc_fd = -1, mem_fd = -1;
	struct cudbgshim_rescue_options options = { .pid = (int)o->pid };
	struct cuda_tracer tracer = { .pid = 0 };
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/%d", (int)o->pid);
	proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc_fd < 0)
		return -errno;
	r = settle_in(o, facts, undo->start_time, proc_fd, &mem_fd, &tracer);
	if (r == 0) {
		options.proc_fd = proc_fd;
		options.memory = cudbgshim_memory_from_fd(mem_fd);
		options.tracer = cuda_tracer_ops(&tracer);
		options.timeout_ms = o->timeout_ms;
		r = cudbgshim_rescue(&options, undo, NULL);
	}
	cuda_tracer_end(&tracer);
	return r;
}

/* Nothing else is left to undo: who repairs or attaches next finds it in the word behind, and in which program. */
static int leave_suspended(const struct worker_options *o, struct cudbgshim_undo *undo)
{
	struct cudbgshim_undo program = { .random_addr = undo->random_addr };

	memcpy(program.random, undo->random, sizeof(program.random));
	__atomic_store_n((uint64_t *)(void *)((char *)undo + IPC_UNDO_SUSPENDED), undo->start_time, __ATOMIC_RELEASE);
	*undo = program;
	log_warning("process %d: what a worker left behind is undone, but its GPU stands still until the next session",
		    (int)o->pid);
	return 0;
}

int cuda_rescue(const struct worker_options *o)
{
	struct access_target facts;
	struct cudbgshim_undo *undo;
	int r = access_target_read(o->pid, &facts);

	if (r == -ESRCH)
		return 0;
	undo = mmap(NULL, IPC_UNDO_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, IPC_FD_UNDO, 0);
	if (undo == MAP_FAILED)
		r = -errno;
	if (r == 0)
		r = rescue(o, &facts, undo);
	if (r == -ESTALE) {
		log_info("process %d: it runs another program, in which nothing of a worker is left", (int)o->pid);
		return 0;
	}
	if (r == CUDBGSHIM_RESCUE_SUSPENDED)
		return leave_suspended(o, undo);
	if (r < 0 && r != -ESRCH)
		log_warning("process %d: what a worker left behind is not all undone: %s",
			    (int)o->pid, strerror(-r));
	else if (r == 0)
		log_info("process %d: what a worker left behind is undone", (int)o->pid);
	return r == -ESRCH ? 0 : r;
}
