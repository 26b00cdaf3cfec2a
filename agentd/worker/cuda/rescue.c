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

_Static_assert(sizeof(struct cudbgshim_undo) <= IPC_UNDO_ANSWER, "the record fits");

static int rescue(const struct worker_options *o, const struct access_target *facts,
		  struct cudbgshim_undo *undo)
{
	const struct target t = { .options = o, .facts = *facts };
	auto_close int proc_fd = -1, mem_fd = -1;
	struct cudbgshim_rescue_options options = { .pid = (int)o->pid };
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/%d", (int)o->pid);
	proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc_fd < 0)
		return -errno;
	r = cuda_confine(&t);
	if (r < 0)
		return r;
	mem_fd = openat(proc_fd, "mem", O_RDWR | O_CLOEXEC);
	if (mem_fd < 0)
		return -errno;
	options.proc_fd = proc_fd;
	options.memory = cudbgshim_memory_from_fd(mem_fd);
	options.timeout_ms = o->timeout_ms;
	return cudbgshim_rescue(&options, undo, NULL);
}

int cuda_rescue(const struct worker_options *o)
{
	struct access_target facts;
	struct cudbgshim_undo *undo;
	int r = access_target_read(o->pid, &facts);

	if (r == -ESRCH)
		return 0;
	undo = mmap(NULL, sizeof(*undo), PROT_READ | PROT_WRITE, MAP_SHARED, IPC_FD_UNDO, 0);
	if (undo == MAP_FAILED)
		r = -errno;
	if (r == 0)
		r = rescue(o, &facts, undo);
	if (r < 0 && r != -ESRCH)
		log_warning("process %d: what a worker left behind is not all undone: %s",
			    (int)o->pid, strerror(-r));
	else if (r == 0)
		log_info("process %d: what a worker left behind is undone", (int)o->pid);
	return r == -ESRCH ? 0 : r;
}
