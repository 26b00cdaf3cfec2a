/* SPDX-License-Identifier: MIT */
/*
 * A program that notices when somebody disturbs it.
 *
 * usage: victim KIND...    each KIND runs in a thread of its own, the first one in the first thread
 *
 * Nobody in here tolerates EINTR, a changed register, a changed byte below the stack pointer, a
 * lost or additional signal.  A separate process wakes the waiting kinds.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/inferior/victim.h"
#include "tests/inferior/victim_machine.h"

static struct victim *v;

/* Shared with the process that wakes us. */
static struct {
	volatile uint32_t futex;
	volatile uint64_t kicks;
} *wake;
static int event_fd, epoll_fd, pipe_fds[2], silent_pipe[2], sockets[2];

static void wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void wrong(const char *fmt, ...)
{
	char text[sizeof(v->first_error)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!__sync_fetch_and_add(&v->errors, 1))
		memcpy((char *)v->first_error, text, sizeof(text));
}

/* The caller's death is allowed to show as EINTR here, its life is not. */
static void wrong_or_interrupted(const char *what)
{
	if (errno == EINTR)
		__sync_fetch_and_add(&v->interrupted, 1);
	else
		wrong("%s: %s", what, strerror(errno));
}

static void pause_us(long us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000 };

	while (nanosleep(&t, &t) < 0)
		wrong_or_interrupted("nanosleep");
}

/* ------------------------------------------------------------------ what is called ----------- */

static void *helper_thread(void *arg)
{
	free(malloc(100));
	return arg;
}

static void work(uint64_t argument)
{
	pthread_t t;

	__sync_fetch_and_add(&v->entered, 1);
	v->argument = argument;
	/* A caller that dies before it has cleaned it leaves it as the thread had it. */
	if (!has_clean_state())
		__sync_fetch_and_add(&v->unclean, 1);
	if (pthread_create(&t, NULL, helper_thread, NULL) == 0)
		pthread_join(t, NULL);
	else
		wrong("pthread_create");
	usleep(500);
	errno = 0;
	trash_vectors();
	__sync_fetch_and_add(&v->completed, 1);
}

/* Until it is let go. */
static void held(uint64_t argument)
{
	(void)argument;
	__sync_fetch_and_add(&v->entered, 1);
	while (!v->released)
		usleep(1000);
	trash_vectors();
	__sync_fetch_and_add(&v->completed, 1);
}

