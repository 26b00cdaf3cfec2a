/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/worker/process/leader.h"
#include "rpc_gen.h"
#include "testlib.h"

/* Stops that waitpid() reports one after the other, and the requests that follow. */
static struct {
	const int *statuses;
	size_t n, at;
	int wait_err;
	int seize_err;
	struct {
		int request;
		long data;
	} asked[8];
	size_t n_asked;
} fake;

static long fake_ptrace(int request, pid_t pid, void *addr, void *data)
{
	TEST_EQ(pid, getpid());
	fake.asked[fake.n_asked].request = request;
	fake.asked[fake.n_asked++].data = (long)(intptr_t)data;
	if (request == PTRACE_SEIZE && fake.seize_err) {
		errno = fake.seize_err;
		return -1;
	}
	return 0;
}

static pid_t fake_waitpid(pid_t pid, int *status, int options)
{
	TEST_EQ(options, __WALL | WNOHANG);
	if (fake.at < fake.n) {
		*status = fake.statuses[fake.at++];
		return pid;
	}
	errno = fake.wait_err;
	return fake.wait_err ? -1 : 0;
}

static const struct leader_sys fake_sys = { .ptrace = fake_ptrace, .waitpid = fake_waitpid };

#define STOP(sig, event) (0x7f | (sig) << 8 | (event) << 16)

/* Each kind of stop is answered in the one right way. */
static void stops_are_answered(void)
{
	static const struct {
		int status, request, data;
		enum leader_state state;
	} rows[] = {
		{ STOP(SIGUSR1, 0), PTRACE_CONT, SIGUSR1, LEADER_SEIZED },
		{ STOP(SIGTRAP, 0), PTRACE_CONT, SIGTRAP, LEADER_SEIZED },
		{ STOP(40, 0), PTRACE_CONT, 40, LEADER_SEIZED },
		/* Delivery of SIGSTOP itself, then the group stop that it begins. */
		{ STOP(SIGSTOP, 0), PTRACE_CONT, SIGSTOP, LEADER_SEIZED },
		{ STOP(SIGSTOP, PTRACE_EVENT_STOP), PTRACE_LISTEN, 0, LEADER_SEIZED },
		{ STOP(SIGTTIN, PTRACE_EVENT_STOP), PTRACE_LISTEN, 0, LEADER_SEIZED },
		/* SIGCONT ended the group stop. */
		{ STOP(SIGTRAP, PTRACE_EVENT_STOP), PTRACE_CONT, 0, LEADER_SEIZED },
		{ STOP(SIGTRAP, PTRACE_EVENT_EXEC), PTRACE_CONT, 0, LEADER_EXEC },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct leader l = { .pid = getpid(), .state = LEADER_SEIZED };

		fake = (typeof(fake)){ .statuses = &rows[i].status, .n = 1 };
		TEST_ROW_EQ(i, leader_poll(&l, &fake_sys), rows[i].state);
		TEST_ROW_EQ(i, fake.n_asked, 1);
		TEST_ROW_EQ(i, fake.asked[0].request, rows[i].request);
		TEST_ROW_EQ(i, fake.asked[0].data, rows[i].data);
	}
}

/* All that are pending, not only the first. */
static void stops_are_drained(void)
{
	static const int statuses[] = { STOP(SIGUSR1, 0), STOP(SIGUSR2, 0), STOP(40, 0) };
	struct leader l = { .pid = getpid(), .state = LEADER_SEIZED };

	fake = (typeof(fake)){ .statuses = statuses, .n = 3 };
	TEST_EQ(leader_poll(&l, &fake_sys), LEADER_SEIZED);
	TEST_EQ(fake.n_asked, 3);
	TEST_EQ(l.signals_passed, 3);
}

/* Exit, death by signal, and ECHILD (another thread called exec). */
static void the_end_is_noticed(void)
{
	static const struct {
		int status;
		size_t n;
		int err;
	} rows[] = { { 0x0300, 1, 0 }, { SIGKILL, 1, 0 }, { 0, 0, ECHILD } };

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct leader l = { .pid = getpid(), .state = LEADER_SEIZED };

		fake = (typeof(fake)){ .statuses = &rows[i].status,
				       .n = rows[i].n,
				       .wait_err = rows[i].err };
		TEST_ROW_EQ(i, leader_poll(&l, &fake_sys), LEADER_GONE);
		TEST_ROW_EQ(i, fake.n_asked, 0);
	}
}

static void seize_never_kills_with_us(void)
{
	struct leader l;

	fake = (typeof(fake)){ 0 };
	TEST_EQ(leader_seize(&l, &fake_sys, getpid(), NULL), 0);
	TEST_EQ(l.state, LEADER_SEIZED);
	TEST_EQ(fake.asked[0].request, PTRACE_SEIZE);
	TEST_EQ(fake.asked[0].data, PTRACE_O_TRACEEXEC);
}

