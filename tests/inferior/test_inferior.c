/* SPDX-License-Identifier: MIT */
/* Function calls in a process that checks itself; the caller is killed at every step. */
#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "libcudbgshim/src/inferior/inferior.h"
#include "testlib.h"
#include "tests/inferior/victim.h"

#define PATIENCE_MS 20000

struct scene {
	pid_t pid;
	int proc_fd, mem_fd;
	struct victim *v;
	struct cudbgshim_inferior_record *record;
};

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
}

static void *shared(size_t size, int fd)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

static void start_victim(struct scene *s, const char *const *kinds, uid_t uid)
{
	char path[PATH_MAX] = "", *argv[24];
	int fd = memfd_create("victim", 0), n = 0;

	if (fd < 0 || ftruncate(fd, sizeof(*s->v)) < 0 ||
	    readlink("/proc/self/exe", path, sizeof(path) - 32) < 0)
		abort();
	strcat(dirname(path), "/inferior_victim");
	argv[n++] = path;
	while (*kinds)
		argv[n++] = (char *)(uintptr_t)*kinds++;
	argv[n] = NULL;
	s->v = shared(sizeof(*s->v), fd);
	s->pid = fork();
	if (s->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (dup2(fd, VICTIM_FD) < 0 || (uid && setresuid(uid, uid, uid) < 0))
			_exit(4);
		execv(path, argv);
		_exit(5);
	}
	close(fd);
}

static void begin_as(struct scene *s, uid_t uid, const char *const *kinds)
{
	uint64_t deadline = clock_deadline_ms(PATIENCE_MS);
	char path[64];

	start_victim(s, kinds, uid);
	while (!s->v->ready && clock_left_ms(deadline))
		nap();
	TEST_EQ_FATAL(s->v->ready, 1);
	snprintf(path, sizeof(path), "/proc/%d", (int)s->pid);
	s->proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s->mem_fd = openat(s->proc_fd, "mem", O_RDWR | O_CLOEXEC);
	s->record = shared(4096, -1);
	CU_ASSERT_TRUE_FATAL(s->proc_fd >= 0 && s->mem_fd >= 0);
}

#define BEGIN(s, ...) begin_as(s, 0, (const char *const[]){ __VA_ARGS__, NULL })

static struct cudbgshim_inferior_options options(struct scene *s, enum victim_function f, uint64_t arg)
{
	return (struct cudbgshim_inferior_options){ .pid = s->pid,
						.proc_fd = s->proc_fd,
						.memory = cudbgshim_memory_from_fd(s->mem_fd),
						.function = s->v->function[f],
						.argument = arg,
						.timeout_ms = 5000,
						.record = s->record };
}

static int call(struct scene *s, const struct cudbgshim_inferior_options *o,
		struct cudbgshim_inferior_error *ret_err)
{
	struct cudbgshim_inferior *c;
	int rc = cudbgshim_inferior_create(o, &c);

	if (rc < 0)
		return rc;
	rc = cudbgshim_inferior_run(c);
	*ret_err = *cudbgshim_inferior_error(c);
	cudbgshim_inferior_destroy(c);
	return rc;
}

static int call_work(struct scene *s, uint64_t arg)
{
	struct cudbgshim_inferior_options o = options(s, VICTIM_WORK, arg);
	struct cudbgshim_inferior_error err = { .what = "" };
	int rc = call(s, &o, &err);

	if (rc < 0)
		printf("  call: %s: %s\n", strerror(-rc), err.what);
	return rc;
}

static uint64_t beats(const struct scene *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < VICTIM_KINDS; i++)
		sum += s->v->beats[i];
	return sum;
}

/* Every kind of thread that the victim was started with makes progress. */
static bool all_beat(const struct scene *s, int rounds)
{
	uint64_t before[VICTIM_KINDS], deadline = clock_deadline_ms(PATIENCE_MS);

	/* A victim that was started a moment ago may have done nothing yet. */
	while (!beats(s) && clock_left_ms(deadline))
		nap();
	for (size_t i = 0; i < VICTIM_KINDS; i++)
		before[i] = s->v->beats[i];
	for (size_t i = 0; i < VICTIM_KINDS; i++)
		while (before[i] && s->v->beats[i] < before[i] + (uint64_t)rounds) {
			if (!clock_left_ms(deadline))
				return false;
			nap();
		}
	return beats(s) > 0;
}

