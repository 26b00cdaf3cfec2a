/* SPDX-License-Identifier: MIT */
/* Runs a pager in a child, as git(1) does: through a shell, since $PAGER may have arguments. */
#include "ctl/terminal/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

/* The exit status of a shell that did not find the command. */
#define NOT_FOUND 127

/* The child becomes the pager, which reads the text from a pipe. */
static void run_pager(const char *command, int fd)
{
	dup2(fd, STDIN_FILENO);
	/*
	 * less: quit when it all fits, keep colours, leave the text on the screen.  A user's own
	 * LESS wins.
	 */
	setenv("LESS", "FRX", 0);
	/* From less a shell can be started, which would run as root. */
	if (geteuid() == 0)
		setenv("LESSSECURE", "1", 0);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(NOT_FOUND);
}

/* @return 0, -ENOENT (the shell did not find the pager), -errno. */
static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND ? -ENOENT : 0;
}

int pager_show(const char *text, size_t size)
{
	const char *command = getenv("PAGER");
	struct sigaction ignore = { .sa_handler = SIG_IGN }, old_int, old_pipe;
	int fds[2], r;
	pid_t pid;

	if (!command)
		command = "less";
	if (!command[0] || !strcmp(command, "cat"))
		return -ENOENT;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		run_pager(command, fds[0]);
	close(fds[0]);
	if (pid < 0) {
		r = -errno;
		close(fds[1]);
		return r;
	}
	/*
	 * Ctrl-C belongs to the pager while it runs.  A user who quits early breaks the pipe, which
	 * must not end this program.
	 */
	sigaction(SIGINT, &ignore, &old_int);
	sigaction(SIGPIPE, &ignore, &old_pipe);
	fd_write_all(fds[1], text, size);
	close(fds[1]);
	r = wait_for(pid);
	sigaction(SIGINT, &old_int, NULL);
	sigaction(SIGPIPE, &old_pipe, NULL);
	return r;
}
