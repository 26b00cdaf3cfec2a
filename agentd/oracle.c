/* SPDX-License-Identifier: MIT */
#include "agentd/oracle.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/privileges.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define WAIT_MS 500

enum answer { YES, NO, GONE, CANNOT_ASK };

/*
 * The open of a namespace file checks ptrace access instead of a file mode (fs/proc/namespaces.c,
 * proc_ns_get_link()), and has no side effect.
 */
int oracle_ask_self(int proc_fd)
{
	auto_close int fd = openat(proc_fd, "ns/user", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		return 1;
	return errno == EACCES || errno == EPERM ? 0 : errno == ENOENT ? -ESRCH : -errno;
}

/* The child: its exit status is an enum answer. */
static _Noreturn void answer(int proc_fd, uid_t uid, gid_t gid, const gid_t *groups, size_t n)
{
	int r = privileges_become_login(uid, gid, groups, n);

	if (r < 0)
		_exit(CANNOT_ASK);
	r = oracle_ask_self(proc_fd);
	_exit(r == 1 ? YES : r == 0 ? NO : r == -ESRCH ? GONE : CANNOT_ASK);
}

int oracle_begin(int proc_fd, uid_t uid, gid_t gid, const gid_t *groups, size_t n_groups, struct oracle *ret)
{
	pid_t child = fork();

	if (child == 0)
		answer(proc_fd, uid, gid, groups, n_groups);
	if (child < 0)
		return -errno;
	*ret = (struct oracle){ .child = child, .deadline = clock_deadline_ms(WAIT_MS) };
	return 0;
}

int oracle_answer(int wait_status)
{
	if (!WIFEXITED(wait_status))
		return -EIO;
	switch (WEXITSTATUS(wait_status)) {
	case YES:
		return 1;
	case NO:
		return 0;
	case GONE:
		return -ESRCH;
	default:
		return -EPERM;
	}
}

int oracle_give_up(struct oracle *o)
{
	/* It is not waited for again: whatever reaps any child of this process reaps it. */
	if (o->child > 0)
		privileges_kill(o->child, SIGKILL);
	o->child = 0;
	return -ETIMEDOUT;
}

int oracle_ask(int proc_fd, uid_t uid, gid_t gid, const gid_t *groups, size_t n_groups)
{
	struct oracle o = { 0 };
	int status, r = oracle_begin(proc_fd, uid, gid, groups, n_groups, &o);

	if (r < 0)
		return r;
	r = child_wait(o.child, o.deadline, &status);
	if (r == -ETIMEDOUT)
		return oracle_give_up(&o);
	return r < 0 ? -EIO : oracle_answer(status);
}