static void check_health(struct scene *s)
{
	TEST_EQ(all_beat(s, 2), true);
	TEST_EQ(s->v->errors, 0);
	if (s->v->errors)
		printf("  victim: %s\n", (const char *)s->v->first_error);
}

/* While the caller lives, not even a restarted system call shows that it was there. */
static void check_unseen(struct scene *s, size_t kind)
{
	TEST_ROW_EQ(kind, s->v->interrupted, 0);
	TEST_EQ(s->v->unclean, 0);
	check_health(s);
}

static void end(struct scene *s)
{
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	close(s->proc_fd);
	close(s->mem_fd);
	munmap(s->v, sizeof(*s->v));
	munmap(s->record, 4096);
}

static int tracer_of(const struct scene *s)
{
	auto_free char *text = NULL;
	size_t size;

	if (fd_read_file_at(s->proc_fd, "status", 65536, &text, &size) < 0)
		return -1;
	return atoi(strstr(text, "TracerPid:") + 10);
}

static void wait_beats(struct scene *s)
{
	uint64_t deadline = clock_deadline_ms(PATIENCE_MS);

	while (!beats(s) && clock_left_ms(deadline))
		nap();
}

static const char *const single_kinds[] = { "vectors", "redzone", "sleep",	"poll",	 "futex",
					    "epoll",   "read",	  "recv",	"sigsuspend",
					    "alarm",   "storm",	  "vfork",	"busy" };

/* In each kind of thread, again and again: the function runs, the thread notices nothing. */
static void calls_are_invisible(void)
{
	for (size_t k = 0; k < TEST_COUNT(single_kinds); k++) {
		struct scene s;

		BEGIN(&s, single_kinds[k]);
		wait_beats(&s);
		for (uint64_t i = 0; i < 30; i++) {
			TEST_ROW_EQ(k, call_work(&s, 0x1234500000 + i), 0);
			TEST_ROW_EQ(k, s.v->argument, 0x1234500000 + i);
			TEST_ROW_EQ(k, s.v->completed, i + 1);
			TEST_ROW_EQ(k, s.record->is_active, 0);
		}
		TEST_ROW_EQ(k, tracer_of(&s), 0);
		check_unseen(&s, k);
		end(&s);
	}
}

/* All kinds at once; the choice is free. */
static void calls_among_many_threads(void)
{
	struct scene s;

	BEGIN(&s, "vectors", "sleep", "poll", "futex", "epoll", "read", "recv", "vfork", "redzone",
	      "libc");
	wait_beats(&s);
	for (uint64_t i = 0; i < 100; i++)
		TEST_EQ(call_work(&s, i), 0);
	TEST_EQ(s.v->completed, 100);
	check_unseen(&s, 0);
	end(&s);
}

static void unprivileged_calls_work(void)
{
	struct scene s;
	pid_t child;
	int status;

	if (getuid()) {
		test_skip("needs root to become another user");
		return;
	}
	begin_as(&s, 65534, (const char *const[]){ "futex", "vectors", NULL });
	wait_beats(&s);
	child = fork();
	if (child == 0) {
		if (setresuid(65534, 65534, 65534) < 0)
			_exit(9);
		_exit(call_work(&s, 5) == 0 ? 0 : 8);
	}
	waitpid(child, &status, 0);
	TEST_EQ(status, 0);
	TEST_EQ(s.v->argument, 5);
	check_health(&s);
	end(&s);
}

/* ------------------------------------------------------------------ death of the caller ------ */

struct killer {
	int at, step;
	const char *name;
};

static void count_step(void *ctx, const char *name)
{
	struct killer *k = ctx;

	k->name = name;
	if (k->step++ == k->at)
		kill(getpid(), SIGKILL);
}

/* @return true when the caller lived to the end, that is: there are no more steps. */
static bool call_and_die(struct scene *s, int at)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		struct killer k = { .at = at };
		struct cudbgshim_inferior_options o = options(s, VICTIM_WORK, (uint64_t)at);
		struct cudbgshim_inferior_error err;

		o.trace = count_step;
		o.trace_ctx = &k;
		_exit(call(s, &o, &err) == 0 ? 0 : 9);
	}
	if (waitpid(child, &status, 0) != child)
		abort();
	CU_ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	return !WIFSIGNALED(status);
}

