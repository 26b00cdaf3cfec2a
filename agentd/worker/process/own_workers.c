/* SPDX-License-Identifier: MIT */
#include "agentd/worker/process/own_workers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/ipc/child.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"

/*
 * Read the command line of a process, whose arguments are separated by NUL.
 * @return false unless it is that of a session worker.
 */
static bool read_worker(pid_t worker, uint64_t *ret_target, uint64_t *ret_session)
{
	auto_free char *line = NULL;
	uint64_t target = 0, session = 0;
	bool is_session = false;
	char path[64];
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)worker);
	if (fd_read_file(path, 16 * 1024, &line, &size) < 0)
		return false;
	for (const char *p = line; p < line + size; p += strlen(p) + 1) {
		const char *value = p + strlen(p) + 1;

		if (value >= line + size)
			break;
		if (strcmp(p, "--kind") == 0)
			is_session = strcmp(value, "session") == 0;
		else if (strcmp(p, "--pid") == 0 && str_to_u64(value, 1, INT32_MAX, &target) < 0)
			return false;
		else if (strcmp(p, "--session") == 0 &&
			 str_to_u64(value, 1, UINT32_MAX, &session) < 0)
			return false;
	}
	*ret_target = target;
	*ret_session = session;
	return is_session && target && session;
}

const char *own_workers_find(struct rpc_arena *a, pid_t worker, pid_t target)
{
	auto_free char *children = NULL;
	struct ucred monitor; /* The monitor made the socket pair, so it is the peer. */
	socklen_t monitor_size = sizeof(monitor);
	uint64_t of, session;
	char path[64], *end;
	size_t size;

	if (getsockopt(IPC_FD_MONITOR, SOL_SOCKET, SO_PEERCRED, &monitor, &monitor_size) < 0)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)monitor.pid, (int)monitor.pid);
	if (fd_read_file(path, 64 * 1024, &children, &size) < 0)
		return NULL;
	for (char *p = children; *p; p = end) {
		pid_t pid = (pid_t)strtol(p, &end, 10);

		if (end == p)
			break;
		if ((!worker || pid == worker) && read_worker(pid, &of, &session) &&
		    (!target || of == (uint64_t)target))
			return rpc_arena_printf(a, "s%llu", (unsigned long long)session);
	}
	return NULL;
}
