/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_LEADER_H
#define WORKER_PROCESS_LEADER_H

/**
 * @file leader.h
 * The ptrace side of a session: the thread-group leader is seized and never interrupted.
 *
 * A seized thread still stops when a signal is delivered to it, when it joins a group stop and when
 * it calls exec; leader_poll() lets it go on at once.  Call it whenever SIGCHLD came, and between
 * steps that take long.  All calls from the one thread that seized.
 *
 * There is no detach.  PTRACE_DETACH needs a stopped tracee, and stopping the leader is what we
 * promise not to do; when the tracer exits, the kernel detaches a running tracee as it runs
 * (kernel/ptrace.c, exit_ptrace()).  The only ptrace-stop that our exit could meet is one that
 * leader_poll() has not seen yet; the kernel then wakes the tracee, which takes its signal as if
 * nobody had looked.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/agent_err.h"

enum leader_state {
	LEADER_NONE = 0,
	LEADER_SEIZED,
	LEADER_EXEC, /**< The process executed another program: no session survives that. */
	LEADER_GONE, /**< It ended, or another thread called exec and took its place. */
};

struct leader {
	pid_t pid;
	enum leader_state state;
	unsigned long signals_passed;
};

/** System calls; tests pass their own. */
struct leader_sys {
	long (*ptrace)(int request, pid_t pid, void *addr, void *data);
	pid_t (*waitpid)(pid_t pid, int *status, int options);
};

extern const struct leader_sys leader_real_sys;

/** @return 0, or negative with a busy, not_permitted or no_such_process error. */
int leader_seize(struct leader *l, const struct leader_sys *sys, pid_t pid, struct agent_err *err);
/** Why the kernel may have answered EPERM or EACCES to @p op: it ended, is traced, or may not be. */
int leader_refusal(pid_t pid, const char *op, struct agent_err *err);
/** Handle every stop that is pending.  @return the state after that. */
enum leader_state leader_poll(struct leader *l, const struct leader_sys *sys);

/**
 * Wait until a thread that was interrupted stops, or ends.
 * @return 0 (in *ret_status what waitpid(2) says), -ESRCH (it ended), -ETIMEDOUT, -errno.
 */
int leader_wait_stop(const struct leader_sys *sys, pid_t tid, uint64_t deadline_ns,
		     int *ret_status);
/**
 * Stop it, look, let it run: the caller sees it in whatever stop comes first.
 * @param look  Must not let it go.
 * @return 0; -ETIMEDOUT when it did not stop in time: then leader_poll() lets it go when it does.
 */
int leader_stop(struct leader *l, const struct leader_sys *sys, uint64_t deadline_ns,
		void (*look)(void *ctx), void *ctx);

#endif /* WORKER_PROCESS_LEADER_H */
