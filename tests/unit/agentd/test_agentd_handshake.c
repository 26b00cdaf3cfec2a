/* SPDX-License-Identifier: MIT */
/*
 * Who waits in RUNTIME_ENABLE, and how such a wait is ended.  The call is made for real; what holds it up is a filter
 * of system calls whose listener says nothing, where KFD would be: both sleep until a signal comes.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/handshake.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "testlib.h"

#define PATIENCE_MS 5000
/* AMDKFD_IOC_RUNTIME_ENABLE (kfd_ioctl.h), and another command of that device. */
#define RUNTIME_ENABLE _IOWR('K', 0x25, char[16])
#define GET_VERSION    _IOR('K', 0x01, char[8])

/* What the program saw: how often its call was interrupted, and its handler ran. */
static struct {
	volatile int interrupted, handled;
} *seen;

/* ---- a signal that comes between the seize and the stop ---- */

long __real_ptrace(int request, pid_t pid, void *addr, void *data);
long __wrap_ptrace(int request, pid_t pid, void *addr, void *data);
static int signal_before_interrupt;

static char state_of(pid_t pid)
{
	auto_free char *text = NULL;
	char path[40];
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (fd_read_file(path, 4096, &text, &size) < 0)
		return 'X';
	return strrchr(text, ')')[2];
}

static bool wait_state(pid_t pid, char state)
{
	uint64_t deadline = clock_deadline_ms(PATIENCE_MS);

	while (state_of(pid) != state && clock_left_ms(deadline))
		usleep(1000);
	return state_of(pid) == state;
}

long __wrap_ptrace(int request, pid_t pid, void *addr, void *data)
{
	if (request == PTRACE_INTERRUPT && signal_before_interrupt) {
		kill(pid, signal_before_interrupt);
		wait_state(pid, 't');
	}
	return __real_ptrace(request, pid, addr, data);
}

/* ---- the program ---- */

static void handle(int sig)
{
	seen->handled++;
}

/* Whoever makes an ioctl() now waits for an answer of the listener, which is this process itself. */
static int hold_up_calls(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = TEST_COUNT(code), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static _Noreturn void run(unsigned long command)
{
	struct sigaction sa = { .sa_handler = handle }; /* No SA_RESTART: the call is over. */
	char args[16] = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGUSR1, &sa, NULL);
	if (hold_up_calls() < 0)
		_exit(1);
	for (;;)
		if (syscall(SYS_ioctl, 0, command, args) < 0 && errno == EINTR)
			seen->interrupted++;
}

static pid_t start(unsigned long command)
{
	pid_t pid;

	seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CU_ASSERT_TRUE_FATAL(seen != MAP_FAILED);
	pid = fork();
	if (pid == 0)
		run(command);
	return pid;
}

static pid_t start_waiting(void)
{
	uint64_t deadline = clock_deadline_ms(PATIENCE_MS);
	pid_t pid = start(RUNTIME_ENABLE);

	while (handshake_waiting(pid) != 1 && clock_left_ms(deadline))
		usleep(1000);
	TEST_EQ_FATAL(handshake_waiting(pid), 1);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	munmap((void *)seen, 4096);
}

/* ---- what is said of it ---- */

static void who_waits_is_told_from_others(void)
{
	pid_t pid = start(GET_VERSION);

	CU_ASSERT_TRUE(wait_state(pid, 'S'));
	TEST_EQ(handshake_waiting(pid), 0);
	end(pid);
	pid = start_waiting();
	end(pid);
	TEST_EQ(handshake_waiting(pid), 0);
}

static void a_wait_is_ended(void)
{
	pid_t pid = start_waiting();
	int released = 0;

	TEST_EQ(handshake_release(pid, clock_deadline_ms(PATIENCE_MS), &released), 1);
	TEST_EQ(released, 1);
	CU_ASSERT_TRUE(wait_state(pid, 'S'));
	TEST_EQ(seen->handled, 0);
	end(pid);
}

/* The stop that is asked for finds another one: the program gets its signal all the same, once. */
static void a_signal_on_its_way_arrives(void)
{
	uint64_t deadline = clock_deadline_ms(PATIENCE_MS);
	pid_t pid = start_waiting();
	int released = 0;

	signal_before_interrupt = SIGUSR1;
	TEST_EQ(handshake_release(pid, clock_deadline_ms(PATIENCE_MS), &released), 1);
	signal_before_interrupt = 0;
	TEST_EQ(released, 1);
	while (!seen->handled && clock_left_ms(deadline))
		usleep(1000);
	TEST_EQ(seen->handled, 1);
	CU_ASSERT_TRUE(wait_state(pid, 'S'));
	TEST_EQ(seen->interrupted, 1);
	end(pid);
}

static void one_that_does_not_exist_has_nobody_waiting(void)
{
	int released = 0;

	TEST_EQ(handshake_waiting(0x3fffffff), 0);
	TEST_EQ(handshake_release(0x3fffffff, clock_deadline_ms(PATIENCE_MS), &released), -ENOENT);
	TEST_EQ(released, 0);
}

TEST_SUITE(agentd_handshake, TEST(who_waits_is_told_from_others), TEST(a_wait_is_ended),
	   TEST(a_signal_on_its_way_arrives), TEST(one_that_does_not_exist_has_nobody_waiting));
