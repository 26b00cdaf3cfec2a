/* SPDX-License-Identifier: MIT */
#include "agentd/worker/process/yama.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

int yama_ptrace_scope(void)
{
	auto_free char *text = NULL;
	size_t size;
	int r = fd_read_file("/proc/sys/kernel/yama/ptrace_scope", 64, &text, &size);

	if (r < 0)
		return access("/proc/sys/kernel/yama", F_OK) < 0 ? 0 : -1;
	return atoi(text);
}

bool yama_allows(const struct worker_options *o, int scope)
{
	return scope <= 0 || (scope < 3 && o->privileged);
}
