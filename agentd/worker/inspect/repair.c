/* SPDX-License-Identifier: MIT */
#include "agentd/worker/inspect/repair.h"

#include <errno.h>
#include <unistd.h>

#include "agentd/worker/process/facts.h"
#include "agentd/worker/target/target.h"
#include "base/log.h"

/* Of an earlier process with that number the record says nothing any more. */
static bool is_of_another(const struct worker_options *o)
{
	uint64_t left = 0, start = 0, none = 0;

	if (pread(IPC_FD_UNDO, &left, sizeof(left), IPC_UNDO_SUSPENDED) != sizeof(left))
		return true;
	if (process_facts_start(o->pid, &start) == 0 && start == left)
		return false;
	if (pwrite(IPC_FD_UNDO, &none, sizeof(none), IPC_UNDO_SUSPENDED) < 0)
		log_debug("process %d: the record of an earlier process stays", (int)o->pid);
	return true;
}

int repair_run(const struct worker_options *o)
{
	struct agent_err err = { 0 };
	struct target *t;
	bool look; /* Not used: NVIDIA's driver answers nobody who waits. */
	int r;

	if (is_of_another(o))
		return 0;
	r = target_attach(o, &t, &look, &err);
	if (r == 0) {
		log_info("process %d: the GPU that a worker had left suspended runs again", (int)o->pid);
		r = undo_run(&t->undo, 0, &err);
		target_destroy(t);
	}
	/* Only exec keeps the start time. */
	if (r < 0 && err.err == ESTALE) {
		log_info("process %d: it runs another program, whose GPU no worker has suspended", (int)o->pid);
		return 0;
	}
	if (r < 0)
		log_warning("process %d: a GPU that a worker has left suspended: %s", (int)o->pid, err.message);
	return r < 0;
}
