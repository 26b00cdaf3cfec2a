/* SPDX-License-Identifier: MIT */
/*
 * gpu-agent-tracer: traces threads of one process, for the worker that started it.
 *
 * The worker has NVIDIA's closed library in it and no right that the target's user lacks.  Where that
 * user may not trace the process (Yama, capabilities, a process that is not dumpable), this program
 * does.  It keeps CAP_SYS_PTRACE and nothing else, obeys the few verbs of agentd/ipc/worker_tracer.h,
 * and parses nothing of the target but two lines of the kernel's.
 *
 * A tracer that seized with the capability keeps its rights over whatever the process executes later.
 * So no request is executed before the thread's stop was looked at, and when the process executes a
 * program, this one lets go and ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agentd/access.h"
#include "agentd/ipc/worker_tracer.h"
#include "agentd/privileges.h"
#include "agentd/sandbox.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cudbgshim_target.h"

/* Time for the worker to say which process it is about. */
#define BEGIN_MS 5000
/* A worker that has stopped, or does as it likes, keeps no thread for longer than this. */
#define HOLD_MS 20000
#define THREADS_MAX 72
#define STATUS_MAX 16384

#define SYS (&cudbgshim_tracer_direct)

struct tracer {
	struct ipc_tracer_target target;
	pid_t held[THREADS_MAX]; /* Threads that are seized. */
	size_t n_held;
	uint64_t hold_until; /* While there are any. */
	bool is_over;	     /* Nothing is executed any more: answer, and end. */
	uint8_t block[IPC_TRACER_BLOCK_MAX];
};

/* ------------------------------------------------------------------ the one process ---------- */