static void seize_errors_are_named(void)
{
	static const struct {
		int err;
		int32_t code;
	} rows[] = { { ESRCH, RPC_ERROR_NO_SUCH_PROCESS },
		     { EPERM, RPC_ERROR_NOT_PERMITTED },
		     { EIO, RPC_ERROR_FAILED } };

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct agent_err err = { 0 };
		struct leader l;

		fake = (typeof(fake)){ .seize_err = rows[i].err };
		TEST_ROW_EQ(i, leader_seize(&l, &fake_sys, getpid(), &err), -rows[i].err);
		TEST_ROW_EQ(i, err.code, rows[i].code);
		TEST_ROW_EQ(i, err.hint[0] != '\0', true);
		TEST_ROW_EQ(i, l.state, LEADER_NONE);
	}
}

/* Of a process that ended and was not waited for yet the kernel says that it may not be traced. */
static void one_that_ended_is_gone(void)
{
	struct agent_err err = { 0 };
	struct leader l;
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	TEST_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	TEST_EQ(leader_seize(&l, &leader_real_sys, pid, &err), -ESRCH);
	TEST_EQ(err.code, RPC_ERROR_NO_SUCH_PROCESS);
	/* Nor may its memory be opened. */
	err.code = 0;
	TEST_EQ(leader_cannot_open(pid, true, EACCES, "open /proc/PID/mem", &err), -ESRCH);
	TEST_EQ(err.code, RPC_ERROR_NO_SUCH_PROCESS);
	TEST_EQ(waitpid(pid, NULL, 0), pid);
}

static void one_that_lives_may_not_be_opened(void)
{
	struct agent_err err = { 0 };

	TEST_EQ(leader_cannot_open(getpid(), true, EACCES, "open /proc/PID/mem", &err), -EACCES);
	TEST_EQ(err.code, RPC_ERROR_NOT_PERMITTED);
	TEST_EQ(strstr(err.hint, "CAP_SYS_PTRACE") != NULL, true);
}

/* A real child: its signals arrive while seized, and it runs on when the tracer only exits. */
static void real_signals_pass(void)
{
	struct leader l;
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		sigset_t usr1;
		int sig;

		sigemptyset(&usr1);
		sigaddset(&usr1, SIGUSR1);
		sigprocmask(SIG_BLOCK, &usr1, NULL);
		for (int i = 0; i < 3; i++)
			sigwait(&usr1, &sig);
		_exit(7);
	}
	TEST_EQ_FATAL(leader_seize(&l, &leader_real_sys, pid, NULL), 0);
	for (int i = 0; i < 10000 && leader_poll(&l, &leader_real_sys) == LEADER_SEIZED; i++) {
		kill(pid, SIGUSR1);
		usleep(1000);
	}
	TEST_EQ(l.state, LEADER_GONE);
	if (waitpid(pid, &status, WNOHANG) == 0)
		kill(pid, SIGKILL);
}

static void count_looks(void *ctx)
{
	/* It has been asked to stop, and not yet let go. */
	TEST_EQ(fake.n_asked, 1);
	TEST_EQ(fake.asked[0].request, PTRACE_INTERRUPT);
	++*(int *)ctx;
}

/* It is looked at in whatever stop comes first, which is answered as always; an end is noticed. */
static void a_look_takes_the_first_stop(void)
{
	static const struct {
		int status, looks, result, request, data;
	} rows[] = {
		{ STOP(SIGTRAP, PTRACE_EVENT_STOP), 1, 0, PTRACE_CONT, 0 },
		{ STOP(SIGSTOP, PTRACE_EVENT_STOP), 1, 0, PTRACE_LISTEN, 0 },
		{ STOP(SIGUSR1, 0), 1, 0, PTRACE_CONT, SIGUSR1 },
		{ 0, 0, -ESRCH, PTRACE_INTERRUPT, 0 },
	};
	struct leader l = { .pid = getpid(), .state = LEADER_SEIZED };
	int looks = 0;

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		looks = 0;
		l.state = LEADER_SEIZED;
		fake = (typeof(fake)){ .statuses = &rows[i].status, .n = 1 };
		TEST_ROW_EQ(i, leader_stop(&l, &fake_sys, UINT64_MAX, count_looks, &looks), rows[i].result);
		TEST_ROW_EQ(i, looks, rows[i].looks);
		TEST_ROW_EQ(i, fake.asked[fake.n_asked - 1].request, rows[i].request);
		TEST_ROW_EQ(i, fake.asked[fake.n_asked - 1].data, rows[i].data);
	}
	TEST_EQ(l.state, LEADER_GONE);
	TEST_EQ(leader_stop(&l, &fake_sys, UINT64_MAX, count_looks, &looks), -ESRCH);
	/* One that does not stop is left to leader_poll(). */
	l.state = LEADER_SEIZED;
	fake = (typeof(fake)){ .n = 0 };
	TEST_EQ(leader_stop(&l, &fake_sys, 0, count_looks, &looks), -ETIMEDOUT);
	TEST_EQ(l.state, LEADER_SEIZED);
	TEST_EQ(fake.n_asked, 1);
}

TEST_SUITE(worker_leader, TEST(a_look_takes_the_first_stop), TEST(stops_are_answered), TEST(stops_are_drained),
	   TEST(the_end_is_noticed), TEST(seize_never_kills_with_us), TEST(seize_errors_are_named),
	   TEST(one_that_ended_is_gone), TEST(one_that_lives_may_not_be_opened),
	   TEST(real_signals_pass));