/* Waits in the kernel, where nobody can stop it. */
static void stuck(uint64_t argument)
{
	pid_t child;

	__sync_fetch_and_add(&v->entered, 1);
	child = vfork();
	if (child == 0) {
		struct timespec t = { (time_t)(argument / 1000000), (long)(argument % 1000000) * 1000 };

		syscall(SYS_nanosleep, &t, NULL);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	__sync_fetch_and_add(&v->completed, 1);
}

static void crash(uint64_t argument)
{
	__sync_fetch_and_add(&v->entered, 1);
	*(volatile int *)(uintptr_t)argument = 1;
}

static void end_thread(uint64_t argument)
{
	__sync_fetch_and_add(&v->entered, 1);
	if (argument)
		_exit((int)argument);
	syscall(SYS_exit, 0);
}

static void execute(uint64_t argument)
{
	(void)argument;
	__sync_fetch_and_add(&v->entered, 1);
	execl("/bin/sleep", "sleep", "30", (char *)NULL);
}

/* ------------------------------------------------------------------ kinds of threads --------- */

static void kind_vectors(void)
{
	if (check_registers())
		wrong("a register changed");
}

static void kind_redzone(void)
{
	if (check_stack())
		wrong("the stack changed");
}

static void kind_sleep(void)
{
	struct timespec begin, end;
	long us;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	pause_us(3000);
	clock_gettime(CLOCK_MONOTONIC, &end);
	us = (end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000;
	if (us < 3000)
		wrong("slept %ld us instead of 3000", us);
}

static void kind_poll(void)
{
	if (poll(NULL, 0, 5) != 0)
		wrong_or_interrupted("poll");
}

static void kind_futex(void)
{
	uint32_t seen = wake->futex;

	if (syscall(SYS_futex, &wake->futex, FUTEX_WAIT, seen, NULL, NULL, 0) < 0 && errno != EAGAIN)
		wrong("futex: %s", strerror(errno));
}

static void kind_epoll(void)
{
	struct epoll_event e;
	uint64_t count;

	if (epoll_wait(epoll_fd, &e, 1, -1) != 1)
		return wrong_or_interrupted("epoll_wait");
	if (read(event_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		wrong("eventfd: %s", strerror(errno));
}

/* Most of the time it runs, and then it waits. */
static void kind_busy(void)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < 1000000);
	kind_epoll();
}

static void kind_read(void)
{
	char c;

	if (read(pipe_fds[0], &c, 1) != 1)
		wrong("read: %s", strerror(errno));
}

static void kind_recv(void)
{
	char c;

	if (recv(sockets[0], &c, 1, 0) != 1)
		wrong("recv: %s", strerror(errno));
}

static volatile sig_atomic_t handled, reading;

static void set_alarm(void)
{
	struct itimerval t = { .it_value.tv_usec = 4000 };

	setitimer(ITIMER_REAL, &t, NULL);
}

static void handler(int sig)
{
	handled++;
	__sync_fetch_and_add(&v->signals, 1);
	/* It may have come before the call that it is to interrupt. */
	if (sig == SIGALRM && reading)
		set_alarm();
}

/* Returns only when its handler has run. */
static void kind_sigsuspend(void)
{
	sigset_t none;
	sig_atomic_t before = handled;

	sigemptyset(&none);
	sigsuspend(&none);
	if (handled == before)
		wrong("sigsuspend returned without a signal");
}

/* The timer must interrupt the read, every time: one signal lost, and nobody would ever wake it. */
static void kind_alarm(void)
{
	sig_atomic_t before = handled;
	char c;
	ssize_t n;

	reading = 1;
	set_alarm();
	n = read(silent_pipe[0], &c, 1);
	reading = 0;
	if (n >= 0 || errno != EINTR)
		wrong("read on a silent pipe: %zd", n);
	if (handled == before)
		wrong("read was interrupted without a signal");
}

/* Signals at a high rate, on top of registers that must not change. */
static void kind_storm(void)
{
	static bool on;
	struct itimerval t = { .it_value.tv_usec = 300, .it_interval.tv_usec = 300 };

	if (!on)
		setitimer(ITIMER_REAL, &t, NULL);
	on = true;
	kind_vectors();
}

static void kind_vfork(void)
{
	int status;
	pid_t child = vfork();

	if (child == 0) {
		struct timespec t = { 0, 5000000 };

		syscall(SYS_nanosleep, &t, NULL);
		_exit(7);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
	    WEXITSTATUS(status) != 7)
		wrong("vfork child: %s", strerror(errno));
}

/* Hardly anywhere but in the C library. */
static void kind_libc(void)
{
	static char text[32 << 20];

	memset(text, 'x', sizeof(text) - 1);
}

/* In the C library until somebody lets it go: no thread to borrow. */
static void kind_spin(void)
{
	pthread_spin_lock(&v->spin);
	pthread_spin_unlock(&v->spin);
}

static void kind_stopped(void)
{
	raise(SIGSTOP);
}

/* In a restartable sequence until somebody lets it go. */
static void kind_rseq(void)
{
	if (!run_restartable(&v->released))
		pause_us(1000);
}

/* With registers that no call could put back, until somebody lets it go. */
static void kind_matrices(enum matrices kind)
{
	int r = hold_matrices(kind, &v->has_matrices, &v->released);

	if (r > 0)
		wrong("a matrix register changed");
	if (r < 0) {
		v->lacks_matrices = 1;
		pause_us(1000);
	}
}

static void kind_streaming(void)
{
	kind_matrices(MATRICES_STREAMING);
}

static void kind_stored(void)
{
	kind_matrices(MATRICES_STORED);
}

static const struct kind {
	const char *name;
	void (*round)(void);
} kinds[VICTIM_KINDS] = {
	{ "vectors", kind_vectors }, { "redzone", kind_redzone }, { "sleep", kind_sleep },
	{ "poll", kind_poll },	     { "futex", kind_futex },	  { "epoll", kind_epoll },
	{ "read", kind_read },	     { "recv", kind_recv },	  { "sigsuspend", kind_sigsuspend },
	{ "alarm", kind_alarm },     { "storm", kind_storm },	  { "vfork", kind_vfork },
	{ "libc", kind_libc },	     { "spin", kind_spin },	  { "stopped", kind_stopped },
	{ "rseq", kind_rseq },	     { "streaming", kind_streaming }, { "stored", kind_stored },
	{ "busy", kind_busy },
};

static void *run(void *arg)
{
	const struct kind *k = arg;
	uint64_t *beat = (uint64_t *)&v->beats[k - kinds];

	for (;;) {
		k->round();
		__atomic_fetch_add(beat, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Another process, so that it is no candidate for the call. */
static void wake_all(pid_t parent, pid_t signalled)
{
	uint64_t one = 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent) {
		wake->futex++;
		syscall(SYS_futex, &wake->futex, FUTEX_WAKE, 100, NULL, NULL, 0);
		if (write(event_fd, &one, sizeof(one)) < 0 || write(pipe_fds[1], "x", 1) < 0 ||
		    send(sockets[1], "x", 1, MSG_DONTWAIT) < 0)
			(void)0; /* full: somebody will drain it or nobody reads */
		if (signalled)
			kill(signalled, SIGUSR1);
		usleep(3000);
	}
	_exit(0);
}

static void block_signals(bool keep_alarm)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (!keep_alarm)
		sigaddset(&set, SIGALRM);
	sigprocmask(SIG_SETMASK, &set, NULL);
}

static void prepare(void)
{
	struct sigaction sa = { .sa_handler = handler };
	struct epoll_event e = { .events = EPOLLIN };

	wake = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	event_fd = eventfd(0, EFD_NONBLOCK);
	epoll_fd = epoll_create1(0);
	if (wake == MAP_FAILED || pipe2(pipe_fds, 0) < 0 || pipe2(silent_pipe, 0) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) < 0)
		_exit(3);
	pthread_spin_init(&v->spin, PTHREAD_PROCESS_SHARED);
	pthread_spin_lock(&v->spin);
	fcntl(pipe_fds[1], F_SETFL, O_NONBLOCK);
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, event_fd, &e);
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGALRM, &sa, NULL);
	v->function[VICTIM_WORK] = (uintptr_t)work;
	v->function[VICTIM_HELD] = (uintptr_t)held;
	v->function[VICTIM_STUCK] = (uintptr_t)stuck;
	v->function[VICTIM_CRASH] = (uintptr_t)crash;
	v->function[VICTIM_EXIT] = (uintptr_t)end_thread;
	v->function[VICTIM_EXEC] = (uintptr_t)execute;
}

static const struct kind *find(const char *name)
{
	for (size_t i = 0; i < VICTIM_KINDS; i++)
		if (kinds[i].name && !strcmp(kinds[i].name, name))
			return &kinds[i];
	fprintf(stderr, "no kind %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	bool suspends = false, alarms = false;
	const struct kind *first;
	pid_t me = getpid();

	v = mmap(NULL, sizeof(*v), PROT_READ | PROT_WRITE, MAP_SHARED, VICTIM_FD, 0);
	if (v == MAP_FAILED || argc < 2)
		return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	prepare();
	for (int i = 1; i < argc; i++) {
		suspends |= !strcmp(argv[i], "sigsuspend");
		alarms |= !strcmp(argv[i], "storm") || !strcmp(argv[i], "alarm");
	}
	block_signals(false);
	if (fork() == 0)
		wake_all(me, suspends ? me : 0);
	for (int i = 2; i < argc; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, run, (void *)(uintptr_t)find(argv[i])))
			return 3;
	}
	first = find(argv[1]);
	block_signals(alarms);
	__atomic_store_n(&v->ready, 1, __ATOMIC_RELEASE);
	run((void *)(uintptr_t)first);
	return 0;
}