static ssize_t read_text(const char *name, char *buf, size_t size)
{
	int fd = openat(IPC_FD_TRACER_PROC, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -errno : read(fd, buf, size - 1);

	if (fd >= 0 && n < 0)
		n = -errno;
	if (fd >= 0)
		close(fd);
	if (n >= 0)
		buf[n] = '\0';
	return n;
}

/*
 * Is it the process that the worker was allowed to attach to, with the same users and the same program?
 * The list of mappings was opened then.  It is empty when the program that it is of is no more.
 */
static bool is_unchanged(const struct tracer *t)
{
	char text[STATUS_MAX], byte;
	ssize_t n = read_text("status", text, sizeof(text));
	struct access_target now;
	struct stat st;

	if (n <= 0 || access_status_parse(text, (size_t)n, &now) < 0 || now.pid != t->target.pid ||
	    fstatat(IPC_FD_TRACER_PROC, "status", &st, 0) < 0)
		return false;
	return (st.st_uid == now.uids[1]) == (t->target.dumpable != 0) &&
	       memcmp(now.uids, t->target.uids, sizeof(now.uids)) == 0 &&
	       pread(IPC_FD_TRACER_MAPS, &byte, 1, 0) == 1 && access_is_alive(IPC_FD_TRACER_PIDFD);
}

static bool has_start_time(uint64_t want)
{
	char text[4096];
	unsigned long long start;
	const char *paren;

	if (read_text("stat", text, sizeof(text)) <= 0)
		return false;
	/* The name in field 2 may contain anything, parentheses included: proc(5). */
	paren = strrchr(text, ')');
	return paren && sscanf(paren + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
			       &start) == 1 && start == want;
}

/* ------------------------------------------------------------------ its threads -------------- */

static size_t find(const struct tracer *t, pid_t tid)
{
	size_t i = 0;

	while (i < t->n_held && t->held[i] != tid)
		i++;
	return i;
}

static void forget(struct tracer *t, size_t i)
{
	t->held[i] = t->held[--t->n_held];
}

/*
 * Fetch the stop of one thread.  Whichever thread calls exec, the kernel then tells of the process, as
 * the number of its first thread.
 */
static struct cudbgshim_stop look_at(struct tracer *t, pid_t tid)
{
	struct cudbgshim_stop stop = SYS->look(NULL, tid);

	if (stop.kind == CUDBGSHIM_STOP_EXEC) {
		SYS->go(NULL, tid, CUDBGSHIM_GO_FREE, 0);
		t->is_over = true;
	}
	return stop;
}

/* Fetch the stops of all threads.  @return that of @p tid. */
static struct cudbgshim_stop look_at_all(struct tracer *t, pid_t tid)
{
	struct cudbgshim_stop wanted = { CUDBGSHIM_STOP_GONE, 0 }, stop = { CUDBGSHIM_STOP_GONE, 0 };

	for (size_t i = 0; i < t->n_held && !t->is_over;) {
		stop = look_at(t, t->held[i]);
		if (t->held[i] == tid)
			wanted = stop;
		if (stop.kind == CUDBGSHIM_STOP_GONE)
			forget(t, i);
		else
			i++;
	}
	if (!t->is_over && find(t, t->target.pid) == t->n_held)
		stop = look_at(t, t->target.pid);
	return t->is_over ? stop : wanted;
}

static int seize(struct tracer *t, pid_t tid)
{
	char path[32];
	struct stat st;
	int r;

	if (find(t, tid) < t->n_held)
		return -EPERM;
	if (t->n_held == THREADS_MAX)
		return -ENOSPC;
	snprintf(path, sizeof(path), "task/%d", (int)tid);
	if (fstatat(IPC_FD_TRACER_PROC, path, &st, 0) < 0)
		return -ESRCH;
	r = SYS->seize(NULL, tid);
	if (r < 0)
		return r;
	if (!t->n_held)
		t->hold_until = clock_deadline_ms(HOLD_MS);
	t->held[t->n_held++] = tid;
	/* From here on the process cannot change unseen.  If it has, our end lets the thread go. */
	t->is_over = !is_unchanged(t);
	return t->is_over ? -ESTALE : 0;
}

static int go(struct tracer *t, const struct ipc_tracer_call *c, struct cudbgshim_stop stop)
{
	/* A thread gets no other signal than the one that it stopped for. */
	if (c->what > CUDBGSHIM_GO_FREE ||
	    (c->number && (stop.kind != CUDBGSHIM_STOP_SIGNAL || c->number != stop.sig))) {
		t->is_over = true;
		return -EPROTO;
	}
	if (c->what == CUDBGSHIM_GO_FREE)
		forget(t, find(t, c->tid));
	return SYS->go(NULL, c->tid, (enum cudbgshim_go)c->what, c->number);
}

static int get(struct tracer *t, const struct ipc_tracer_call *c, uint32_t *ret_size)
{
	size_t size = c->size;
	int r;

	if (size > sizeof(t->block)) {
		t->is_over = true;
		return -EPROTO;
	}
	r = SYS->get(NULL, c->tid, (enum cudbgshim_part)c->what, t->block, &size);
	if (r == 0)
		*ret_size = (uint32_t)size;
	return r;
}

/* No thread need be held for this: what was read is another program's if there is one by now. */
static int place(struct tracer *t, const struct ipc_tracer_call *c, uint32_t *ret_size)
{
	char path[40];
	ssize_t n;

	snprintf(path, sizeof(path), "task/%d/syscall", (int)c->tid);
	n = read_text(path, (char *)t->block, IPC_TRACER_PLACE_MAX);
	t->is_over = !is_unchanged(t);
	if (t->is_over)
		return -ESTALE;
	if (n > 0)
		*ret_size = (uint32_t)n;
	return n < 0 ? (int)n : 0;
}

/*
 * Duplicate a pipe of the process; @return it, or -errno.  What is no pipe could keep us in the kernel when
 * it is closed, so nothing else is, and no thread may be held.
 */
static int descriptor(struct tracer *t, const struct ipc_tracer_call *c)
{
	char path[32], link[8];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "fd/%d", (int)c->number);
	if (t->n_held || !is_unchanged(t) ||
	    readlinkat(IPC_FD_TRACER_PROC, path, link, sizeof(link)) < 6 || strncmp(link, "pipe:[", 6))
		return -EBADF;
	fd = (int)syscall(SYS_pidfd_getfd, IPC_FD_TRACER_PIDFD, c->number, 0);
	if (fd < 0)
		return -errno;
	/* Another file, or another program's, stays here until our end closes it. */
	t->is_over = fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode) || !is_unchanged(t);
	return t->is_over ? -ESTALE : fd;
}

/* ------------------------------------------------------------------ the worker --------------- */

static bool needs_stop(uint32_t verb)
{
	return verb == IPC_TRACER_GO || verb == IPC_TRACER_GET || verb == IPC_TRACER_SET;
}

