/* SPDX-License-Identifier: MIT */
/* Measured answers: the runtime handshake when things go wrong, and the kinds of dbg_fd. */
#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "env.h"

CONFORMANCE(runtime_without_a_debugger)
{
	struct target t;

	if (!env_plain(NULL) || !target_start(&t, "runtime on"))
		return;
	TEST_EQ(target_command(&t, "runtime on"), -EBUSY);
	TEST_EQ(target_command(&t, "runtime off"), 0);
	TEST_EQ(target_command(&t, "runtime off"), 0);
	TEST_EQ(target_command(&t, "runtime ttmp"), 0);
}

CONFORMANCE(runtime_off_waits_each_time)
{
	struct kfdabi_runtime_info info;
	struct target t;
	struct dbg d;

	if (!env_plain(NULL) || !target_start(&t, "runtime on") ||
	    !dbg_attach(&d, t.pid, RUNTIME_MASK))
		return;
	TEST_EQ(target_command(&t, "runtime on"), -EBUSY);
	for (int i = 0; i < 2; i++) {
		target_send(&t, "runtime off");
		TEST_ROW_EQ(i, dbg_byte_comes(&d), true);
		TEST_ROW_EQ(i, target_reply(&t, 60), -ETIMEDOUT);
		/* A size of 0 asks for the size. */
		TEST_ROW_EQ(i, dbg_info(&d, KFDABI_EC_PROCESS_RUNTIME, 0, &info, 0, false), 0);
		TEST_ROW_EQ(i, d.a.query_info.info_size, 16);
		TEST_ROW_EQ(i, dbg_info(&d, KFDABI_EC_PROCESS_RUNTIME, 0, &info, 16, true), 0);
		TEST_ROW_EQ(i, info.runtime_state, 0);
		TEST_ROW_EQ(i, info.r_debug, 0);
		TEST_ROW_EQ(i, dbg_mode(&d, 0), -EPERM);
		TEST_ROW_EQ(i, dbg_send(&d, RUNTIME_MASK, 0, 0), 0);
		TEST_ROW_EQ(i, target_reply(&t, PATIENCE_MS), 0);
	}
}

static bool stop(pid_t pid)
{
	return !ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) && waitpid(pid, NULL, __WALL) == pid;
}

/* A target that waits in the handshake of a debugger that wants to know. */
static bool blocked(struct target *t, struct dbg *d)
{
	if (!env_plain(NULL) || !target_start(t, "runtime skip") ||
	    !dbg_attach(d, t->pid, RUNTIME_MASK))
		return false;
	target_send(t, "runtime on");
	TEST_EQ(dbg_byte_comes(d), true);
	return true;
}

CONFORMANCE(disable_does_not_release_the_handshake)
{
	struct target t;
	struct dbg d;

	if (!blocked(&t, &d))
		return;
	TEST_EQ(dbg_disable(&d), 0);
	TEST_EQ(target_reply(&t, 100), -ETIMEDOUT);
	/* The stop makes the difference. */
	TEST_EQ(stop(t.pid), true);
	TEST_EQ(ptrace(PTRACE_DETACH, t.pid, NULL, NULL), 0);
	TEST_EQ(target_reply(&t, PATIENCE_MS), 0);
	TEST_EQ(t.status->eintr_repeats, 1);
}

CONFORMANCE(a_new_session_can_release_the_handshake)
{
	struct target t;
	struct dbg d;

	if (!blocked(&t, &d))
		return;
	TEST_EQ(dbg_disable(&d), 0);
	TEST_EQ(dbg_enable(&d, RUNTIME_MASK), 0);
	TEST_EQ(d.info.runtime_state, 1);
	TEST_EQ(dbg_query(&d, 0), -EAGAIN);
	TEST_EQ(target_reply(&t, 100), -ETIMEDOUT);
	TEST_EQ(dbg_send(&d, RUNTIME_MASK, 0, 0), 0);
	TEST_EQ(target_reply(&t, PATIENCE_MS), 0);
}

