/* SPDX-License-Identifier: MIT */
#include "agentd/closers.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agentd/privileges.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"

struct closer {
	struct closer *next;
	pid_t pid;
	int64_t uid; /* CLOSERS_NOBODY: nobody wants to know that it ended */
};

/* Nothing of its parent's may stay open in a process that cannot be ended. */
static void keep_only(int a, int b)
{
	unsigned low = (unsigned)(a < b ? a : b), high = (unsigned)(a < b ? b : a);

	close_range(0, low - 1, 0);
	if (high > low + 1)
		close_range(low + 1, high - 1, 0);
	close_range(high + 1, ~0u, 0);
}

static _Noreturn void wait_and_exit(const struct closers *c, int fd, int gate)
{
	sigset_t none;
	char byte;

	keep_only(fd, gate);
	prctl(PR_SET_NAME, "gpu-agent-close");
	setsid();
	/* There is nothing that it could do with more rights, so that failing costs nothing. */
	(void)privileges_become(c->uid, c->gid);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* Nobody writes: no other process has the socket. */
	while (read(gate, &byte, 1) < 0 && errno == EINTR)
		;
	/* At the end of a process the kernel does not let a connection linger. */
	_exit(0);
}

void closers_go(struct closers *c)
{
	if (c->gate_fd >= 0)
		close(TAKE_FD(c->gate_fd));
}

int closers_start(struct closers *c, int take_fd, int64_t uid)
{
	auto_free struct closer *k = malloc(sizeof(*k));
	int gate[2];

	closers_go(c);
	if (!k)
		return -ENOMEM;
	if (pipe2(gate, O_CLOEXEC) < 0)
		return -errno;
	k->uid = uid;
	k->pid = fork();
	if (k->pid == 0)
		wait_and_exit(c, take_fd, gate[0]);
	close(gate[0]);
	if (k->pid < 0) {
		int r = -errno;

		close(gate[1]);
		return r;
	}
	close(take_fd); /* not the last one: a process has just been made that has it */
	c->gate_fd = gate[1];
	k->next = c->first;
	c->first = TAKE_PTR(k);
	return 0;
}

void closers_close(struct closers *c, int take_fd)
{
	int r = closers_start(c, take_fd, CLOSERS_NOBODY);

	if (r < 0)
		log_error("no process to close a socket in: it stays open: %s", strerror(-r));
	closers_go(c);
}

void closers_close_socket(int take_fd)
{
	/* It has no user of its own to become, and does nothing but to end. */
	struct closers one = { .gate_fd = -1, .uid = getuid(), .gid = getgid() };

	closers_close(&one, take_fd);
	closers_deinit(&one);
}

void closers_close_foreign(int take_fd)
{
	pid_t pid;

	if (take_fd < 0)
		return;
	if (fd_is_memfd(take_fd)) {
		close(take_fd);
		return;
	}
	/* A copy would have to be closed here as well, and each close of a file can block. */
	pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		close(take_fd);
		_exit(0);
	}
	if (pid < 0)
		log_error("no process to close a descriptor in: it stays open: %s", strerror(errno));
}

bool closers_reaped(struct closers *c, pid_t pid, int64_t *ret_uid)
{
	struct closer **link = &c->first, *found;

	while (*link && (*link)->pid != pid)
		link = &(*link)->next;
	found = *link;
	if (!found)
		return false;
	*link = found->next;
	*ret_uid = found->uid;
	free(found);
	return true;
}

void closers_deinit(struct closers *c)
{
	closers_go(c);
	while (c->first) {
		struct closer *k = c->first;

		c->first = k->next;
		free(k);
	}
}
