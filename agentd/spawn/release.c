/* SPDX-License-Identifier: MIT */
#include "agentd/spawn/release.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "agentd/access.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

#define RUNTIME_ENABLE_NR 0x4b25u /* type 'K', number 0x25: kfd_ioctl.h */
#define POLL_MS 10
#define LEFTOVERS_MS 1000

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* /proc/PID/task/TID/syscall: "16 0xFD 0xCOMMAND ..." while the thread is in ioctl(). */
static bool is_in_handshake(const char *task_dir, const char *tid)
{
	char path[400];
	auto_free char *text = NULL;
	unsigned long long nr, fd, command;
	size_t size;

	snprintf(path, sizeof(path), "%s/%s/syscall", task_dir, tid);
	if (fd_read_file(path, 4096, &text, &size) < 0)
		return false;
	if (sscanf(text, "%llu 0x%llx 0x%llx", &nr, &fd, &command) != 3)
		return false;
	return nr == SYS_ioctl && (command & 0xffff) == RUNTIME_ENABLE_NR;
}

/* Wait for the interrupted thread; a signal that was on its way is passed on. */
static int wait_and_detach(pid_t tid, uint64_t deadline)
{
	for (;;) {
		int status;
		pid_t got = waitpid(tid, &status, __WALL | WNOHANG);

		if (got < 0)
			return -errno;
		if (got == tid) {
			bool event = WIFSTOPPED(status) && status >> 16;
			long sig = WIFSTOPPED(status) && !event ? WSTOPSIG(status) : 0;

			if (!WIFSTOPPED(status))
				return -ESRCH;
			return ptrace(PTRACE_DETACH, tid, NULL, (void *)sig) < 0 ? -errno : 0;
		}
		if (!clock_left_ms(deadline))
			return -ETIMEDOUT; /* our exit detaches */
		pause_ms(1);
	}
}

static int nudge(pid_t tid, uint64_t deadline)
{
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		return -errno;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0)
		return -errno;
	return wait_and_detach(tid, deadline);
}

/* One pass over all threads.  @return threads found waiting. */
static int release_pass(const char *task_dir, uint64_t deadline, int *released)
{
	DIR *dir = opendir(task_dir);
	struct dirent *d;
	int waiting = 0;

	if (!dir)
		return -errno;
	while ((d = readdir(dir))) {
		uint64_t tid;

		if (str_to_u64(d->d_name, 1, INT32_MAX, &tid) < 0 ||
		    !is_in_handshake(task_dir, d->d_name))
			continue;
		waiting++;
		if (nudge((pid_t)tid, deadline) == 0)
			(*released)++;
	}
	closedir(dir);
	return waiting;
}

int release_handshake(pid_t target, int pidfd)
{
	uint64_t deadline = clock_deadline_ms(1000);
	int released = 0, quiet = 0;
	char task_dir[64];

	snprintf(task_dir, sizeof(task_dir), "/proc/%d/task", (int)target);
	/* The kernel may still be taking the dead worker's session down: look a few times. */
	while (quiet < 5 && clock_left_ms(deadline)) {
		struct pollfd p = { .fd = pidfd, .events = POLLIN };
		int waiting;

		if (poll(&p, 1, 0) != 0)
			break;
		waiting = release_pass(task_dir, deadline, &released);
		if (waiting < 0)
			return waiting == -ENOENT ? released : waiting;
		quiet = waiting ? 0 : quiet + 1;
		pause_ms(POLL_MS);
	}
	return released;
}

/* Somebody who traces it is alive and answers by himself. */
static void release_orphan(pid_t pid, uint64_t deadline, int *released)
{
	struct access_target t;
	char task_dir[64];

	if (access_target_read(pid, &t) < 0 || t.tracer_pid)
		return;
	snprintf(task_dir, sizeof(task_dir), "/proc/%d/task", (int)pid);
	release_pass(task_dir, deadline, released);
}

int release_leftovers(const char *kfd_sysfs)
{
	uint64_t deadline = clock_deadline_ms(LEFTOVERS_MS);
	char path[PATH_MAX + 8];
	struct dirent *d;
	int released = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc", kfd_sysfs);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((d = readdir(dir))) {
		uint64_t pid;

		if (str_to_u64(d->d_name, 1, INT32_MAX, &pid) == 0)
			release_orphan((pid_t)pid, deadline, &released);
	}
	closedir(dir);
	return released;
}
