/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>

#include "agentd/worker/inspect.h"
#include "agentd/worker/options.h"
#include "agentd/worker/session.h"
#include "base/fd.h"
#include "base/log.h"

int main(int argc, char **argv)
{
	struct worker_options o;
	char error[160];

	if (fd_reserve_stdio() < 0)
		return 1;
	if (worker_options_parse(argc, argv, &o, error, sizeof(error)) < 0) {
		fprintf(stderr, "gpu-agent-worker: %s\n", error);
		return 2;
	}
	log_init("gpu-agent-worker", o.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	fd_set_cloexec(IPC_FD_SPAWN, true);
	fd_set_cloexec(IPC_FD_FRONT, true);
	if (o.kind == IPC_KIND_SESSION)
		fd_set_cloexec(IPC_FD_TARGET, true);
	signal(SIGPIPE, SIG_IGN);
	return o.kind == IPC_KIND_SESSION ? session_run(&o) : inspect_run(&o);
}
