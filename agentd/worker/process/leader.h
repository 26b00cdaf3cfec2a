/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_LEADER_H
#define WORKER_PROCESS_LEADER_H

/**
 * @file leader.h
 * The ptrace side of a session: the thread-group leader is seized and never interrupted.
 *
 * A seized thread still stops when a signal is delivered to it, when it joins a group stop and when
 * it calls exec; leader_poll() lets it go on at once.  Call leader_poll() whenever SIGCHLD came,
 * and between steps that take long.  All calls come from the one thread that seized.
 *
 * There is no detach.  PTRACE_DETACH needs a stopped tracee, and the worker promises not to stop
 * the leader; when the tracer exits, the kernel detaches a running tracee as it runs
 * (kernel/ptrace.c, exit_ptrace()).  The only ptrace-stop that the worker's exit could meet is one
 * that leader_poll() has not seen yet; the kernel then wakes the tracee, which takes its signal as
 * if it had not been traced.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/agent_err.h"

enum leader_state {
	LEADER_NONE = 0,
	LEADER_SEIZED,
	LEADER_EXEC, /**< The process executed another program: no session survives that. */
	LEADER_GONE, /**< The leader ended, or another thread called exec and took its place. */
};

/** The main thread of the target, as its tracer knows it. */
struct leader {
	pid_t pid;
	enum leader_state state;
	unsigned long signals_passed; /**< Signals that stopped it and were passed on. */
};

/** System calls; tests pass their own. */
struct leader_sys {
	long (*ptrace)(int request, pid_t pid, void *addr, void *data);
	pid_t (*waitpid)(pid_t pid, int *status, int options);
};

extern const struct leader_sys leader_real_sys;

/**
 * Seize the leader; it does not stop.
 * @return 0, or negative with a busy, not_permitted, no_such_process or failed error.
 */
int leader_seize(struct leader *l, const struct leader_sys *sys, pid_t pid, struct agent_err *err);
/**
 * Say why the kernel may have answered EPERM or EACCES to @p op: the process has ended, another
 * process traces it, or the kernel does not permit it.
 * @return negative with @p err.
 */
int leader_refusal(pid_t pid, const char *op, struct agent_err *err);
/**
 * Say why @p op could not open what belongs to the process, such as /proc/PID/mem, where the kernel
 * answered @p error.
 * @param privileged  Whether the agent that asks has capabilities.
 * @return negative with @p err.
 */
int leader_cannot_open(pid_t pid, bool privileged, int error, const char *op, struct agent_err *err);
/** Let the leader go on from every stop that is pending.  @return the state after that. */
enum leader_state leader_poll(struct leader *l, const struct leader_sys *sys);

/**
 * Wait until a thread that was interrupted stops, or ends.
 * @param deadline_ns  Monotonic.
 * @param ret_status   The status as waitpid(2) says it.
 * @return 0 (the thread stopped), -ESRCH (it ended), -ETIMEDOUT, other -errno.
 */
int leader_wait_stop(const struct leader_sys *sys, pid_t tid, uint64_t deadline_ns,
		     int *ret_status);
/**
 * Stop the leader, call @p look, and let the leader run.  The leader is then in whatever stop came
 * first: a signal may have been faster than the interrupt.
 * @param deadline_ns  Monotonic.
 * @param look         Must not let the leader go.
 * @return 0; -ESRCH (it is gone, or not seized); -ETIMEDOUT if it did not stop in time:
 *         leader_poll() then lets it go when it does; other -errno.
 */
int leader_stop(struct leader *l, const struct leader_sys *sys, uint64_t deadline_ns,
		void (*look)(void *ctx), void *ctx);

#endif /* WORKER_PROCESS_LEADER_H */
