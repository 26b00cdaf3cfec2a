/* SPDX-License-Identifier: MIT */
#include "agentd/spawn/worker_env.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/*
 * NVIDIA's library obeys dozens of variables, which a shell that the agent is started from has set
 * for programs: CUDA_VISIBLE_DEVICES would hide devices of the target, CUDBG_USE_LEGACY_DEBUGGER
 * choose another engine than the target's, CUDA_MPS_PIPE_DIRECTORY make the worker a client of MPS.
 */
static const char *const kept[] = {
	"HOME=", /* the engine looks for nvlog.config there */
	"JOURNAL_STREAM=",
	"LD_LIBRARY_PATH=", /* by which libcuda finds its engine, wherever it was loaded from itself */
	"TMPDIR=",
	"ASAN_OPTIONS=",
	"LSAN_OPTIONS=",
	"TSAN_OPTIONS=",
	"UBSAN_OPTIONS=",
};
_Static_assert(ARRAY_SIZE(kept) < WORKER_ENV_MAX, "the last entry is NULL");

static char *find(const char *name)
{
	for (char **e = environ; *e; e++)
		if (strncmp(*e, name, strlen(name)) == 0)
			return *e;
	return NULL;
}

void worker_env_make(char *ret[WORKER_ENV_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		ret[n] = find(kept[i]);
		n += ret[n] != NULL;
	}
	ret[n] = NULL;
}