/* Every stop is fetched and looked at before anything is done. */
static struct ipc_tracer_answer execute(struct tracer *t, const struct ipc_tracer_call *c, int *ret_fd)
{
	struct cudbgshim_stop stop = look_at_all(t, c->tid);
	struct ipc_tracer_answer a = { .stop = stop.kind, .sig = stop.sig };

	if (t->is_over ||
	    (needs_stop(c->verb) && (stop.kind == CUDBGSHIM_STOP_GONE || stop.kind == CUDBGSHIM_STOP_NONE))) {
		a.result = -ESRCH;
		return a;
	}
	switch (c->verb) {
	case IPC_TRACER_SEIZE:
		a.result = seize(t, c->tid);
		break;
	case IPC_TRACER_INTERRUPT:
		a.result = stop.kind == CUDBGSHIM_STOP_GONE ? -ESRCH : SYS->interrupt(NULL, c->tid);
		break;
	case IPC_TRACER_LOOK:
		break;
	case IPC_TRACER_GO:
		a.result = go(t, c, stop);
		break;
	case IPC_TRACER_GET:
		a.result = get(t, c, &a.size);
		break;
	case IPC_TRACER_SET:
		a.result = SYS->set(NULL, c->tid, (enum cudbgshim_part)c->what, t->block, c->size);
		break;
	case IPC_TRACER_PLACE:
		a.result = place(t, c, &a.size);
		break;
	case IPC_TRACER_DESCRIPTOR:
		*ret_fd = descriptor(t, c);
		a.result = *ret_fd < 0 ? *ret_fd : 0;
		break;
	default:
		t->is_over = true;
		a.result = -EPROTO;
	}
	return a;
}

/* @return false when the worker is gone, late, or breaks the protocol. */
static bool receive(struct tracer *t, void *head, int ms, size_t *ret_block)
{
	struct iovec v[] = { { head, 64 }, { t->block, sizeof(t->block) } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };
	struct pollfd p = { .fd = IPC_FD_TRACER_WORKER, .events = POLLIN };
	ssize_t n;

	if (poll(&p, 1, ms) != 1)
		return false;
	n = recvmsg(IPC_FD_TRACER_WORKER, &m, MSG_DONTWAIT);
	*ret_block = n < 64 ? 0 : (size_t)n - 64;
	return n >= 64 && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
}

static bool answer(struct tracer *t, const struct ipc_tracer_answer *a, int fd)
{
	struct iovec v[] = { { (void *)(uintptr_t)a, sizeof(*a) }, { t->block, a->size } };
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };

	if (fd >= 0) {
		struct cmsghdr *c = (struct cmsghdr *)control;

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
		m.msg_control = control;
		m.msg_controllen = sizeof(control);
	}
	return sendmsg(IPC_FD_TRACER_WORKER, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static int serve(struct tracer *t)
{
	struct ipc_tracer_call c;
	size_t block;

	if (!receive(t, &t->target, BEGIN_MS, &block) || t->target.verb != IPC_TRACER_TARGET ||
	    !has_start_time(t->target.start_ticks) || !is_unchanged(t))
		return 1;
	while (!t->is_over && receive(t, &c, t->n_held ? clock_left_ms(t->hold_until) : -1, &block)) {
		struct ipc_tracer_answer a;
		int fd = -1;

		/* A call that waits already does not prolong that time. */
		if (t->n_held && !clock_left_ms(t->hold_until))
			return 1;
		if (block != (c.verb == IPC_TRACER_SET ? c.size : 0))
			return 1;
		a = execute(t, &c, &fd);
		if (!answer(t, &a, fd))
			return 1;
		if (fd >= 0)
			close(fd);
	}
	return t->is_over;
}

int main(int argc, char **argv)
{
	static struct tracer t;
	struct stat st;

	(void)argv;
	if (argc != 1 || fstatat(IPC_FD_TRACER_PROC, "mem", &st, 0) < 0) {
		fputs("gpu-agent-tracer is started by gpu-agent-worker\n", stderr);
		return 2;
	}
	close_range(IPC_FD_TRACER_MAPS + 1, ~0u, 0);
	/* What only a tracer may read in /proc belongs to the user that this file belongs to. */
	if (privileges_keep_trace(st.st_uid, st.st_gid) < 0 || privileges_hide() < 0)
		return 1;
	/* It ends with its worker, also in a call that takes long.  A change of users would reset this. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || sandbox_tracer() < 0)
		return 1;
	return serve(&t);
}
