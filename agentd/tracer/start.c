/* SPDX-License-Identifier: MIT */
#include "agentd/tracer/start.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/ipc/worker_tracer.h"
#include "base/cleanup.h"
#include "base/fd.h"

#define PROGRAM "/gpu-agent-tracer"

static _Noreturn void run(const char *program, int sock, int proc_fd, int pidfd, int maps_fd)
{
	static const int to[] = { IPC_FD_TRACER_WORKER, IPC_FD_TRACER_PROC, IPC_FD_TRACER_PIDFD,
				  IPC_FD_TRACER_MAPS };
	const int from[] = { sock, proc_fd, pidfd, maps_fd };
	const char *argv[] = { program, NULL };

	child_place_fds(from, to, ARRAY_SIZE(to));
	/* It ends when the worker does, and has to be there when that one detaches. */
	child_exec(program, argv, SIGTERM);
}

static int introduce(int sock, const struct access_target *facts, uint64_t start_ticks)
{
	struct ipc_tracer_target m = { .verb = IPC_TRACER_TARGET, .pid = facts->pid, .start_ticks = start_ticks,
				       .dumpable = facts->dumpable };
	ssize_t n;

	memcpy(m.uids, facts->uids, sizeof(m.uids));
	n = fd_send(sock, &m, sizeof(m), NULL, 0);
	return n < 0 ? (int)n : 0;
}

int tracer_start(const struct access_target *facts, uint64_t start_ticks, int proc_fd, int pidfd, pid_t *ret_pid,
		 int *ret_sock)
{
	/* Not an open file that anybody else has as well: reads of one wait for those of the other. */
	auto_close int maps_fd = openat(proc_fd, "maps", O_RDONLY | O_CLOEXEC), ours = -1, theirs = -1;
	char program[PATH_MAX];
	int pair[2], r;
	pid_t pid;

	r = maps_fd < 0 ? -EACCES : child_find_directory(program, sizeof(program) - sizeof(PROGRAM));
	if (r == 0)
		r = fd_socketpair(0, pair);
	if (r < 0)
		return r;
	ours = pair[0];
	theirs = pair[1];
	strcat(program, PROGRAM);
	pid = fork();
	if (pid == 0)
		run(program, theirs, proc_fd, pidfd, maps_fd);
	r = pid < 0 ? -errno : introduce(ours, facts, start_ticks);
	if (r < 0)
		return r;
	*ret_pid = pid;
	*ret_sock = TAKE_FD(ours);
	return 0;
}

void tracer_reap(pid_t pid)
{
	if (pid > 0)
		waitpid(pid, NULL, WNOHANG);
}
