/* SPDX-License-Identifier: MIT */
#include "base/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Give the descriptors the numbers that they are to have.  @return 0, -1. */
static int place_fds(const struct program *p)
{
	int fds[PROGRAM_FDS_MAX];

	/* First out of the way of those numbers. */
	for (size_t i = 0; i < p->n_fds; i++) {
		int fd = p->fds[i] < 0 ? open("/dev/null", O_RDWR | O_CLOEXEC) : p->fds[i];

		fds[i] = fcntl(fd, F_DUPFD_CLOEXEC, PROGRAM_FDS_MAX);
		if (fds[i] < 0)
			return -1;
	}
	for (size_t i = 0; i < p->n_fds; i++)
		if (dup2(fds[i], (int)i) < 0)
			return -1;
	return 0;
}

__attribute__((noreturn)) static void become(const struct program *p, pid_t parent)
{
	sigset_t none;

	setsid();
	if (place_fds(p) < 0 || close_range((unsigned)p->n_fds, UINT_MAX, 0) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(PROGRAM_NOT_FOUND);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	/* execvp() changes none of the words: its prototype is older than const. */
	execvp(p->path, (char *const *)(uintptr_t)p->argv);
	dprintf(STDERR_FILENO, "%scannot run %s: %s\n", p->prefix, p->path, strerror(errno));
	_exit(PROGRAM_NOT_FOUND);
}

pid_t program_start(const struct program *p)
{
	pid_t parent = getpid(), pid;

	if (p->n_fds > PROGRAM_FDS_MAX)
		return -EINVAL;
	pid = fork();
	if (pid == 0)
		become(p, parent);
	return pid < 0 ? -errno : pid;
}
