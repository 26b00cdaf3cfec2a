/* SPDX-License-Identifier: MIT */
/*
 * Programs, debuggers and deaths at random moments on the real driver.  What it asserts is little: that the device
 * still serves a new program afterwards.  The judge is the log of a kernel that watches itself
 * (scripts/check vm-debug).
 *
 * CHAOS_SECONDS is how long each part lasts, TEST_SEED where its random numbers begin.  CHAOS_UNASKED=1 begins sessions
 * as kfdtrap_attach() does not: without a look at what is there.  No kernel that was seen survives that (docs/VM.md).
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "kfdtrap.h"
#include "libkfdtrap/src/kfd_abi.h"
#include "testlib.h"

#define DEVICE	     "/dev/kfd"
#define RUNTIME_MASK (UINT64_C(1) << 47)
#define TARGETS	     3
#define DEBUGGERS    3
#define STEPS	     12
/* From the first call of a round to the kill of everything: longer than most of its calls take, shorter than all. */
#define ROUND_US 60000

/* ---- what programs and debuggers do ---- */

static uint64_t dice;

/* Each process has numbers of its own. */
static uint32_t roll(uint32_t sides)
{
	dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(dice >> 33) % sides;
}

static int device_open(void)
{
	return open(DEVICE, O_RDWR | O_CLOEXEC);
}

static int set_runtime(int fd, bool on)
{
	struct kfdabi_runtime_enable_args a = { .r_debug = 0x1000, .mode_mask = on };

	return ioctl(fd, KFDABI_IOC_RUNTIME_ENABLE, &a);
}

static int command(int fd, pid_t pid, uint32_t op)
{
	struct kfdabi_dbg_args a = { .pid = (uint32_t)pid, .op = op };

	return ioctl(fd, KFDABI_IOC_DBG_TRAP, &a);
}

static bool may_enable(int fd, pid_t pid)
{
	if (getenv("CHAOS_UNASKED"))
		return true;
	return command(fd, pid, KFDABI_DBG_QUERY_DEBUG_EVENT) < 0 && (errno == EINVAL || errno == EPERM);
}

/* A thread of the program that nobody traces, or its main thread where it has no other. */
static pid_t untraced_thread(pid_t pid)
{
	pid_t found = pid;
	char path[32];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir)))
		if (atoi(e->d_name) && atoi(e->d_name) != pid)
			found = atoi(e->d_name);
	if (dir)
		closedir(dir);
	return found;
}

/* With a channel that works, one that is no descriptor, or nowhere to write what is known of the runtime. */
static int enable(int fd, pid_t pid, uint32_t kind)
{
	struct kfdabi_runtime_info info;
	struct kfdabi_dbg_args a = { .pid = (uint32_t)pid, .op = KFDABI_DBG_ENABLE };
	int sv[2], r;

	if (pid != getpid() && !getenv("CHAOS_UNASKED")) {
		a.pid = (uint32_t)untraced_thread(pid);
		if (a.pid == (uint32_t)pid)
			return -2;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv))
		return -1;
	a.enable.exception_mask = kind == 3 ? 0 : RUNTIME_MASK;
	a.enable.rinfo_ptr = kind == 1 ? 0 : (uint64_t)(uintptr_t)&info;
	a.enable.rinfo_size = sizeof(info);
	a.enable.dbg_fd = kind == 2 ? UINT32_MAX : (uint32_t)sv[1];
	r = may_enable(fd, pid) ? ioctl(fd, KFDABI_IOC_DBG_TRAP, &a) : -2;
	if (r == -1 && errno == EALREADY && !getenv("CHAOS_UNASKED"))
		command(fd, pid, KFDABI_DBG_DISABLE);
	close(sv[0]);
	close(sv[1]);
	return r;
}

static void *second_thread(void *arg)
{
	int fd = device_open();

	set_runtime(fd, true);
	for (;;)
		usleep(1000);
	return arg;
}

static void play_again(void)
{
	char seed[24];

	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)dice);
	execl("/proc/self/exe", "chaos", "target", seed, NULL);
}

static void child_of_target(void)
{
	pid_t pid = fork();

	if (pid != 0)
		return;
	set_runtime(device_open(), true);
	usleep(roll(3000));
	_exit(0);
}

static void target_step(int *fd)
{
	pthread_t t;

	switch (roll(11)) {
	case 0: close(*fd); *fd = device_open(); break;
	case 1: *fd = device_open(); break;
	case 2:
	case 3: set_runtime(*fd, true); break;
	case 4: set_runtime(*fd, false); break;
	case 5: child_of_target(); break;
	case 6: pthread_create(&t, NULL, second_thread, NULL); break;
	case 7: enable(*fd, getpid(), roll(4)); break;
	case 8: command(*fd, getpid(), KFDABI_DBG_DISABLE); break;
	case 9: play_again(); break;
	default: usleep(roll(5000)); break;
	}
}