/* Interrupted handshake, DISABLE, repeat: a mark stays and swallows the next event. */
CONFORMANCE(stale_retry_mark)
{
	struct target t;
	struct dbg d;

	if (!blocked(&t, &d))
		return;
	TEST_EQ(dbg_disable(&d), 0);
	TEST_EQ(stop(t.pid), true);
	TEST_EQ(ptrace(PTRACE_CONT, t.pid, NULL, NULL), 0);
	TEST_EQ(target_reply(&t, PATIENCE_MS), 0);
	dbg_bytes(&d);
	TEST_EQ(dbg_enable(&d, RUNTIME_MASK), 0);
	target_send(&t, "runtime off");
	TEST_EQ(target_reply(&t, 100), -ETIMEDOUT);
	TEST_EQ(dbg_bytes(&d), 0);
	TEST_EQ(dbg_query(&d, 0), -EAGAIN);
	TEST_EQ(dbg_send(&d, RUNTIME_MASK, 0, 0), 0);
	TEST_EQ(target_reply(&t, PATIENCE_MS), 0);
}

/* An event comes, and the call waits for its answer: nothing of what was before is left. */
static void check_fresh_handshake(struct target *t, struct dbg *d, const char *command)
{
	dbg_bytes(d);
	target_send(t, command);
	TEST_EQ(dbg_byte_comes(d), true);
	TEST_EQ(dbg_query(d, RUNTIME_MASK), 0);
	TEST_EQ(target_reply(t, 60), -ETIMEDOUT);
	TEST_EQ(dbg_send(d, RUNTIME_MASK, 0, 0), 0);
	TEST_EQ(target_reply(t, PATIENCE_MS), 0);
}

/* One answer, given ahead by a session of its own, is what the call that meets the mark needs. */
CONFORMANCE(an_answer_ahead_makes_up_for_a_stale_retry_mark)
{
	struct target t;
	struct dbg d;

	if (!blocked(&t, &d))
		return;
	TEST_EQ(dbg_disable(&d), 0);
	TEST_EQ(stop(t.pid), true);
	TEST_EQ(ptrace(PTRACE_CONT, t.pid, NULL, NULL), 0);
	TEST_EQ(target_reply(&t, PATIENCE_MS), 0);
	TEST_EQ(dbg_enable(&d, RUNTIME_MASK), 0);
	TEST_EQ(dbg_send(&d, RUNTIME_MASK, 0, 0), 0);
	TEST_EQ(dbg_disable(&d), 0);
	dbg_bytes(&d);
	TEST_EQ(dbg_enable(&d, RUNTIME_MASK), 0);
	TEST_EQ(target_command(&t, "runtime off"), 0);
	TEST_EQ(dbg_bytes(&d), 0);
	TEST_EQ(dbg_query(&d, 0), -EAGAIN);
	check_fresh_handshake(&t, &d, "runtime on");
}

/* Answered by the next session instead of stopped: no mark stays. */
CONFORMANCE(an_answer_of_the_next_session_leaves_no_mark)
{
	struct target t;
	struct dbg d;

	if (!blocked(&t, &d))
		return;
	TEST_EQ(dbg_disable(&d), 0);
	TEST_EQ(dbg_enable(&d, RUNTIME_MASK), 0);
	TEST_EQ(dbg_send(&d, RUNTIME_MASK, 0, 0), 0);
	TEST_EQ(target_reply(&t, PATIENCE_MS), 0);
	TEST_EQ(dbg_disable(&d), 0);
	TEST_EQ(dbg_enable(&d, RUNTIME_MASK), 0);
	check_fresh_handshake(&t, &d, "runtime off");
}

struct debugger {
	pid_t target;
	int ready;
};

/* Says when its session is there, and when the target waits in the handshake. */
static void debugger_run(void *data)
{
	struct debugger *job = data;
	struct dbg d;
	char c = 0;

	dbg_init(&d, job->target);
	d.fd = open(env_kfd_path(), O_RDWR | O_CLOEXEC);
	if (!seize(job->target) && !dbg_enable(&d, RUNTIME_MASK))
		c = 1;
	if (write(job->ready, &c, 1) == 1 && dbg_byte_comes(&d) && write(job->ready, &c, 1) == 1)
		for (;;)
			pause();
}

