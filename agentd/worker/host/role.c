/* SPDX-License-Identifier: MIT */
#include "agentd/worker/host/role.h"

#include <fnmatch.h>
#include <string.h>

#include "base/cleanup.h"

/* What a name is the name of. */
enum subject { FUNCTION, PYTHON_FILE, THREAD };

/*
 * Patterns as of fnmatch(3).  Functions of C++ are as their files export them.  Of the frames of a thread the
 * innermost that is in the table counts; the name of the thread counts if none is.
 */
static const struct row {
	enum rpc_thread_role role;
	enum subject subject;
	const char *pattern;
} table[] = {
	/* HIP, and ROCr below it.  Names end otherwise (_spt, of CUDA _ptsz) where each thread has a default stream. */
	{ RPC_THREAD_ROLE_GPU_WAIT, FUNCTION, "hip*Synchronize*" },
	{ RPC_THREAD_ROLE_GPU_WAIT, FUNCTION, "hipMemcpy*" },
	{ RPC_THREAD_ROLE_GPU_WAIT, FUNCTION, "hsa_signal_wait_*" },
	{ RPC_THREAD_ROLE_GPU_WAIT, FUNCTION, "hsa_amd_signal_wait_*" },
	{ RPC_THREAD_ROLE_GPU_WAIT, FUNCTION, "hsaKmtWaitOn*" },
	/* CUDA. */
	{ RPC_THREAD_ROLE_GPU_WAIT, FUNCTION, "cu*Synchronize*" },
	{ RPC_THREAD_ROLE_GPU_WAIT, FUNCTION, "cuMemcpy*" },
	{ RPC_THREAD_ROLE_GPU_WAIT, FUNCTION, "cudaMemcpy*" },
	{ RPC_THREAD_ROLE_RUNTIME, THREAD, "cuda-EvtHandlr" },
	/* Of torch's ProcessGroupNCCL these watch: its other functions take part.  So they stand in front. */
	{ RPC_THREAD_ROLE_WATCHDOG, FUNCTION, "*16ProcessGroupNCCL*[Ww]atchdog*" },
	{ RPC_THREAD_ROLE_WATCHDOG, FUNCTION, "*16ProcessGroupNCCL*[Hh]eartbeatMonitor*" },
	{ RPC_THREAD_ROLE_WATCHDOG, FUNCTION, "*16ProcessGroupNCCL*workCleanupLoop*" },
	/* NCCL, RCCL, Gloo, MPI, and torch.distributed on top of them. */
	{ RPC_THREAD_ROLE_COLLECTIVE, FUNCTION, "nccl[A-Z]*" },
	{ RPC_THREAD_ROLE_COLLECTIVE, FUNCTION, "_Z*ncclProxy*" },
	{ RPC_THREAD_ROLE_COLLECTIVE, FUNCTION, "_ZN4c10d4Work4wait*" },
	{ RPC_THREAD_ROLE_COLLECTIVE, FUNCTION, "*16ProcessGroupNCCL*" },
	{ RPC_THREAD_ROLE_COLLECTIVE, FUNCTION, "*gloo9transport3tcp*" },
	{ RPC_THREAD_ROLE_COLLECTIVE, FUNCTION, "ucp_worker_progress" },
	{ RPC_THREAD_ROLE_COLLECTIVE, FUNCTION, "MPI_*" },
	{ RPC_THREAD_ROLE_COLLECTIVE, FUNCTION, "PMPI_*" },
	{ RPC_THREAD_ROLE_COLLECTIVE, PYTHON_FILE, "*/torch/distributed/distributed_c10d.py" },
	{ RPC_THREAD_ROLE_COLLECTIVE, THREAD, "NCCL *" },
	{ RPC_THREAD_ROLE_COLLECTIVE, THREAD, "pt_gloo_runloop" },
	/* Threads of PyTorch. */
	{ RPC_THREAD_ROLE_WATCHDOG, THREAD, "pt_nccl_*" },
	{ RPC_THREAD_ROLE_WATCHDOG, THREAD, "pt_watchdog" },
	{ RPC_THREAD_ROLE_AUTOGRAD, THREAD, "pt_autograd_*" },
	{ RPC_THREAD_ROLE_AUTOGRAD, FUNCTION, "_ZN5torch8autograd6Engine*" },
	{ RPC_THREAD_ROLE_DATA_LOADER, PYTHON_FILE, "*/torch/utils/data/_utils/worker.py" },
	{ RPC_THREAD_ROLE_DATA_LOADER, PYTHON_FILE, "*/torch/utils/data/_utils/pin_memory.py" },
	{ RPC_THREAD_ROLE_DATA_LOADER, THREAD, "pt_data_*" },
	{ RPC_THREAD_ROLE_DATA_LOADER, THREAD, "QueueFeederThre*" },
	/* CPython: these return when the thread has the interpreter's lock. */
	{ RPC_THREAD_ROLE_LOCK_WAIT, FUNCTION, "PyEval_RestoreThread" },
	{ RPC_THREAD_ROLE_LOCK_WAIT, FUNCTION, "PyEval_AcquireThread" },
	{ RPC_THREAD_ROLE_LOCK_WAIT, FUNCTION, "PyEval_AcquireLock" },
	{ RPC_THREAD_ROLE_LOCK_WAIT, FUNCTION, "PyGILState_Ensure" },
	{ RPC_THREAD_ROLE_LOCK_WAIT, FUNCTION, "take_gil" },
};

