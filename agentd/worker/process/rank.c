/* SPDX-License-Identifier: MIT */
#include "agentd/worker/process/rank.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/out.h"
#include "base/str.h"

/*
 * Variables of launchers: PyTorch's torchrun, Horovod, Open MPI, MVAPICH, MPICH and Intel MPI, Cray's PALS, Slurm,
 * Flux, JSM, JAX.  Those that only name a job are schedulers: PBS and LSF.
 */
static const struct launcher {
	const char *rank, *local, *world, *job;
} launchers[] = {
	{ "RANK", "LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID" },
	{ "HOROVOD_RANK", "HOROVOD_LOCAL_RANK", "HOROVOD_SIZE", NULL },
	{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE" },
	{ "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE", NULL },
	{ "PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", NULL },
	{ "PMI_RANK", "PMI_LOCAL_RANK", "PMI_SIZE", NULL },
	{ "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_JOB_ID" },
	{ "FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE", "FLUX_JOB_ID" },
	{ "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_SIZE", NULL },
	{ "JAX_PROCESS_ID", NULL, NULL, NULL },
	{ NULL, NULL, NULL, "PBS_JOBID" },
	{ NULL, NULL, NULL, "LSB_JOBID" },
};

/* @return the value of a variable, which has a NUL behind it within the text; NULL: there is none. */
static const char *find(const char *text, size_t size, const char *name)
{
	const size_t length = name ? strlen(name) : 0;
	const char *end;

	while (name && size && (end = memchr(text, '\0', size))) {
		if ((size_t)(end - text) > length && text[length] == '=' && !memcmp(text, name, length))
			return text + length + 1;
		size -= (size_t)(end - text) + 1;
		text = end + 1;
	}
	return NULL;
}

static bool find_number(const char *text, size_t size, const char *name, uint32_t *ret)
{
	const char *value = find(text, size, name);
	uint64_t n;

	if (!value || str_to_u64(value, 0, UINT32_MAX, &n) < 0)
		return false;
	*ret = (uint32_t)n;
	return true;
}

/*
 * The interface that a rank was started by may have no local rank, as that of `srun --mpi=pmi2`.  A launcher that gives
 * the process the same rank of as many means the same ranks, and its local rank is that of this one.
 */
static void find_local(const char *text, size_t size, struct rank *r)
{
	uint32_t rank, world;

	for (size_t i = 0; i < ARRAY_SIZE(launchers) && r->has_world && !r->has_local; i++) {
		const struct launcher *l = &launchers[i];

		if (find_number(text, size, l->rank, &rank) && rank == r->rank &&
		    find_number(text, size, l->world, &world) && world == r->world_size)
			r->has_local = find_number(text, size, l->local, &r->local_rank);
	}
}

void rank_parse(const char *text, size_t size, struct rank *ret)
{
	struct rank r = { 0 };
	const char *job;

	for (size_t i = 0; i < ARRAY_SIZE(launchers) && !r.from; i++) {
		const struct launcher *l = &launchers[i];

		if (!find_number(text, size, l->rank, &r.rank))
			continue;
		r.from = l->rank;
		r.has_local = find_number(text, size, l->local, &r.local_rank);
		r.has_world = find_number(text, size, l->world, &r.world_size);
	}
	find_local(text, size, &r);
	/* A rank that torchrun or MPI has made may be of a job of Slurm: the first that names the job counts. */
	for (size_t i = 0; i < ARRAY_SIZE(launchers) && r.from && !r.job[0]; i++) {
		job = find(text, size, launchers[i].job);
		if (job)
			str_copy(r.job, sizeof(r.job), job);
	}
	str_make_printable(r.job);
	*ret = r;
}

int rank_open(pid_t pid)
{
	char path[40];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int rank_read(int fd, struct rank *ret)
{
	auto_out struct out text = { 0 };
	char buf[4096];
	ssize_t n = 1;

	out_init(&text, 2 * RANK_ENVIRONMENT_MAX);
	*ret = (struct rank){ 0 };
	while (text.size < RANK_ENVIRONMENT_MAX && (n = read(fd, buf, sizeof(buf))) > 0)
		out_bytes(&text, buf, (size_t)n);
	if (n < 0)
		return -errno;
	if (!out_error(&text) && text.size)
		rank_parse(text.data, text.size, ret);
	return out_error(&text);
}
