/* SPDX-License-Identifier: MIT */
/*
 * gpu-agent-tracer: traces threads of one process, for the worker that started it.
 *
 * The worker has NVIDIA's closed library in it, or reads what the process wrote on its stacks, and no right that the
 * target's user lacks.  Where that user may not trace the process (Yama, capabilities, a process that is not
 * dumpable), and for stops of single threads, this program does.  It keeps CAP_SYS_PTRACE and nothing else, obeys the
 * few verbs of agentd/ipc/worker_tracer.h, and parses nothing of the target but two lines of the kernel's.
 *
 * A tracer that seized with the capability keeps its rights over whatever the process executes later.
 * So no request is executed before the thread's stop was looked at, and when the process executes a
 * program, this one lets go and ends.
 */
#include <errno.h>
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
#include "agentd/tracer/tracer.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cudbgshim_target.h"

/* Time for the worker to say which process it is about. */
#define BEGIN_MS 5000

/* ------------------------------------------------------------------ verbs -------------------- */

static int go(struct tracer *t, const struct ipc_tracer_call *c, struct cudbgshim_stop stop)
{
	/* A thread gets no other signal than the one that it stopped for. */
	if (c->what > CUDBGSHIM_GO_FREE ||
	    (c->number && (stop.kind != CUDBGSHIM_STOP_SIGNAL || c->number != stop.sig))) {
		t->is_over = true;
		return -EPROTO;
	}
	if (c->what == CUDBGSHIM_GO_FREE)
		tracer_forget(t, tracer_find(t, c->tid));
	return TRACER_SYS->go(NULL, c->tid, (enum cudbgshim_go)c->what, c->number);
}

static int get(struct tracer *t, const struct ipc_tracer_call *c, uint32_t *ret_size)
{
	size_t size = c->size;
	int r;

	if (size > IPC_TRACER_BLOCK_MAX) {
		t->is_over = true;
		return -EPROTO;
	}
	r = TRACER_SYS->get(NULL, c->tid, (enum cudbgshim_part)c->what, t->block, &size);
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
	n = tracer_read_text(path, (char *)t->block, IPC_TRACER_PLACE_MAX);
	t->is_over = !tracer_is_unchanged(t);
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
	if (t->n_held || !tracer_is_unchanged(t) ||
	    readlinkat(IPC_FD_TRACER_PROC, path, link, sizeof(link)) < 6 || strncmp(link, "pipe:[", 6))
		return -EBADF;
	fd = (int)syscall(SYS_pidfd_getfd, IPC_FD_TRACER_PIDFD, c->number, 0);
	if (fd < 0)
		return -errno;
	/* Another file, or another program's, stays here until our end closes it. */
	t->is_over = fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode) || !tracer_is_unchanged(t);
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
	struct cudbgshim_stop stop = tracer_look_at_all(t, c->tid);
	struct ipc_tracer_answer a = { .stop = stop.kind, .sig = stop.sig };

	if (t->is_over ||
	    (needs_stop(c->verb) && (stop.kind == CUDBGSHIM_STOP_GONE || stop.kind == CUDBGSHIM_STOP_NONE))) {
		a.result = -ESRCH;
		return a;
	}
	switch (c->verb) {
	case IPC_TRACER_SEIZE:
		a.result = tracer_seize(t, c->tid);
		break;
	case IPC_TRACER_INTERRUPT:
		a.result = stop.kind == CUDBGSHIM_STOP_GONE ? -ESRCH : TRACER_SYS->interrupt(NULL, c->tid);
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
		a.result = TRACER_SYS->set(NULL, c->tid, (enum cudbgshim_part)c->what, t->block, c->size);
		break;
	case IPC_TRACER_PLACE:
		a.result = place(t, c, &a.size);
		break;
	case IPC_TRACER_DESCRIPTOR:
		*ret_fd = descriptor(t, c);
		a.result = *ret_fd < 0 ? *ret_fd : 0;
		break;
	case IPC_TRACER_SAMPLE:
		a.result = tracer_sample(t, c, &a);
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
	    !tracer_has_start_time(t->target.start_ticks) || !tracer_is_unchanged(t))
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
	/* A stop that takes too long ends by it (sample.c). */
	signal(SIGALRM, SIG_DFL);
	/* It ends with its worker, also in a call that takes long.  A change of users would reset this. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || sandbox_tracer() < 0)
		return 1;
	return serve(&t);
}
