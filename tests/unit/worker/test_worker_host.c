/* SPDX-License-Identifier: MIT */
/* What threads are there for, by names of their functions; and which process of a job one is, by its environment. */
#include "agentd/worker/host/role.h"

#include <stdio.h>

#include "base/out.h"
#include "testlib.h"

enum { FRAMES_MAX = 4, NO_ROLE = -1 };

/* The role of a thread of that name with these functions, innermost first. */
static int role_of(const char *name, const char *const *functions)
{
	struct native_place places[FRAMES_MAX] = { 0 };
	struct reading_row row = { .native.places = places };
	struct task task = { 0 };
	enum rpc_thread_role role;

	snprintf(task.name, sizeof(task.name), "%s", name);
	while (row.native.n < FRAMES_MAX && functions[row.native.n]) {
		places[row.native.n].function = functions[row.native.n];
		row.native.n++;
	}
	return role_find(&task, &row, &role) ? (int)role : NO_ROLE;
}

/* Names of C++ are as libtorch and NCCL have them. */
static void functions_tell_roles(void)
{
	static const struct {
		const char *name, *functions[FRAMES_MAX];
		int role;
	} rows[] = {
		{ "python3", { "pthread_cond_timedwait", "_ZN4c10d16ProcessGroupNCCL8Watchdog7runLoopEv" },
		  RPC_THREAD_ROLE_WATCHDOG },
		{ "pt_nccl_watchdg", { "_ZN4c10d16ProcessGroupNCCL16ncclCommWatchdogEv" }, RPC_THREAD_ROLE_WATCHDOG },
		{ "pt_nccl_watchdg", { "_ZN4c10d16ProcessGroupNCCL15watchdogHandlerEv" }, RPC_THREAD_ROLE_WATCHDOG },
		{ "pt_nccl_heartbt", { "_ZN4c10d16ProcessGroupNCCL16heartbeatMonitorEv" }, RPC_THREAD_ROLE_WATCHDOG },
		{ "pt_nccl_heartbt", { "_ZN4c10d16ProcessGroupNCCL16HeartbeatMonitor7runLoopEv" },
		  RPC_THREAD_ROLE_WATCHDOG },
		{ "python3", { "_ZN4c10d16ProcessGroupNCCL15workCleanupLoopEv" }, RPC_THREAD_ROLE_WATCHDOG },
		{ "python3", { "_ZN4c10d16ProcessGroupNCCL8WorkNCCL4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE" },
		  RPC_THREAD_ROLE_COLLECTIVE },
		{ "python3", { "poll", "_Z17ncclProxyProgressPv" }, RPC_THREAD_ROLE_COLLECTIVE },
		{ "python3", { "poll", "_ZL16ncclProxyServicePv" }, RPC_THREAD_ROLE_COLLECTIVE },
		{ "python3", { "ncclGroupEnd" }, RPC_THREAD_ROLE_COLLECTIVE },
		{ "python3", { "ioctl", "hipStreamSynchronize_spt" }, RPC_THREAD_ROLE_GPU_WAIT },
		{ "python3", { "cuStreamSynchronize_ptsz" }, RPC_THREAD_ROLE_GPU_WAIT },
		{ "python3", { "cuCtxSynchronize_v2" }, RPC_THREAD_ROLE_GPU_WAIT },
		{ "python3", { "cudaDeviceSynchronize" }, RPC_THREAD_ROLE_GPU_WAIT },
		/* The innermost of them counts. */
		{ "pt_autograd_0", { "hipStreamSynchronize", "ncclGroupEnd" }, RPC_THREAD_ROLE_GPU_WAIT },
		{ "pt_autograd_0", { "pthread_cond_wait" }, RPC_THREAD_ROLE_AUTOGRAD },
		{ "python3", { "pthread_cond_wait", "curl_easy_perform", "main" }, NO_ROLE },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_ROW_EQ(i, role_of(rows[i].name, rows[i].functions), rows[i].role);
}

static void put_number(struct out *o, bool is_told, uint32_t n)
{
	if (is_told)
		out_fmt(o, "%u", n);
	else
		out_char(o, '-');
}

/* Each variable with a NUL behind it, as in /proc/PID/environ; what is told is "rank/local/world job (variable)". */
static void tell(const char *variables, struct out *o)
{
	char text[512];
	size_t n = (size_t)snprintf(text, sizeof(text), "%s", variables);
	struct rank r;

	for (size_t i = 0; i < n; i++)
		if (text[i] == ' ')
			text[i] = '\0';
	rank_parse(text, n + 1, &r);
	out_str(o, "");
	if (!r.from)
		return;
	out_fmt(o, "%u/", r.rank);
	put_number(o, r.has_local, r.local_rank);
	out_char(o, '/');
	put_number(o, r.has_world, r.world_size);
	out_fmt(o, " %s (%s)", r.job, r.from);
}

static void launchers_tell_ranks(void)
{
	static const struct {
		const char *variables, *want;
	} rows[] = {
		{ "HOME=/root", "" },
		{ "RANK=3 LOCAL_RANK=1 WORLD_SIZE=8 TORCHELASTIC_RUN_ID=a SLURM_PROCID=0 SLURM_JOB_ID=7", "3/1/8 a (RANK)" },
		{ "MV2_COMM_WORLD_RANK=5 MV2_COMM_WORLD_LOCAL_RANK=1 MV2_COMM_WORLD_SIZE=8", "5/1/8  (MV2_COMM_WORLD_RANK)" },
		{ "HOROVOD_RANK=2 HOROVOD_LOCAL_RANK=0 HOROVOD_SIZE=4", "2/0/4  (HOROVOD_RANK)" },
		{ "PMI_RANK=5 PMI_SIZE=8 PMI_LOCAL_RANK=1 PBS_JOBID=12.head", "5/1/8 12.head (PMI_RANK)" },
		{ "PMI_RANK=5 PMI_SIZE=8 MPI_LOCALRANKID=1 LSB_JOBID=44", "5/1/8 44 (PMI_RANK)" },
		/* srun --mpi=pmi2: the process manager's interface has no local rank, and Slurm has. */
		{ "PMI_RANK=5 PMI_SIZE=8 SLURM_PROCID=5 SLURM_NTASKS=8 SLURM_LOCALID=1 SLURM_JOB_ID=7", "5/1/8 7 (PMI_RANK)" },
		/* Ranks that one process of Slurm has started are others than its own. */
		{ "PMI_RANK=5 PMI_SIZE=8 SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_LOCALID=0", "5/-/8  (PMI_RANK)" },
		{ "PMI_RANK=0 PMI_SIZE=8 SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_LOCALID=0", "0/-/8  (PMI_RANK)" },
		{ "JAX_PROCESS_ID=1 SLURM_PROCID=x SLURM_LOCALID=1", "1/-/-  (JAX_PROCESS_ID)" },
		/* A job without a rank is no rank. */
		{ "PBS_JOBID=12 SLURM_JOB_ID=7", "" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_out struct out o = { 0 };

		tell(rows[i].variables, &o);
		TEST_ROW_STR(i, o.data ? o.data : "", rows[i].want);
	}
}

TEST_SUITE(worker_host, TEST(functions_tell_roles), TEST(launchers_tell_ranks));