static bool settled(struct scene *s)
{
	uint64_t deadline = clock_deadline_ms(PATIENCE_MS);

	while (s->v->entered != s->v->completed && clock_left_ms(deadline))
		nap();
	return s->v->entered == s->v->completed && tracer_of(s) == 0;
}

/* The lost thread of a call with a signal that interrupts it is the one documented exception. */
static void death_at_each_step(void)
{
	for (size_t k = 0; k < TEST_COUNT(single_kinds); k++) {
		struct scene s;
		int rounds = 3;

		if (!strcmp(single_kinds[k], "alarm"))
			continue;
		BEGIN(&s, single_kinds[k]);
		wait_beats(&s);
		while (rounds--) {
			int at = 0;

			while (!call_and_die(&s, at++))
				TEST_ROW_EQ(k, settled(&s), true);
			CU_ASSERT_TRUE(at > 8);
		}
		check_health(&s);
		end(&s);
	}
}

/* Not at a step, but anywhere. */
static void death_at_any_time(void)
{
	struct scene s;

	BEGIN(&s, "storm", "vectors", "futex", "epoll", "redzone", "read");
	wait_beats(&s);
	for (int i = 0; i < 200; i++) {
		pid_t child = fork();

		if (child == 0) {
			for (;;)
				call_work(&s, 1);
		}
		nanosleep(&(struct timespec){ .tv_nsec = (long)(test_random() % 6000000) }, NULL);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	TEST_EQ(settled(&s), true);
	check_health(&s);
	end(&s);
}

/* The record tells whether the function still runs after we were killed. */
static void record_outlives_the_caller(void)
{
	struct scene s;
	struct cudbgshim_memory memory;
	uint64_t deadline = clock_deadline_ms(PATIENCE_MS);
	pid_t child;

	BEGIN(&s, "futex");
	memory = cudbgshim_memory_from_fd(s.mem_fd);
	child = fork();
	if (child == 0) {
		struct cudbgshim_inferior_options o = options(&s, VICTIM_HELD, 0);
		struct cudbgshim_inferior_error err;

		_exit(call(&s, &o, &err));
	}
	while (!s.v->entered && clock_left_ms(deadline))
		nap();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	TEST_EQ(s.record->is_active, 1);
	TEST_EQ(cudbgshim_inferior_is_running(s.record, &memory, &cudbgshim_tracer_direct), 1);
	s.v->released = 1;
	TEST_EQ(settled(&s), true);
	while (cudbgshim_inferior_is_running(s.record, &memory, &cudbgshim_tracer_direct) == 1 &&
	       clock_left_ms(deadline))
		nap();
	TEST_EQ(cudbgshim_inferior_is_running(s.record, &memory, &cudbgshim_tracer_direct), 0);
	check_health(&s);
	end(&s);
}

/* Asked to stop, it does so when it can; who waits for it asks again. */
static void a_thread_that_cannot_stop_is_waited_for(void)
{
	struct scene s;
	struct cudbgshim_memory memory;
	uint64_t deadline = clock_deadline_ms(PATIENCE_MS);
	pid_t child;
	int rc;

	BEGIN(&s, "futex");
	memory = cudbgshim_memory_from_fd(s.mem_fd);
	child = fork();
	if (child == 0) {
		struct cudbgshim_inferior_options o = options(&s, VICTIM_STUCK, 1500000);
		struct cudbgshim_inferior_error err;

		_exit(call(&s, &o, &err));
	}
	while (!s.v->entered && clock_left_ms(deadline))
		nap();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	while ((rc = cudbgshim_inferior_is_running(s.record, &memory, &cudbgshim_tracer_direct)) == 1 &&
	       clock_left_ms(deadline))
		nap();
	TEST_EQ(rc, 0);
	TEST_EQ(settled(&s), true);
	TEST_EQ(s.v->completed, 1);
	check_health(&s);
	end(&s);
}

/* ------------------------------------------------------------------ calls that go wrong ------ */

/* A call in so short a time may not come as far as the function. */
static int call_held(struct scene *s, struct cudbgshim_inferior_error *ret_err)
{
	struct cudbgshim_inferior_options o = options(s, VICTIM_HELD, 0);
	int rc;

	o.timeout_ms = 100;
	do {
		o.timeout_ms *= 2;
		rc = call(s, &o, ret_err);
	} while (!ret_err->is_entered && o.timeout_ms < PATIENCE_MS);
	return rc;
}

/* Signals that the first thread blocks. */
static uint64_t blocked_of(const struct scene *s)
{
	auto_free char *text = NULL;
	size_t size;

	if (fd_read_file_at(s->proc_fd, "status", 65536, &text, &size) < 0)
		return 0;
	return strtoull(strstr(text, "SigBlk:") + 7, NULL, 16);
}

static void slow_functions_run_on(void)
{
	static const char *const kinds[] = { "futex", "vectors", "sleep", "epoll" };

	for (size_t k = 0; k < TEST_COUNT(kinds); k++) {
		struct cudbgshim_inferior_error err;
		struct scene s;
		uint64_t own;

		BEGIN(&s, kinds[k]);
		wait_beats(&s);
		own = blocked_of(&s);
		TEST_ROW_EQ(k, call_held(&s, &err), -ETIMEDOUT);
		TEST_ROW_EQ(k, err.is_entered, true);
		/* However long it takes from here: the thread hears its signals meanwhile. */
		TEST_ROW_EQ(k, blocked_of(&s), own);
		s.v->released = 1;
		TEST_ROW_EQ(k, settled(&s), true);
		TEST_ROW_EQ(k, s.v->completed, 1);
		check_health(&s);
		end(&s);
	}
}

/* The function faults: cut short, the program lives. */
static void faults_are_survived(void)
{
	struct cudbgshim_inferior_options o;
	struct cudbgshim_inferior_error err;
	struct scene s;

	BEGIN(&s, "futex", "vectors");
	o = options(&s, VICTIM_CRASH, 8);
	TEST_EQ(call(&s, &o, &err), -EFAULT);
	TEST_EQ(call_work(&s, 1), 0);
	check_health(&s);
	end(&s);
}

static void endings_are_noticed(void)
{
	static const struct { enum victim_function f; uint64_t arg; const char *kinds[3]; } rows[] = {
		{ VICTIM_EXIT, 3, { "futex" } },
		{ VICTIM_EXIT, 0, { "libc", "futex" } },
		{ VICTIM_EXEC, 0, { "futex" } },
		{ VICTIM_EXEC, 0, { "libc", "futex" } },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct cudbgshim_inferior_options o;
		struct cudbgshim_inferior_error err;
		struct scene s;

		begin_as(&s, 0, rows[i].kinds);
		o = options(&s, rows[i].f, rows[i].arg);
		TEST_ROW_EQ(i, call(&s, &o, &err), -ESRCH);
		if (rows[i].f == VICTIM_EXEC)
			TEST_ROW_EQ(i, tracer_of(&s), 0);
		end(&s);
	}
}

/* Where the only thread of the victim executes; its parent may look. */
static uint64_t program_counter(const struct scene *s)
{
	struct inferior_registers regs = { .is_32bit = false };
	int status;

	if (ptrace(PTRACE_SEIZE, s->pid, NULL, NULL) < 0)
		return 0;
	ptrace(PTRACE_INTERRUPT, s->pid, NULL, NULL);
	if (waitpid(s->pid, &status, __WALL) == s->pid && WIFSTOPPED(status))
		inferior_get_registers(&cudbgshim_tracer_direct, s->pid, &regs);
	ptrace(PTRACE_DETACH, s->pid, NULL, NULL);
	return inferior_pc(&regs);
}

static bool is_in_libc(const struct scene *s)
{
	uint64_t pc = program_counter(s);
	auto_free char *maps = NULL;
	struct cudbgshim_map map;
	size_t size;

	return fd_read_file_at(s->proc_fd, "maps", 1 << 20, &maps, &size) == 0 &&
	       cudbgshim_maps_find(maps, size, pc, &map) &&
	       memmem(map.name, map.name_size, "/libc", 5);
}

static bool is_stopped(const struct scene *s)
{
	siginfo_t si = { .si_pid = 0 };

	return waitid(P_PID, (id_t)s->pid, &si, WSTOPPED | WNOHANG | WNOWAIT) == 0 && si.si_pid;
}

static void unusable_threads_are_left_alone(void)
{
	/* Once such a victim is there, it stays there. */
	static const struct {
		int want;
		bool (*is_there)(const struct scene *s);
		const char *kinds[2];
	} rows[] = {
		{ -EAGAIN, is_in_libc, { "spin" } },
		{ -EBUSY, is_stopped, { "stopped" } },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct cudbgshim_inferior_options o;
		struct cudbgshim_inferior_error err = { .what = "" };
		uint64_t deadline = clock_deadline_ms(PATIENCE_MS);
		struct scene s;
		int rc;

		begin_as(&s, 0, rows[i].kinds);
		while (!rows[i].is_there(&s) && clock_left_ms(deadline))
			nap();
		o = options(&s, VICTIM_WORK, 0);
		o.timeout_ms = 300;
		rc = call(&s, &o, &err);
		printf("  %s\n", err.what);
		if (rows[i].want == -EBUSY && rc == -EAGAIN)
			rc = strstr(err.what, "is stopped") ? -EBUSY : rc;
		TEST_ROW_EQ(i, rc, rows[i].want);
		TEST_ROW_EQ(i, s.v->entered, 0);
		TEST_ROW_EQ(i, tracer_of(&s), 0);
		pthread_spin_unlock(&s.v->spin);
		for (deadline = clock_deadline_ms(PATIENCE_MS); beats(&s) < 3 && clock_left_ms(deadline); nap())
			kill(s.pid, SIGCONT);
		TEST_ROW_EQ(i, beats(&s) >= 3, true);
		TEST_ROW_EQ(i, s.v->errors, 0);
		end(&s);
	}
}

/* The process ends when it has been chosen, and nobody has collected it yet. */
static int seize_what_ends(void *ctx, int tid)
{
	siginfo_t si;

	kill(tid, SIGKILL);
	waitid(P_PID, (id_t)tid, &si, WEXITED | WNOWAIT);
	*(int *)ctx = cudbgshim_tracer_direct.seize(NULL, tid);
	return *(int *)ctx;
}

/* The kernel refuses to trace a thread that ends as it refuses one that others may not trace. */
static void a_thread_that_ends_is_not_one_that_is_refused(void)
{
	struct cudbgshim_inferior_error err = { .what = "" };
	struct cudbgshim_tracer tracer = cudbgshim_tracer_direct;
	struct cudbgshim_inferior_options o;
	struct scene s;
	int said = 0;

	BEGIN(&s, "sleep");
	tracer.seize = seize_what_ends;
	tracer.ctx = &said;
	o = options(&s, VICTIM_WORK, 0);
	o.tracer = &tracer;
	TEST_EQ(call(&s, &o, &err), -ESRCH);
	TEST_EQ(said, -EPERM);
	CU_ASSERT_TRUE(strstr(err.what, "has ended") != NULL);
	TEST_EQ(inferior_thread_has_ended(s.proc_fd, s.pid), true);
	TEST_EQ(inferior_thread_has_ended(s.proc_fd, INT32_MAX), true);
	end(&s);
	BEGIN(&s, "sleep");
	TEST_EQ(inferior_thread_has_ended(s.proc_fd, s.pid), false);
	end(&s);
}

/*
 * A thread that goes on behind a function has been in the middle of its sequence all the time, which the kernel
 * would have aborted.  Between an abort and its new beginning it may be used.
 */
static void restartable_sequences_are_left_alone(void)
{
	int refused = 0;

	for (int i = 0; i < 10; i++) {
		struct cudbgshim_inferior_error err = { .what = "" };
		struct cudbgshim_inferior_options o;
		struct scene s;
		int rc;

		BEGIN(&s, "rseq");
		o = options(&s, VICTIM_WORK, 0);
		o.timeout_ms = 100;
		rc = call(&s, &o, &err);
		if (beats(&s)) {
			end(&s);
			test_skip("no restartable sequences here");
			return;
		}
		TEST_EQ(rc == 0 || rc == -EAGAIN, true);
		refused += rc == -EAGAIN && strstr(err.what, "is in a restartable sequence") != NULL;
		TEST_EQ(s.v->completed, rc == 0);
		TEST_EQ(tracer_of(&s), 0);
		s.v->released = 1;
		check_health(&s);
		end(&s);
	}
	CU_ASSERT_TRUE(refused >= 5);
}

/* @return whether it has them; else this machine has no such registers. */
static bool wait_matrices(const struct scene *s)
{
	uint64_t deadline = clock_deadline_ms(PATIENCE_MS);

	while (!s->v->has_matrices && !s->v->lacks_matrices && clock_left_ms(deadline))
		nap();
	CU_ASSERT_TRUE(s->v->has_matrices || s->v->lacks_matrices);
	return s->v->has_matrices;
}

#define MATRICES_WHY "has a shadow stack or matrix registers"

/* A thread that did not stop in so short a time is refused for that. */
static int call_with_matrices(struct scene *s, struct cudbgshim_inferior_error *ret_err)
{
	struct cudbgshim_inferior_options o = options(s, VICTIM_WORK, 0);
	int rc;

	o.timeout_ms = 150;
	do {
		o.timeout_ms *= 2;
		rc = call(s, &o, ret_err);
	} while (rc == -EAGAIN && !strstr(ret_err->what, MATRICES_WHY) && o.timeout_ms < PATIENCE_MS);
	return rc;
}

/*
 * A frame with floating point alone would leave a thread without its matrix.  Once it has none any more, it is like
 * others.
 */
static void matrix_registers_are_left_alone(void)
{
	static const char *const kinds[] = { "streaming", "stored" };

	for (size_t k = 0; k < TEST_COUNT(kinds); k++) {
		struct cudbgshim_inferior_error err = { .what = "" };
		struct scene s;

		BEGIN(&s, kinds[k]);
		if (!wait_matrices(&s)) {
			end(&s);
			test_skip("no matrix registers here");
			return;
		}
		TEST_ROW_EQ(k, call_with_matrices(&s, &err), -EAGAIN);
		TEST_ROW_EQ(k, strstr(err.what, MATRICES_WHY) != NULL, true);
		TEST_ROW_EQ(k, s.v->entered, 0);
		TEST_ROW_EQ(k, tracer_of(&s), 0);
		s.v->released = 1;
		check_unseen(&s, 0);
		end(&s);
	}
}

/* Such a thread keeps its registers while another one is used. */
static void other_threads_than_those_with_matrices_are_used(void)
{
	struct scene s;

	BEGIN(&s, "stored", "streaming", "vectors");
	if (!wait_matrices(&s)) {
		end(&s);
		test_skip("no matrix registers here");
		return;
	}
	for (uint64_t i = 0; i < 20; i++)
		TEST_EQ(call_work(&s, i), 0);
	TEST_EQ(s.v->completed, 20);
	s.v->released = 1;
	check_unseen(&s, 0);
	end(&s);
}

/* SIGSTOP and SIGCONT in the middle. */
static void job_control_is_respected(void)
{
	struct scene s;
	pid_t child;
	uint64_t deadline = clock_deadline_ms(PATIENCE_MS), seen;
	int status;

	BEGIN(&s, "futex", "vectors");
	wait_beats(&s);
	child = fork();
	if (child == 0) {
		struct cudbgshim_inferior_options o = options(&s, VICTIM_HELD, 0);
		struct cudbgshim_inferior_error err;

		o.timeout_ms = PATIENCE_MS;
		_exit(call(&s, &o, &err) == 0 ? 0 : 9);
	}
	while (!s.v->entered && clock_left_ms(deadline))
		nap();
	kill(s.pid, SIGSTOP);
	while (!is_stopped(&s) && clock_left_ms(deadline))
		nap();
	seen = beats(&s);
	s.v->released = 1;
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
	TEST_EQ(beats(&s), seen);
	TEST_EQ(s.v->completed, 0);
	kill(s.pid, SIGCONT);
	waitpid(child, &status, 0);
	TEST_EQ(status, 0);
	check_health(&s);
	end(&s);
}

TEST_SUITE(inferior, TEST(calls_are_invisible), TEST(calls_among_many_threads),
	   TEST(unprivileged_calls_work), TEST(death_at_each_step), TEST(death_at_any_time),
	   TEST(record_outlives_the_caller), TEST(a_thread_that_cannot_stop_is_waited_for),
	   TEST(slow_functions_run_on), TEST(faults_are_survived),
	   TEST(endings_are_noticed), TEST(unusable_threads_are_left_alone),
	   TEST(a_thread_that_ends_is_not_one_that_is_refused),
	   TEST(restartable_sequences_are_left_alone), TEST(matrix_registers_are_left_alone),
	   TEST(other_threads_than_those_with_matrices_are_used),
	   TEST(job_control_is_respected));