static void *idle(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void target_run(void)
{
	int fd = device_open();
	pthread_t t;

	pthread_create(&t, NULL, idle, NULL);
	for (int i = 0; i < STEPS; i++)
		target_step(&fd);
	if (roll(2))
		pthread_exit(NULL);
	_exit(0);
}

static void debugger_step(int *fd, pid_t pid)
{
	static const uint32_t ops[] = { KFDABI_DBG_DISABLE, KFDABI_DBG_SEND_RUNTIME_EVENT,
					KFDABI_DBG_SET_EXCEPTIONS_ENABLED,
					KFDABI_DBG_SUSPEND_QUEUES, KFDABI_DBG_RESUME_QUEUES,
					KFDABI_DBG_SET_FLAGS, KFDABI_DBG_QUERY_DEBUG_EVENT,
					KFDABI_DBG_QUERY_EXCEPTION_INFO };
	int status;

	switch (roll(9)) {
	case 0:
	case 1: enable(*fd, pid, roll(4)); break;
	case 2:
		ptrace(PTRACE_SEIZE, pid, NULL, (void *)(uintptr_t)(roll(2) ? PTRACE_O_TRACEEXEC : PTRACE_O_EXITKILL));
		break;
	case 3: ptrace(PTRACE_INTERRUPT, pid, NULL, NULL); break;
	case 4: ptrace(PTRACE_DETACH, pid, NULL, NULL); break;
	case 5:
		if (waitpid(pid, &status, __WALL | WNOHANG) == pid && WIFSTOPPED(status))
			ptrace(PTRACE_CONT, pid, NULL, NULL);
		break;
	case 6: close(*fd); *fd = device_open(); break;
	default: command(*fd, pid, ops[roll(TEST_COUNT(ops))]); break;
	}
	usleep(roll(800));
}

static void debugger_run(pid_t pid)
{
	int fd = device_open();

	ptrace(PTRACE_SEIZE, pid, NULL, NULL);
	enable(fd, pid, 0);
	for (int i = 0; i < 3 * STEPS; i++)
		debugger_step(&fd, pid);
	_exit(0);
}

/* ---- a round ---- */

struct round {
	pid_t pids[TARGETS + DEBUGGERS];
	size_t n;
};

static void leave_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	if (getppid() != parent)
		_exit(1);
}

/*
 * The numbers of a process are drawn here, so that a seed tells what each of them does.  Where there can be no process
 * now, its place holds a number below 1.
 */
static pid_t start(struct round *r, pid_t debugged)
{
	uint64_t mine = test_random();
	pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		leave_with(parent);
		dice = mine;
		if (debugged)
			debugger_run(debugged);
		target_run();
	}
	r->pids[r->n++] = pid;
	return pid;
}

/* A number below 1 would mean every process of the machine, or every one of the group. */
static void kill_one(pid_t pid)
{
	if (pid > 0)
		kill(pid, SIGKILL);
}

/* Those that are left, the children of children too: they are ours once their parents are gone. */
static void reap_all(void)
{
	while (waitpid(-1, NULL, __WALL) > 0)
		;
}

static void play_round(void)
{
	struct round r = { .n = 0 };
	pid_t debugged;

	for (size_t i = 0; i < TARGETS; i++)
		start(&r, 0);
	for (size_t i = 0; i < DEBUGGERS; i++) {
		debugged = r.pids[test_random() % TARGETS];
		if (debugged > 0)
			start(&r, debugged);
	}
	usleep((useconds_t)(test_random() % ROUND_US));
	for (size_t i = 0; i < r.n; i++)
		kill_one(r.pids[(i + test_random()) % r.n]);
	for (size_t i = 0; i < r.n; i++)
		kill_one(r.pids[i]);
	reap_all();
}

/* ---- tests ---- */

static uint64_t part_deadline(void)
{
	const char *seconds = getenv("CHAOS_SECONDS");

	return clock_deadline_ms(seconds ? strtoull(seconds, NULL, 10) * 1000 : 20000);
}

static bool has_device(void)
{
	if (access(DEVICE, R_OK | W_OK) == 0 && geteuid() == 0)
		return true;
	test_skip("needs root and " DEVICE);
	return false;
}

