/* SPDX-License-Identifier: MIT */
#include "agentd/manager/heirs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/ipc/child.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

/* Half a minute for each 32 targets is what it may take; with more than that it does not end any more. */
#define TAKE_OVER_MS 120000

/* @param monitor  0: the process is to take over from others at once.  @param pidfd  Of the monitor, or -1. */
static _Noreturn void become_heir(const struct heir_setup *s, pid_t monitor, int pidfd)
{
	static const int to[] = { IPC_FD_TARGET };
	char pid[12];
	const char *argv[] = { s->program, "--records", s->records, "--kfd", s->config->kfd_device,
			       "--kfd-sysfs", s->config->kfd_sysfs, "--cuda-library", s->config->cuda_library,
			       NULL, NULL, NULL, NULL };
	size_t n = 9;

	snprintf(pid, sizeof(pid), "%d", (int)monitor);
	argv[n++] = monitor ? "--monitor" : "--take-over";
	if (monitor)
		argv[n++] = pid;
	if (s->verbose)
		argv[n++] = "--verbose";
	child_place_fds(&pidfd, to, ARRAY_SIZE(to));
	child_exec(s->program, argv, 0);
}

void heir_take_over(const struct heir_setup *setup)
{
	pid_t pid;
	int status;

	/* There was none in this place. */
	if (access(setup->records, F_OK) < 0 && errno == ENOENT)
		return;
	pid = fork();
	if (pid == 0)
		become_heir(setup, 0, -1);
	if (pid < 0 || child_wait(pid, clock_deadline_ms(TAKE_OVER_MS), &status) == 0)
		return;
	log_error("gpu-agent-heir does not end: killed");
	kill(pid, SIGKILL);
}

pid_t heir_start(const struct heir_setup *setup, pid_t monitor)
{
	/* A pipe would not do: who closes a stranger's descriptor for the monitor shares all of its own (closers.h). */
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, monitor, 0);
	pid_t pid = pidfd < 0 ? -1 : fork();

	if (pid == 0)
		become_heir(setup, monitor, pidfd);
	return pid < 0 ? 0 : pid;
}
