/* SPDX-License-Identifier: MIT */
#include "agentd/handshake.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

/* The low 16 bits of AMDKFD_IOC_RUNTIME_ENABLE: type 'K' and number 0x25 (kfd_ioctl.h). */
#define RUNTIME_ENABLE_NR 0x4b25u
#define WAIT_CHANNEL "kfd_ioctl_runtime_enable" /* The kernel function that the thread sleeps in. */

/*
 * Ask the kernel in which of its functions the thread sleeps.  A reader without the right to know
 * gets "0", just as for a thread that runs (fs/proc/base.c, proc_pid_wchan()).
 * @return 1 if the thread waits, 0, -EPERM.
 */
static int look_at_channel(const char *task_dir, const char *tid)
{
	char path[400];
	auto_free char *channel = NULL;
	size_t size;

	snprintf(path, sizeof(path), "%s/%s/wchan", task_dir, tid);
	if (fd_read_file(path, 4096, &channel, &size) < 0 || !strcmp(channel, "0"))
		return -EPERM;
	return !strcmp(channel, WAIT_CHANNEL);
}

/*
 * While a thread is in ioctl(), its file `syscall` begins with "16 0xFD 0xCOMMAND".
 * @return 1 if the thread waits, 0, -EPERM.
 */
static int thread_waits(const char *task_dir, const char *tid)
{
	char path[400];
	auto_free char *call = NULL;
	unsigned long long nr, fd, command;
	size_t size;
	int r;

	snprintf(path, sizeof(path), "%s/%s/syscall", task_dir, tid);
	r = fd_read_file(path, 4096, &call, &size);
	if (r == -ENOENT || r == -ESRCH)
		return 0;
	if (r < 0)
		return look_at_channel(task_dir, tid);
	return sscanf(call, "%llu 0x%llx 0x%llx", &nr, &fd, &command) == 3 && nr == SYS_ioctl &&
	       (command & 0xffff) == RUNTIME_ENABLE_NR;
}

/* Wait for the interrupted thread; a signal that was on its way is passed on. */
static int wait_and_detach(pid_t tid, uint64_t deadline)
{
	const struct timespec nap = { .tv_nsec = 1000000 };

	for (;;) {
		int status;
		pid_t got = waitpid(tid, &status, __WALL | WNOHANG);

		if (got < 0 && errno != EINTR)
			return -errno;
		if (got == tid) {
			bool event = WIFSTOPPED(status) && status >> 16;
			long sig = WIFSTOPPED(status) && !event ? WSTOPSIG(status) : 0;

			if (!WIFSTOPPED(status))
				return -ESRCH;
			return ptrace(PTRACE_DETACH, tid, NULL, (void *)sig) < 0 ? -errno : 0;
		}
		if (!clock_left_ms(deadline))
			return -ETIMEDOUT; /* The end of this process detaches. */
		nanosleep(&nap, NULL);
	}
}

static int stop_thread(pid_t tid, uint64_t deadline)
{
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		return -errno;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0)
		return -errno;
	return wait_and_detach(tid, deadline);
}

/* @param released  NULL: no thread is stopped.  @return as handshake_release(). */
static int each_waiting(pid_t pid, uint64_t deadline, int *released)
{
	int waiting = 0, unknown = 0;
	char task_dir[64];
	struct dirent *d;
	DIR *dir;

	snprintf(task_dir, sizeof(task_dir), "/proc/%d/task", (int)pid);
	dir = opendir(task_dir);
	if (!dir)
		return -errno;
	while ((d = readdir(dir))) {
		uint64_t tid;
		int r;

		if (str_to_u64(d->d_name, 1, INT32_MAX, &tid) < 0)
			continue;
		r = thread_waits(task_dir, d->d_name);
		unknown += r < 0;
		if (r != 1)
			continue;
		waiting++;
		if (released && stop_thread((pid_t)tid, deadline) == 0)
			(*released)++;
	}
	closedir(dir);
	return !waiting && unknown ? -EPERM : waiting;
}

int handshake_waiting(pid_t pid)
{
	int r = each_waiting(pid, 0, NULL);

	return r == -ENOENT ? 0 : r;
}

int handshake_release(pid_t pid, uint64_t deadline_ns, int *released)
{
	return each_waiting(pid, deadline_ns, released);
}
