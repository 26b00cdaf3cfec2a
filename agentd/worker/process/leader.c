/* SPDX-License-Identifier: MIT */
#include "agentd/worker/process/leader.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "agentd/access.h"
#include "agentd/worker/process/yama.h"
#include "base/clock.h"
#include "rpc_gen.h"

static long real_ptrace(int request, pid_t pid, void *addr, void *data)
{
	return ptrace((enum __ptrace_request)request, pid, addr, data);
}

const struct leader_sys leader_real_sys = { .ptrace = real_ptrace, .waitpid = waitpid };

static int gone(pid_t pid, const char *op, struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_NO_SUCH_PROCESS, ESRCH, op,
			     "gpu-agentctl list shows the processes that use a GPU",
			     "process %d is gone", (int)pid);
}

/* If a process has ended and waits for its parent, the kernel says EPERM, not ESRCH. */
static bool has_ended(int r, const struct access_target *t)
{
	return r == -ESRCH || (r == 0 && (t->state == 'Z' || t->state == 'X'));
}

int leader_refusal(pid_t pid, const char *op, struct agent_err *err)
{
	struct access_target t, tracer;
	int r = access_target_read(pid, &t), scope;

	if (has_ended(r, &t))
		return gone(pid, op, err);
	if (r == 0 && t.tracer_pid) {
		bool named = access_target_read(t.tracer_pid, &tracer) == 0;

		return agent_err_set(err, RPC_ERROR_BUSY, EPERM, op,
				     "let that debugger detach, then try again",
				     "process %d is traced by process %d (%s) already", (int)pid,
				     (int)t.tracer_pid, named ? tracer.comm : "unknown");
	}
	scope = yama_ptrace_scope();
	if (scope > 0)
		return agent_err_set(
			err, RPC_ERROR_NOT_PERMITTED, EPERM, op,
			scope >= 3 ? "restart the machine with kernel.yama.ptrace_scope below 3"
				   : "run gpu-agentd with CAP_SYS_PTRACE, or set the scope to 0",
			"the kernel refuses to attach to process %d (ptrace_scope %d)", (int)pid,
			scope);
	return agent_err_set(err, RPC_ERROR_NOT_PERMITTED, EPERM, op,
			     "gpu-agentd needs CAP_SYS_PTRACE, and @debug in its SystemCallFilter",
			     "the kernel refuses to attach to process %d", (int)pid);
}

int leader_cannot_open(pid_t pid, bool privileged, int error, const char *op, struct agent_err *err)
{
	struct access_target t;

	/* Yama forbids everybody to look on level 3, and a process without capabilities on 1. */
	if (has_ended(access_target_read(pid, &t), &t) || yama_ptrace_scope() >= (privileged ? 3 : 1))
		return leader_refusal(pid, op, err);
	return agent_err_set(err, RPC_ERROR_NOT_PERMITTED, error, op,
			     privileged ? "gpu-agentd needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH" :
					  "ask the system-wide gpu-agentd; if this is it, it needs CAP_SYS_PTRACE",
			     "cannot open the memory of process %d", (int)pid);
}

int leader_seize(struct leader *l, const struct leader_sys *sys, pid_t pid, struct agent_err *err)
{
	/* PTRACE_O_EXITKILL is not set: the death of this worker must never be the target's. */
	void *options = (void *)(uintptr_t)PTRACE_O_TRACEEXEC;

	*l = (struct leader){ .pid = pid };
	if (sys->ptrace(PTRACE_SEIZE, pid, NULL, options) == 0) {
		l->state = LEADER_SEIZED;
		return 0;
	}
	if (errno == ESRCH)
		return gone(pid, "ptrace seize", err);
	if (errno == EPERM || errno == EACCES)
		return leader_refusal(pid, "ptrace seize", err);
	return agent_err_set(err, RPC_ERROR_FAILED, errno, "ptrace seize",
			     "try again; gpu-agentctl doctor checks the preconditions",
			     "cannot attach to process %d", (int)pid);
}

static bool is_stop_signal(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

/* Let the leader go on from the stop that @p status tells of, with the signal that stopped it. */
static void let_go(struct leader *l, const struct leader_sys *sys, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;

	if (event == PTRACE_EVENT_STOP && is_stop_signal(sig)) {
		/* In a group stop the leader stays stopped as its user wants, but hears SIGCONT. */
		sys->ptrace(PTRACE_LISTEN, l->pid, NULL, NULL);
		return;
	}
	if (event == PTRACE_EVENT_EXEC)
		l->state = LEADER_EXEC;
	if (!event)
		l->signals_passed++;
	/* ESRCH means that the leader was killed meanwhile; its exit status follows. */
	sys->ptrace(PTRACE_CONT, l->pid, NULL, (void *)(intptr_t)(event ? 0 : sig));
}

int leader_wait_stop(const struct leader_sys *sys, pid_t tid, uint64_t deadline_ns, int *ret_status)
{
	const struct timespec nap = { .tv_nsec = 20000 };

	for (;;) {
		pid_t got = sys->waitpid(tid, ret_status, __WALL | WNOHANG);

		if (got == tid)
			return WIFSTOPPED(*ret_status) ? 0 : -ESRCH;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (clock_now_ns() >= deadline_ns)
			return -ETIMEDOUT;
		nanosleep(&nap, NULL);
	}
}

int leader_stop(struct leader *l, const struct leader_sys *sys, uint64_t deadline_ns,
		void (*look)(void *ctx), void *ctx)
{
	int status, r;

	if (l->state != LEADER_SEIZED || sys->ptrace(PTRACE_INTERRUPT, l->pid, NULL, NULL) < 0)
		return -ESRCH;
	r = leader_wait_stop(sys, l->pid, deadline_ns, &status);
	if (r == -ESRCH || r == -ECHILD)
		l->state = LEADER_GONE;
	if (r < 0)
		return r;
	look(ctx);
	let_go(l, sys, status);
	return 0;
}

enum leader_state leader_poll(struct leader *l, const struct leader_sys *sys)
{
	while (l->state == LEADER_SEIZED || l->state == LEADER_EXEC) {
		int status;
		pid_t got = sys->waitpid(l->pid, &status, __WALL | WNOHANG);

		if (got == 0 || (got < 0 && errno == EINTR))
			break;
		/* ECHILD: a thread that is not traced called exec and became the leader. */
		if (got < 0 || !WIFSTOPPED(status))
			l->state = LEADER_GONE;
		else
			let_go(l, sys, status);
	}
	return l->state;
}
