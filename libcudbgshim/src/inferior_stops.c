/* SPDX-License-Identifier: MIT */
/* Sees the stops of one thread without consuming them, and lets the thread go. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "inferior.h"

#define STOP_MS 500u

struct inferior_stop inferior_look(pid_t tid)
{
	siginfo_t si = { .si_pid = 0 };

	if (waitid(P_PID, (id_t)tid, &si, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
		return (struct inferior_stop){ errno == EINTR ? INFERIOR_STOP_NONE : INFERIOR_STOP_GONE, 0, 0 };
	if (!si.si_pid)
		return (struct inferior_stop){ INFERIOR_STOP_NONE, 0, 0 };
	if (si.si_code != CLD_TRAPPED && si.si_code != CLD_STOPPED) {
		waitpid(tid, NULL, __WALL | WNOHANG);
		return (struct inferior_stop){ INFERIOR_STOP_GONE, 0, 0 };
	}
	/*
	 * This is the one stop that must be consumed: the thread's number may have changed, and the
	 * kernel wants to be sure that we know (kernel/ptrace.c, looks_like_a_spurious_pid()).
	 */
	if (si.si_status >> 8 == PTRACE_EVENT_EXEC)
		waitpid(tid, NULL, __WALL | WNOHANG);
	if (si.si_status >> 8)
		return (struct inferior_stop){ INFERIOR_STOP_EVENT, si.si_status & 0x7f,
					       si.si_status >> 8 };
	if (si.si_status == (SIGTRAP | 0x80))
		return (struct inferior_stop){ INFERIOR_STOP_SYSCALL, 0, 0 };
	return (struct inferior_stop){ INFERIOR_STOP_SIGNAL, si.si_status & 0x7f, 0 };
}

bool inferior_is_group_stop(const struct inferior_stop *s)
{
	return s->kind == INFERIOR_STOP_EVENT && s->event == PTRACE_EVENT_STOP && s->sig != SIGTRAP;
}

bool inferior_is_exec(const struct inferior_stop *s)
{
	return s->kind == INFERIOR_STOP_EVENT && s->event == PTRACE_EVENT_EXEC;
}

/* Let a system call go on that only our looking interrupted. */
static void forgive(pid_t tid)
{
	struct user_regs_struct regs = { 0 }, before;

	if (inferior_trace(PTRACE_GETREGS, tid, NULL, &regs) < 0)
		return;
	before = regs;
	inferior_forgive_interruption(&regs);
	if (regs.rax != before.rax)
		inferior_trace(PTRACE_SETREGS, tid, NULL, &regs);
}

bool inferior_let_go(pid_t tid)
{
	struct inferior_stop s = inferior_look(tid);

	if (s.kind == INFERIOR_STOP_NONE)
		return false;
	if (s.kind == INFERIOR_STOP_EVENT && s.event == PTRACE_EVENT_STOP)
		forgive(tid);
	if (s.kind != INFERIOR_STOP_GONE)
		inferior_cont(PTRACE_DETACH, tid, s.kind == INFERIOR_STOP_SIGNAL ? s.sig : 0);
	return true;
}

int cudbgshim_inferior_is_running(const struct cudbgshim_inferior_record *record,
			      const struct cudbgshim_memory *memory)
{
	uint64_t patience = clock_deadline_ms(STOP_MS), cookie = 0;
	struct user_regs_struct regs = { .rsp = UINT64_MAX };
	struct inferior_stop s = { INFERIOR_STOP_NONE, 0, 0 };

	if (!__atomic_load_n(&record->is_active, __ATOMIC_ACQUIRE))
		return 0;
	/* The cookie is overwritten when the thread uses that part of its stack again. */
	if (memory->read(memory->ctx, record->cookie_addr, &cookie, sizeof(cookie)) < 0 ||
	    cookie != record->cookie)
		return 0;
	if (inferior_trace(PTRACE_SEIZE, record->tid, NULL, NULL) == 0) {
		inferior_trace(PTRACE_INTERRUPT, record->tid, NULL, NULL);
	} else {
		int error = errno;

		/* The thread may be ours already: it did not stop when it was asked last. */
		if (error != EPERM || inferior_look(record->tid).kind == INFERIOR_STOP_GONE)
			return error == ESRCH ? 0 : -error;
	}
	while (clock_left_ms(patience) &&
	       (s = inferior_look(record->tid)).kind == INFERIOR_STOP_NONE)
		nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
	if (s.kind == INFERIOR_STOP_NONE)
		return 1; /* The next look, or our exit, lets it go. */
	if (s.kind != INFERIOR_STOP_GONE)
		inferior_trace(PTRACE_GETREGS, record->tid, NULL, &regs);
	inferior_let_go(record->tid);
	return regs.rsp <= record->frame + 8;
}