static bool find(enum subject subject, const char *name, enum rpc_thread_role *ret)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(table); i++)
		if (table[i].subject == subject && !fnmatch(table[i].pattern, name, 0)) {
			*ret = table[i].role;
			return true;
		}
	return false;
}

/*
 * The evaluation function gives the lock away and takes it again by functions that no file exports.  Between it and
 * the wait for a condition there are only such.  Locks of programs are semaphores, and have exported functions above.
 */
static bool takes_lock(const struct native_stack *s)
{
	bool waits = false;

	for (size_t i = 0; i < s->n && !s->places[i].frame.is_guessed; i++) {
		const char *name = s->places[i].is_internal ? NULL : s->places[i].function;

		if (name && strstr(name, "pthread_cond_"))
			waits = true;
		else if (name)
			return waits && !strcmp(name, "_PyEval_EvalFrameDefault");
	}
	return false;
}

/*
 * Where there is no lock, who comes back to Python waits for one who has stopped all others, as the garbage collector
 * does (CPython's Python/pystate.c, tstate_wait_attach()).
 */
static bool is_possible(const struct reading_row *row, enum rpc_thread_role role)
{
	return role != RPC_THREAD_ROLE_LOCK_WAIT || !row->has_no_lock;
}

static bool find_in_frames(const struct reading_row *row, enum rpc_thread_role *ret)
{
	for (size_t i = 0; i < row->native.n; i++)
		if (!row->native.places[i].frame.is_guessed && find(FUNCTION, row->native.places[i].function, ret) &&
		    is_possible(row, *ret))
			return true;
	for (size_t i = 0; i < row->n; i++)
		if (find(PYTHON_FILE, row->frames[i].place.file, ret))
			return true;
	return false;
}

bool role_find(const struct task *task, const struct reading_row *row, enum rpc_thread_role *ret)
{
	if (row->wait.asked.asked) {
		*ret = event_wait_is_service(&row->wait.asked) ? RPC_THREAD_ROLE_RUNTIME : RPC_THREAD_ROLE_GPU_WAIT;
		return true;
	}
	if (!row->has_no_lock && takes_lock(&row->native)) {
		*ret = RPC_THREAD_ROLE_LOCK_WAIT;
		return true;
	}
	return find_in_frames(row, ret) || find(THREAD, task->name, ret);
}