CONFORMANCE(debugger_death_does_not_release_the_handshake)
{
	struct debugger job;
	struct target t;
	pid_t pid;
	int p[2];
	char c = 0;

	if (!env_plain(NULL) || !target_start(&t, "runtime skip"))
		return;
	TEST_EQ_FATAL(pipe(p), 0);
	job = (struct debugger){ t.pid, p[1] };
	pid = env_monitor(debugger_run, &job);
	close(p[1]);
	TEST_EQ(read(p[0], &c, 1), 1);
	TEST_EQ(c, 1);
	target_send(&t, "runtime on");
	TEST_EQ(read(p[0], &c, 1), 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	env_reaped(pid);
	TEST_EQ(target_reply(&t, 200), -ETIMEDOUT);
	kill(t.pid, SIGSTOP);
	kill(t.pid, SIGCONT);
	TEST_EQ(target_reply(&t, PATIENCE_MS), 0);
	close(p[0]);
}

CONFORMANCE(a_surplus_send_is_remembered)
{
	struct target t;
	struct dbg d;

	if (!env_plain(NULL) || !target_start(&t, "runtime skip") ||
	    !dbg_attach(&d, t.pid, RUNTIME_MASK))
		return;
	TEST_EQ(dbg_send(&d, RUNTIME_MASK, 0, 0), 0);
	TEST_EQ(dbg_send(&d, RUNTIME_MASK, 0, 0), 0);
	TEST_EQ(target_command(&t, "runtime on"), 0);
	TEST_EQ(dbg_byte_comes(&d), true);
	TEST_EQ(dbg_query(&d, RUNTIME_MASK), 0);
	TEST_EQ(target_command(&t, "runtime off"), 0);
	target_send(&t, "runtime on");
	TEST_EQ(target_reply(&t, 100), -ETIMEDOUT);
	TEST_EQ(dbg_send(&d, RUNTIME_MASK, 0, 0), 0);
	TEST_EQ(target_reply(&t, PATIENCE_MS), 0);
}

/* ---- kinds of dbg_fd ---- */

/* Attach with @p fd as event descriptor and let the runtime event fire. */
static bool fire(struct target *t, struct dbg *d, int fd)
{
	if (!target_start(t, "runtime skip"))
		return false;
	dbg_init(d, t->pid);
	close(d->wr);
	d->wr = fd;
	TEST_EQ(seize(t->pid), 0);
	TEST_EQ(dbg_enable(d, RUNTIME_MASK), 0);
	target_send(t, "runtime on");
	/* Whatever became of the byte, the event is there. */
	TEST_EQ(EVENTUALLY(dbg_query(d, 0) == 0), true);
	return true;
}

static void release(struct target *t, struct dbg *d)
{
	TEST_EQ(dbg_send(d, RUNTIME_MASK, 0, 0), 0);
	TEST_EQ(target_reply(t, PATIENCE_MS), 0);
}

CONFORMANCE(dbg_fd_kinds)
{
	struct target t;
	char c[70000];
	struct dbg d;
	int fds[2];

	if (!env_plain(NULL))
		return;
	/* Write end of a pipe. */
	TEST_EQ_FATAL(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
	if (!fire(&t, &d, fds[1]))
		return;
	TEST_EQ(EVENTUALLY(read(fds[0], c, 4) == 1), true);
	TEST_EQ(c[0], '.');
	release(&t, &d);
	target_kill(&t);
	/* Full pipe: the byte is lost, nothing else. */
	while (write(fds[1], c, sizeof(c)) > 0)
		;
	if (!fire(&t, &d, fds[1]))
		return;
	release(&t, &d);
	target_kill(&t);
	close(fds[1]);
	/* eventfd: never fires. */
	close(fds[0]);
	fds[0] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (!fire(&t, &d, fds[0]))
		return;
	TEST_EQ(read(fds[0], c, 8), -1);
	release(&t, &d);
	target_kill(&t);
	/* The device itself. */
	if (!fire(&t, &d, dup(env_kfd())))
		return;
	release(&t, &d);
}

CONFORMANCE(dbg_fd_without_a_reader)
{
	static const int quiet[] = { SOCK_SEQPACKET, SOCK_DGRAM };
	struct target t;
	struct dbg d;
	int fds[2], status;

	if (!env_plain(NULL))
		return;
	for (size_t i = 0; i < TEST_COUNT(quiet); i++) {
		TEST_EQ_FATAL(socketpair(AF_UNIX, quiet[i] | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
			      0);
		close(fds[0]);
		if (!fire(&t, &d, fds[1]))
			return;
		release(&t, &d);
		target_kill(&t);
	}
	/* A stream kind raises SIGPIPE in the target: here the tracer sees it. */
	TEST_EQ_FATAL(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
	close(fds[0]);
	if (!fire(&t, &d, fds[1]))
		return;
	TEST_EQ(EVENTUALLY(waitpid(t.pid, &status, __WALL | WNOHANG) == t.pid), true);
	TEST_EQ(WIFSTOPPED(status), true);
	TEST_EQ(WSTOPSIG(status), SIGPIPE);
	TEST_EQ(ptrace(PTRACE_CONT, t.pid, NULL, NULL), 0);
	release(&t, &d);
}
