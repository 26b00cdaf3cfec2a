/* SPDX-License-Identifier: MIT */
#include "agentd/spawn/worker_env.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

/*
 * NVIDIA's library obeys dozens of variables, which a shell that the agent is started from has set
 * for programs: CUDA_VISIBLE_DEVICES would hide devices of the target, CUDBG_USE_LEGACY_DEBUGGER
 * choose another engine than the target's, CUDA_MPS_PIPE_DIRECTORY make the worker a client of MPS.
 */
static const char *const prefixes[] = { "CUDA", "CUDBG", "NVIDIA", "NVLOG", "NV_", "__NV", "__GL" };

static bool is_for_programs(const char *variable)
{
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (str_starts_with(variable, prefixes[i]))
			return true;
	return false;
}

void worker_env_clean(void)
{
	char **kept = environ;

	for (char **e = environ; *e; e++)
		if (!is_for_programs(*e))
			*kept++ = *e;
	*kept = NULL;
}
