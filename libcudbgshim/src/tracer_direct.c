/* SPDX-License-Identifier: MIT */
/* Traces threads by this process's own calls of ptrace(2). */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "tracer.h"

/* From linux/ptrace.h, which does not go together with sys/ptrace.h. */
#define GET_RSEQ_CONFIGURATION ((enum __ptrace_request)0x420f)

static int result(long r)
{
	return r < 0 ? -errno : 0;
}

static int seize(void *ctx, int tid)
{
	void *options = (void *)(uintptr_t)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC);

	(void)ctx;
	return result(ptrace(PTRACE_SEIZE, tid, NULL, options));
}

static int interrupt(void *ctx, int tid)
{
	(void)ctx;
	return result(ptrace(PTRACE_INTERRUPT, tid, NULL, NULL));
}

static struct cudbgshim_stop stop_of(int status)
{
	int sig = status & 0x7f;

	switch (status >> 8) {
	case 0:
		return status == (SIGTRAP | 0x80) ?
			       (struct cudbgshim_stop){ CUDBGSHIM_STOP_SYSCALL, 0 } :
			       (struct cudbgshim_stop){ CUDBGSHIM_STOP_SIGNAL, sig };
	case PTRACE_EVENT_EXEC:
		return (struct cudbgshim_stop){ CUDBGSHIM_STOP_EXEC, 0 };
	case PTRACE_EVENT_STOP:
		if (sig != SIGTRAP)
			return (struct cudbgshim_stop){ CUDBGSHIM_STOP_GROUP, 0 };
		/* fall through */
	default:
		return (struct cudbgshim_stop){ CUDBGSHIM_STOP_ASKED, 0 };
	}
}

static struct cudbgshim_stop look(void *ctx, int tid)
{
	siginfo_t si = { .si_pid = 0 };
	struct cudbgshim_stop stop;

	(void)ctx;
	if (waitid(P_PID, (id_t)tid, &si, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
		return (struct cudbgshim_stop){ errno == EINTR ? CUDBGSHIM_STOP_NONE : CUDBGSHIM_STOP_GONE, 0 };
	if (!si.si_pid)
		return (struct cudbgshim_stop){ CUDBGSHIM_STOP_NONE, 0 };
	if (si.si_code != CLD_TRAPPED && si.si_code != CLD_STOPPED) {
		waitpid(tid, NULL, __WALL | WNOHANG);
		return (struct cudbgshim_stop){ CUDBGSHIM_STOP_GONE, 0 };
	}
	stop = stop_of(si.si_status);
	/*
	 * This is the one stop that must be consumed: the thread's number may have changed, and the
	 * kernel wants to be sure that we know (kernel/ptrace.c, looks_like_a_spurious_pid()).
	 */
	if (stop.kind == CUDBGSHIM_STOP_EXEC)
		waitpid(tid, NULL, __WALL | WNOHANG);
	return stop;
}

static int go(void *ctx, int tid, enum cudbgshim_go how, int sig)
{
	static const enum __ptrace_request requests[] = {
		[CUDBGSHIM_GO_ON] = PTRACE_CONT,
		[CUDBGSHIM_GO_TO_SYSCALL] = PTRACE_SYSCALL,
		[CUDBGSHIM_GO_LISTEN] = PTRACE_LISTEN,
		[CUDBGSHIM_GO_FREE] = PTRACE_DETACH,
	};

	(void)ctx;
	return result(ptrace(requests[how], tid, NULL, (void *)(intptr_t)sig));
}

int tracer_get(int tid, int kind, void *buf, size_t *size)
{
	struct iovec v = { buf, *size };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)kind, &v) < 0)
		return -errno;
	*size = v.iov_len;
	return 0;
}

int tracer_set(int tid, int kind, const void *buf, size_t size)
{
	struct iovec v = { (void *)(uintptr_t)buf, size };

	return result(ptrace(PTRACE_SETREGSET, tid, (void *)(uintptr_t)kind, &v));
}

static int get(void *ctx, int tid, enum cudbgshim_part part, void *buf, size_t *size)
{
	long r;

	(void)ctx;
	switch (part) {
	case CUDBGSHIM_PART_REGISTERS:
		return tracer_get(tid, NT_PRSTATUS, buf, size);
	case CUDBGSHIM_PART_VECTORS:
		return tracer_get_vectors(tid, buf, size);
	case CUDBGSHIM_PART_MASK:
		return result(ptrace(PTRACE_GETSIGMASK, tid, (void *)*size, buf));
	case CUDBGSHIM_PART_SIGNAL:
		return *size < sizeof(siginfo_t) ? -EINVAL : result(ptrace(PTRACE_GETSIGINFO, tid, NULL, buf));
	case CUDBGSHIM_PART_RSEQ:
		r = ptrace(GET_RSEQ_CONFIGURATION, tid, (void *)*size, buf);
		return r < 0 ? -errno : (size_t)r < *size ? -ENODATA : 0;
	case CUDBGSHIM_PART_THREAD_POINTER:
		return tracer_get_thread_pointer(tid, buf, size);
	case CUDBGSHIM_PART_CALL:
		break;
	}
	return -EINVAL;
}

static int set(void *ctx, int tid, enum cudbgshim_part part, const void *buf, size_t size)
{
	(void)ctx;
	switch (part) {
	case CUDBGSHIM_PART_REGISTERS:
		return tracer_set(tid, NT_PRSTATUS, buf, size);
	case CUDBGSHIM_PART_VECTORS:
		return tracer_set_vectors(tid, buf, size);
	case CUDBGSHIM_PART_CALL:
		return tracer_set_call(tid, buf, size);
	case CUDBGSHIM_PART_MASK:
		return result(ptrace(PTRACE_SETSIGMASK, tid, (void *)size, (void *)(uintptr_t)buf));
	default:
		return -EINVAL;
	}
}

static int read_file(void *ctx, int proc_fd, const char *name, size_t max, char **ret, size_t *ret_size)
{
	(void)ctx;
	return fd_read_file_at(proc_fd, name, max, ret, ret_size);
}

/* Duplicate the descriptor, or else open the pipe by its name. */
static int descriptor(void *ctx, int proc_fd, int pidfd, int number)
{
	char path[32], link[64] = "";
	int fd = -1;

	(void)ctx;
	if (pidfd >= 0)
		fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "fd/%d", number);
	if (readlinkat(proc_fd, path, link, sizeof(link) - 1) < 0 || strncmp(link, "pipe:[", 6))
		return -EBADF;
	fd = openat(proc_fd, path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int network(void *ctx, int proc_fd)
{
	int fd = openat(proc_fd, "ns/net", O_RDONLY | O_CLOEXEC);

	(void)ctx;
	return fd < 0 ? -errno : fd;
}

const struct cudbgshim_tracer cudbgshim_tracer_direct = {
	.seize = seize,
	.interrupt = interrupt,
	.look = look,
	.go = go,
	.get = get,
	.set = set,
	.read_file = read_file,
	.descriptor = descriptor,
	.network = network,
};
