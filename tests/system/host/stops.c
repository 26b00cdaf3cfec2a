/* SPDX-License-Identifier: MIT */
/*
 * Threads that run, for test_stops.py.  A line is printed when all are at it.
 * usage: stops spin N      N threads that run below three calls of their own, and never wait
 *        stops signals N   the same, and another thread queues signals for them until there is a line on standard
 *                          input; each line is answered with how many were sent, and how many have arrived
 *        stops silent      one that runs on a stack whose outer part nobody ever brings; as nobody
 *        stops chains      one that runs below one chain of calls, then below another
 *        stops wait N      N that wait, in a function whose frame only the frame pointer finds
 *        stops fork        one that waits for the child of its vfork
 *        stops calls       one that enters epoll_wait() again and again, and counts how often it was
 *                          interrupted; a line is answered with that
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include WAITS_MACHINE /* waits_x86_64.h, waits_aarch64.h */

#define EXPORT __attribute__((visibility("default"), noipa))
EXPORT void spin_inner(void);
EXPORT void spin_middle(void);
EXPORT void *spin_outer(void *unused);

#define THREADS_MAX 256
#define STACK ((size_t)1 << 20)
#define NOBODY 65534

static atomic_long turns, sent, signals, interrupted;
static atomic_bool is_over;
static pthread_t threads[THREADS_MAX];

void spin_inner(void)
{
	for (;;)
		atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);
}

void spin_middle(void)
{
	char room[100];

	memset(room, (int)turns, sizeof(room));
	spin_inner();
	turns = room[turns & 63];
}

void *spin_outer(void *unused)
{
	spin_middle();
	turns++;
	return unused;
}

/* ------------------------------------------------------------------ two chains of calls ------ */

#define CHAIN(name, next)          \
	EXPORT void name(int left); \
	void name(int left)         \
	{                           \
		next;               \
		turns++;            \
	}

/* Functions and frames of one chain are never in the other. */
CHAIN(a_inner, for (volatile int i = 0; i < left; i++))
CHAIN(a_middle, volatile char room[200]; room[0] = 1; a_inner(left + room[0]))
CHAIN(a_outer, a_middle(left))
CHAIN(b_inner, for (volatile int i = 0; i < left; i++))
CHAIN(b_middle, b_inner(left))
CHAIN(b_outer, volatile char room[72]; room[0] = 1; b_middle(left + room[0]))

static void *alternate(void *unused)
{
	for (;;) {
		a_outer(1000);
		b_outer(1000);
	}
	return unused;
}

static void on_signal(int sig)
{
	(void)sig;
	signals++;
}

static void start(long n, void *(*run)(void *), void *stack)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	if (stack)
		pthread_attr_setstack(&attributes, stack, STACK);
	for (long i = 0; i < n && i < THREADS_MAX; i++)
		if (pthread_create(&threads[i], &attributes, run, NULL))
			exit(1);
}

/* A signal often comes while a thread is seized, before it is asked to stop. */
static void *send_signals(void *number)
{
	const union sigval nothing = { .sival_int = 0 };

	for (long i = 0, n = *(const long *)number; !is_over; i++) {
		sent += !pthread_sigqueue(threads[i % n], SIGRTMIN, nothing);
		usleep(20);
	}
	return NULL;
}

static void answer_lines(pthread_t *sender)
{
	char line[16];

	while (fgets(line, sizeof(line), stdin)) {
		if (sender && !atomic_exchange(&is_over, true))
			pthread_join(*sender, NULL);
		printf("%ld %ld\n", sender ? sent : interrupted, signals);
		fflush(stdout);
	}
}

/* ------------------------------------------------------------------ a stack that ends -------- */

/* The thread's own data are at the end of its stack, which is there; what lies between is not. */
static void *deep(void *unused)
{
	volatile char room[128 << 10];

	room[0] = 1;
	turns += room[0];
	spin_outer(unused);
	return unused;
}

/* Give the middle of a stack to userfaultfd, once the thread is below it. */
static int silence(int fd, char *stack)
{
	struct uffdio_api api = { .api = UFFD_API };
	char *middle = stack + STACK - (96 << 10);
	struct uffdio_register r = { .range = { (uintptr_t)middle, 16 << 10 }, .mode = UFFDIO_REGISTER_MODE_MISSING };

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) < 0 || ioctl(fd, UFFDIO_REGISTER, &r) < 0)
		return -1;
	return madvise(middle, 16 << 10, MADV_DONTNEED);
}

static int run_silent(void)
{
	/* Others may not keep the kernel waiting. */
	const int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
		return -1;
	start(1, deep, stack);
	while (!turns)
		usleep(1000);
	usleep(100000);
	prctl(PR_SET_DUMPABLE, 1);
	return silence(fd, stack);
}

/* ------------------------------------------------------------------ waits -------------------- */

static void *wait_by_hand(void *unused)
{
	volatile char *room = __builtin_alloca(100 + (size_t)(turns & 1));

	room[0] = 1;
	while (room[0])
		call_kernel(WAITS_FOR_EVER, NULL);
	return unused;
}

static void *wait_for_child(void *unused)
{
	pid_t child = vfork();

	if (child == 0) {
		pause();
		_exit(0);
	}
	waitpid(child, NULL, 0);
	return unused;
}

static void *poll_again(void *unused)
{
	const int fd = epoll_create1(0);
	struct epoll_event e;

	for (;; turns++)
		if (epoll_wait(fd, &e, 1, 1) < 0 && errno == EINTR)
			interrupted++;
	return unused;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	static long number;
	const long n = number = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
	const struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	pthread_t sender;
	int r = 0;

	sigaction(SIGRTMIN, &act, NULL);
	if (!strcmp(kind, "spin") || !strcmp(kind, "signals"))
		start(n, spin_outer, NULL);
	else if (!strcmp(kind, "silent"))
		r = run_silent();
	else if (!strcmp(kind, "chains"))
		start(n, alternate, NULL);
	else if (!strcmp(kind, "wait"))
		start(n, wait_by_hand, NULL);
	else if (!strcmp(kind, "fork"))
		start(n, wait_for_child, NULL);
	else if (!strcmp(kind, "calls"))
		start(n, poll_again, NULL);
	else
		return 2;
	puts(r < 0 ? "none" : "ready");
	fflush(stdout);
	if (!strcmp(kind, "signals") && pthread_create(&sender, NULL, send_signals, &number))
		return 1;
	answer_lines(!strcmp(kind, "signals") ? &sender : NULL);
	for (;;)
		pause();
}
