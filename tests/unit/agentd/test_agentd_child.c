/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agentd/child.h"
#include "base/clock.h"
#include "testlib.h"

#define UNTOUCHED 0x5aa5
/* Long enough for a machine that stands still. */
#define PATIENCE_MS 20000

static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	for (; pid == 0;)
		pause();
	CU_ASSERT_FATAL(pid > 0);
	return pid;
}

static pid_t start_exiting(int status, unsigned ms)
{
	const struct timespec nap = { .tv_nsec = ms * 1000000L };
	pid_t pid = fork();

	if (pid == 0) {
		nanosleep(&nap, NULL);
		_exit(status);
	}
	CU_ASSERT_FATAL(pid > 0);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void the_status_is_told(void)
{
	pid_t pid;
	int status = 0;

	TEST_EQ(child_wait(start_exiting(3, 20), clock_deadline_ms(PATIENCE_MS), &status), 0);
	TEST_EQ(WEXITSTATUS(status), 3);
	pid = start_sleeper();
	kill(pid, SIGKILL);
	TEST_EQ(child_wait(pid, clock_deadline_ms(PATIENCE_MS), &status), 0);
	TEST_EQ(WTERMSIG(status), SIGKILL);
}

static void no_child_is_waited_for_without_end(void)
{
	pid_t pid = start_sleeper();
	uint64_t begun = clock_now_ns();
	int status = UNTOUCHED;

	TEST_EQ(child_wait(pid, clock_deadline_ms(50), &status), -ETIMEDOUT);
	CU_ASSERT(clock_now_ns() - begun >= UINT64_C(50000000));
	TEST_EQ(child_wait(pid, begun, &status), -ETIMEDOUT);
	TEST_EQ(status, UNTOUCHED);
	end(pid);
	TEST_EQ(child_wait(pid, clock_deadline_ms(PATIENCE_MS), &status), -ECHILD);
	TEST_EQ(status, UNTOUCHED);
}

static pid_t start_tracer(pid_t of)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (ptrace(PTRACE_SEIZE, of, NULL, NULL) < 0)
			_exit(1);
		raise(SIGSTOP);
		_exit(0);
	}
	CU_ASSERT_FATAL(pid > 0 && waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	return pid;
}

/* A debugger that does not look at its dead target: poll() says that it has ended, and waitpid() nothing. */
static void a_traced_child_costs_no_processor(void)
{
	pid_t pid = start_exiting(0, 100), tracer = start_tracer(pid);
	uint64_t used = test_cpu_ns();
	int status = UNTOUCHED;

	TEST_EQ(child_wait(pid, clock_deadline_ms(400), &status), -ETIMEDOUT);
	used = test_cpu_ns() - used;
	CU_ASSERT(used < UINT64_C(100000000));
	TEST_EQ(status, UNTOUCHED);
	end(tracer);
	TEST_EQ(child_wait(pid, clock_deadline_ms(PATIENCE_MS), &status), 0);
}

/* Where no descriptor is free, it is looked at again and again. */
static void no_descriptor_is_needed(void)
{
	struct rlimit old, none;
	int status = UNTOUCHED;
	pid_t pid;

	CU_ASSERT_FATAL(getrlimit(RLIMIT_NOFILE, &old) == 0);
	none = (struct rlimit){ .rlim_cur = 3, .rlim_max = old.rlim_max };
	CU_ASSERT_FATAL(setrlimit(RLIMIT_NOFILE, &none) == 0);
	pid = start_sleeper();
	TEST_EQ(child_wait(pid, clock_deadline_ms(50), &status), -ETIMEDOUT);
	end(pid);
	TEST_EQ(child_wait(start_exiting(5, 20), clock_deadline_ms(PATIENCE_MS), &status), 0);
	TEST_EQ(WEXITSTATUS(status), 5);
	CU_ASSERT_FATAL(setrlimit(RLIMIT_NOFILE, &old) == 0);
}

TEST_SUITE(agentd_child, TEST(the_status_is_told), TEST(no_child_is_waited_for_without_end),
	   TEST(a_traced_child_costs_no_processor), TEST(no_descriptor_is_needed));