/* A new program gets its context, and its debugger a session. */
static void check_device(void)
{
	pid_t pid;
	int fd = device_open(), opened[2], status;
	char byte;

	CU_ASSERT_FATAL(fd >= 0);
	TEST_EQ_FATAL(pipe(opened), 0);
	pid = fork();
	if (pid == 0) {
		int own = device_open();
		pthread_t t;

		pthread_create(&t, NULL, idle, NULL);
		if (write(opened[1], "", own >= 0) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	CU_ASSERT_FATAL(pid > 0);
	close(opened[1]);
	TEST_EQ(read(opened[0], &byte, 1), 1);
	close(opened[0]);
	TEST_EQ(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);
	TEST_EQ(enable(fd, pid, 0), 0);
	TEST_EQ(command(fd, pid, KFDABI_DBG_DISABLE), 0);
	kill(pid, SIGKILL);
	TEST_EQ(waitpid(pid, &status, __WALL), pid);
	close(fd);
}

static void everything_at_random(void)
{
	uint64_t deadline = part_deadline();
	unsigned rounds = 0;

	if (!has_device())
		return;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	while (clock_left_ms(deadline)) {
		play_round();
		rounds++;
	}
	printf("  %u rounds\n", rounds);
	check_device();
}

/* A program that executes itself again and again, and opens the device each time. */
static void execute_run(unsigned left)
{
	pthread_t t;
	char count[16];

	pthread_create(&t, NULL, idle, NULL);
	device_open();
	snprintf(count, sizeof(count), "%u", left - 1);
	if (left)
		execl("/proc/self/exe", "chaos", "execute", count, NULL);
	_exit(0);
}

/* Nobody kills it: whatever ends it but its own exit is the kernel's doing. */
static void debugged_while_it_executes(void)
{
	uint64_t deadline = part_deadline();
	pid_t pid;
	int fd, status = 0;
	unsigned rounds = 0;

	if (!has_device())
		return;
	fd = device_open();
	while (clock_left_ms(deadline)) {
		pid = fork();
		if (pid == 0)
			execute_run(20);
		CU_ASSERT_FATAL(pid > 0);
		TEST_EQ(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);
		while (waitpid(pid, &status, __WALL | WNOHANG) == 0) {
			if (enable(fd, pid, 0) == 0)
				command(fd, pid, KFDABI_DBG_DISABLE);
			/* Each refusal is a line of the kernel's log. */
			usleep(500);
		}
		CU_ASSERT_FATAL(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		rounds++;
	}
	close(fd);
	printf("  %u programs\n", rounds);
	check_device();
}

/* As if the target had begun a session of its own since it was asked for one. */
static int ioctl_too_late(int fd, unsigned long request, void *arg)
{
	const struct kfdabi_dbg_args *args = arg;

	if (request == KFDABI_IOC_DBG_TRAP && args->op == KFDABI_DBG_QUERY_DEBUG_EVENT) {
		errno = EINVAL;
		return -1;
	}
	return ioctl(fd, request, arg);
}

static int come_second(pid_t pid, int fd)
{
	static const struct kfdtrap_sys sys = { .ioctl = ioctl_too_late };
	struct kfdtrap_runtime_info info;
	struct kfdtrap *kt = NULL;
	int sv[2];

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) || kfdtrap_create(fd, (uint32_t)pid, &sys, &kt) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv))
		return -EIO;
	return kfdtrap_attach(kt, RUNTIME_MASK, sv[1], &info);
}

static bool has_context(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d", (int)pid);
	return access(path, F_OK) == 0;
}

/* A context goes some time after its process, and its memory right after its name. */
static void wait_for_no_context(pid_t pid)
{
	uint64_t deadline = clock_deadline_ms((uint64_t)test_slow_ms(5000));

	while (has_context(pid) && clock_left_ms(deadline))
		usleep(1000);
	CU_ASSERT(!has_context(pid));
	usleep(100000);
}

/*
 * The kernel takes down who asked for a session, also where it says that there is one: the end of that session then
 * writes into what it has of that process, which may be gone.
 */
static void a_debugger_that_came_second_dies(void)
{
	int end[2], begun[2], r = -1, status;
	pid_t target, debugger;

	if (!has_device())
		return;
	TEST_EQ_FATAL(pipe(end), 0);
	TEST_EQ_FATAL(pipe(begun), 0);
	target = fork();
	if (target == 0) {
		int fd = device_open();

		r = enable(fd, getpid(), 0);
		if (write(begun[1], &r, sizeof(r)) != sizeof(r) || read(end[0], &r, sizeof(r)) != sizeof(r))
			_exit(1);
		command(fd, getpid(), KFDABI_DBG_DISABLE);
		_exit(0);
	}
	CU_ASSERT_FATAL(target > 0);
	TEST_EQ(read(begun[0], &r, sizeof(r)), sizeof(r));
	TEST_EQ(r, 0);
	debugger = fork();
	if (debugger == 0)
		_exit(-come_second(target, device_open()));
	if (debugger < 0) {
		kill_one(target);
		waitpid(target, &status, 0);
	}
	CU_ASSERT_FATAL(debugger > 0);
	TEST_EQ(waitpid(debugger, &status, 0), debugger);
	TEST_EQ(WEXITSTATUS(status), EAGAIN);
	wait_for_no_context(debugger);
	TEST_EQ(write(end[1], &r, sizeof(r)), sizeof(r));
	TEST_EQ(waitpid(target, &status, 0), target);
	TEST_EQ(status, 0);
	check_device();
}

static const struct test_case cases[] = { TEST(everything_at_random), TEST(debugged_while_it_executes),
					  TEST(a_debugger_that_came_second_dies) };

/* What the programs of the tests execute is this program again. */
int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "target")) {
		dice = strtoull(argv[2], NULL, 10);
		target_run();
	}
	if (argc == 3 && !strcmp(argv[1], "execute"))
		execute_run((unsigned)strtoul(argv[2], NULL, 10));
	return test_main("kfd_chaos", cases, TEST_COUNT(cases), argc, argv);
}
