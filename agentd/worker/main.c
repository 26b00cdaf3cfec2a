/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "agentd/worker/host/host.h"
#include "agentd/worker/inspect/core_server.h"
#include "agentd/worker/inspect/discover.h"
#include "agentd/worker/inspect/inspect.h"
#include "agentd/worker/inspect/repair.h"
#include "agentd/worker/inspect/rescue.h"
#include "agentd/worker/process/options.h"
#include "agentd/worker/session/session.h"
#include "base/fd.h"
#include "base/log.h"

/*
 * Who cleans up behind us knows by this lock that we live (agentd/ipc/undo_record.h).
 * @return false when another rescuer is at work.
 */
static bool claim_record(void)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(IPC_FD_UNDO, F_SETLK, &whole) == 0 || (errno != EAGAIN && errno != EACCES);
}

/* Larger blocks are mappings of their own. */
#define MAPPED_FROM (256 * 1024)

int main(int argc, char **argv)
{
	struct worker_options o;
	char error[160];

	if (fd_reserve_stdio() < 0)
		return 1;
	if (argc == 3 && strcmp(argv[1], "--core") == 0)
		return core_server_run(argv[2]);
	if (worker_options_parse(argc, argv, &o, error, sizeof(error)) < 0) {
		fprintf(stderr, "gpu-agent-worker: %s\n", error);
		return 2;
	}
	log_init("gpu-agent-worker", o.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	fd_set_cloexec(IPC_FD_MONITOR, true);
	fd_set_cloexec(IPC_FD_FRONT, true);
	if (o.kind == IPC_KIND_SESSION || o.kind == IPC_KIND_RESCUE || o.kind == IPC_KIND_REPAIR) {
		fd_set_cloexec(IPC_FD_TARGET, true);
		fd_set_cloexec(IPC_FD_UNDO, true);
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a client's file may be larger than we may make one */
#ifdef M_MMAP_THRESHOLD
	/* glibc would raise this by itself, and keep what a list of all waves took (mallopt(3)). */
	mallopt(M_MMAP_THRESHOLD, MAPPED_FROM);
#endif
	switch (o.kind) {
	case IPC_KIND_SESSION:
		claim_record();
		return session_run(&o);
	case IPC_KIND_RESCUE:
		/* Another one is at work: nothing is done yet. */
		return claim_record() ? rescue_run(&o) : 1;
	case IPC_KIND_REPAIR:
		return claim_record() ? repair_run(&o) : 1;
	case IPC_KIND_LOOK:
		return discover_run(&o);
	case IPC_KIND_HOST:
		fd_set_cloexec(IPC_FD_TARGET, true);
		return host_run(&o);
	default:
		return inspect_run(&o);
	}
}
