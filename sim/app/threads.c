/* SPDX-License-Identifier: MIT */
/* The threads of the program: the runtime's event thread, and threads that are in a debugger's way. */
#include "app.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "libkfdtrap/src/kfd_abi.h"

/* ---- the runtime's event thread ---- */

/* Take the reasons out of a queue's error word. */
static void queue_event(struct app *a, struct simapp_queue *q)
{
	struct kfdabi_save_area_header *h = (void *)(uintptr_t)q->area;
	uint64_t *word = (void *)(uintptr_t)h->err_payload_addr;
	uint64_t reasons = __atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL);

	if (!reasons)
		return;
	q->error_word = reasons;
	a->process.status->queue_faults++;
}

/* List the events to wait for: two fixed ones, then one for each queue. */
static uint32_t events_collect(struct app *a, struct kfdabi_event_data *e)
{
	uint32_t n = 0, n_queues = __atomic_load_n(&a->process.status->n_queues, __ATOMIC_ACQUIRE);

	memset(e, 0, (SIMAPP_QUEUES_MAX + 2) * sizeof(*e));
	e[n++].event_id = a->wake_event;
	e[n++].event_id = a->memory_event;
	for (uint32_t i = 0; i < n_queues; i++)
		if (a->process.status->queues[i].alive && a->process.status->queues[i].error_event)
			e[n++].event_id = a->process.status->queues[i].error_event;
	return n;
}

static void *events_run(void *arg)
{
	static struct kfdabi_event_data e[SIMAPP_QUEUES_MAX + 2];
	struct app *a = arg;

	for (;;) {
		struct kfdabi_wait_events_args w = {
			.events_ptr = (uint64_t)(uintptr_t)e,
			.num_events = events_collect(a, e),
			.timeout_ms = UINT32_MAX,
		};

		if (ioctl(a->kfd, (unsigned long)KFDABI_IOC_WAIT_EVENTS, &w) < 0) {
			if (errno != EINTR)
				return NULL; /* The device is gone. */
			continue;
		}
		if (e[1].u.memory.gpu_id) {
			a->process.status->memory_fault_va = e[1].u.memory.va;
			a->process.status->memory_faults++;
		}
		for (uint32_t i = 0; i < a->process.status->n_queues; i++)
			if (a->process.status->queues[i].alive && a->process.status->queues[i].area)
				queue_event(a, &a->process.status->queues[i]);
	}
}

int threads_start_events(struct app *a)
{
	return process_start_thread(events_run, a, false);
}

/* ---- threads that wait for work ---- */

/* Who waits, and for what.  It stays as long as the program, whose threads do. */
struct waiter {
	const struct app *a;
	struct app_await what;
	struct kfdabi_wait_events_args *args; /* A page of its own, to be hidden; NULL: on the stack, as libhsakmt's. */
	pid_t tid;
};

static void *wait_run(void *arg)
{
	struct waiter *w = arg;
	struct kfdabi_event_data e[APP_AWAIT_MAX];
	struct kfdabi_wait_events_args own, *args = w->args ? w->args : &own;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	for (;;) {
		memset(e, 0, sizeof(e));
		for (uint32_t i = 0; i < w->what.n; i++)
			e[i].event_id = w->what.events[i];
		*args = (struct kfdabi_wait_events_args){ .events_ptr = (uint64_t)(uintptr_t)e,
							  .num_events = w->what.n,
							  .wait_for_all = w->what.all,
							  .timeout_ms = UINT32_MAX };
		/* Hidden arguments are not written again: the driver could not tell its answer either. */
		if (ioctl(w->a->kfd, (unsigned long)KFDABI_IOC_WAIT_EVENTS, args) == 0 || errno != EINTR ||
		    w->what.hidden)
			return NULL; /* The work is done, or the device is gone. */
	}
}

/* Take the arguments away when the thread waits: the driver has its own copy by then. */
static int hide(struct waiter *w)
{
	char path[48], text[256];
	ssize_t n;

	for (int i = 0; i < 10000; i++, process_pause_us(1000)) {
		snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)__atomic_load_n(&w->tid, __ATOMIC_ACQUIRE));

		auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);

		n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		text[n < 0 ? 0 : n] = '\0';
		if (strstr(text, " 0xc0184b0c "))
			return mprotect(w->args, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE) < 0 ? -errno : 0;
	}
	return -ETIMEDOUT;
}

int threads_start_waiter(struct app *a, const struct app_await *what)
{
	struct waiter *w = malloc(sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	*w = (struct waiter){ .a = a, .what = *what };
	if (what->hidden)
		w->args = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	r = w->args == MAP_FAILED ? -ENOMEM : process_start_thread(wait_run, w, false);
	if (r < 0) {
		free(w);
		return r;
	}
	return what->hidden ? hide(w) : 0;
}

/* ---- sleepers ---- */

/* Wait for SIGUSR2, which is blocked.  @param arg  The thread's name, or NULL. */
static void *sleep_run(void *arg)
{
	sigset_t end;
	int sig;

	if (arg)
		prctl(PR_SET_NAME, (const char *)arg);
	free(arg);
	sigemptyset(&end);
	sigaddset(&end, SIGUSR2);
	sigwait(&end, &sig);
	return NULL;
}

int threads_start_sleepers(unsigned int n, const char *name)
{
	sigset_t end, before;
	int r = 0;

	sigemptyset(&end);
	sigaddset(&end, SIGUSR2);
	/* The signal is blocked before there is a thread, since it would end the program. */
	pthread_sigmask(SIG_BLOCK, &end, &before);
	for (unsigned int i = 0; i < n && !r; i++) {
		char *own = name ? strdup(name) : NULL;

		r = name && !own ? -ENOMEM : process_start_thread(sleep_run, own, false);
		if (r)
			free(own);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

/* ---- signals ---- */

/* How many signals, and the pause between two. */
struct storm {
	unsigned int n, pause_us;
};

static void *storm_run(void *arg)
{
	struct storm s = *(struct storm *)arg;

	free(arg);
	for (unsigned int i = 0; i < s.n; i++) {
		kill(getpid(), PROCESS_SIGNAL);
		if (s.pause_us)
			process_pause_us(s.pause_us);
	}
	return NULL;
}

int threads_start_signals(struct app *a, unsigned int n, unsigned int pause)
{
	struct storm *s = malloc(sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	process_count_signals(&a->process);
	*s = (struct storm){ n, pause };
	r = process_start_thread(storm_run, s, false);
	if (r)
		free(s);
	return r;
}
