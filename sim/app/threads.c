/* SPDX-License-Identifier: MIT */
/*
 * The threads of the program: heartbeats that measure how long they stand still, the runtime's
 * event thread, and threads that are in a debugger's way.
 */
#include "app.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "libkfdtrap/src/kfd_abi.h"

static struct app *the_app; /* The signal handler needs it. */

static void pause_us(uint64_t us)
{
	struct timespec ts = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };

	nanosleep(&ts, NULL);
}

/* Start a detached thread with a small stack. */
static int thread_start(struct app *a, void *(*run)(void *), void *arg, bool realtime)
{
	struct sched_param sp = { .sched_priority = 1 };
	pthread_attr_t attr;
	pthread_t t;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 128 * 1024);
	if (realtime) {
		/* Without this the gaps would measure how busy the machine is. */
		pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
		pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
		pthread_attr_setschedparam(&attr, &sp);
	}
	r = pthread_create(&t, &attr, run, arg);
	pthread_attr_destroy(&attr);
	return -r;
}

/* ---- heartbeat ---- */

/* What a heartbeat thread works on. */
struct beat {
	struct app *app;
	struct simapp_thread *slot;
	bool feeds;
};

/* Count, and measure the longest time between two beats. */
static void *beat_run(void *arg)
{
	struct beat *b = arg;
	uint64_t last = clock_now_ns(), last_feed = 0;

	b->slot->tid = (int32_t)syscall(SYS_gettid);
	for (;;) {
		uint64_t now = clock_now_ns(), gap = now - last;

		if (gap > b->slot->max_gap_ns)
			b->slot->max_gap_ns = gap;
		last = now;
		b->slot->beats++;
		if (b->feeds && !b->app->idle && now - last_feed > 2000000) {
			device_queues_feed(b->app);
			last_feed = now;
		}
		if (b->app->beat_us)
			pause_us(b->app->beat_us);
	}
	return NULL;
}

int threads_start(struct app *a, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		uint32_t slot = a->status->n_threads;
		struct beat *b;
		int r;

		if (slot == SIMAPP_THREADS_MAX)
			return -ENOSPC;
		b = malloc(sizeof(*b)); /* It lives as long as the thread, which is for ever. */
		if (!b)
			return -ENOMEM;
		*b = (struct beat){ a, &a->status->threads[slot], slot == 0 };
		r = thread_start(a, beat_run, b, a->realtime);
		if (r == -EPERM)
			r = thread_start(a, beat_run, b, false);
		if (r) {
			free(b);
			return r;
		}
		a->status->n_threads++;
	}
	return 0;
}

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
	a->status->queue_faults++;
}

/* List the events to wait for: two fixed ones, then one for each queue. */
static uint32_t events_collect(struct app *a, struct kfdabi_event_data *e)
{
	uint32_t n = 0, n_queues = __atomic_load_n(&a->status->n_queues, __ATOMIC_ACQUIRE);

	memset(e, 0, (SIMAPP_QUEUES_MAX + 2) * sizeof(*e));
	e[n++].event_id = a->wake_event;
	e[n++].event_id = a->memory_event;
	for (uint32_t i = 0; i < n_queues; i++)
		if (a->status->queues[i].alive && a->status->queues[i].error_event)
			e[n++].event_id = a->status->queues[i].error_event;
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
			a->status->memory_fault_va = e[1].u.memory.va;
			a->status->memory_faults++;
		}
		for (uint32_t i = 0; i < a->status->n_queues; i++)
			if (a->status->queues[i].alive && a->status->queues[i].area)
				queue_event(a, &a->status->queues[i]);
	}
}

int threads_start_events(struct app *a)
{
	return thread_start(a, events_run, a, false);
}

/* ---- sleepers ---- */

/* Wait for SIGUSR2, which is blocked. */
static void *sleep_run(void *arg)
{
	sigset_t end;
	int sig;

	sigemptyset(&end);
	sigaddset(&end, SIGUSR2);
	sigwait(&end, &sig);
	return NULL;
}

int threads_start_sleepers(unsigned int n)
{
	sigset_t end, before;
	int r = 0;

	sigemptyset(&end);
	sigaddset(&end, SIGUSR2);
	/* The signal is blocked before there is a thread, since it would end the program. */
	pthread_sigmask(SIG_BLOCK, &end, &before);
	for (unsigned int i = 0; i < n && !r; i++)
		r = thread_start(NULL, sleep_run, NULL, false);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

/* ---- signals ---- */

static void on_signal(int sig)
{
	__atomic_add_fetch(&the_app->status->signals, 1, __ATOMIC_RELAXED);
}

/* How many signals, and the pause between two. */
struct storm {
	unsigned int n, pause_us;
};

static void *storm_run(void *arg)
{
	struct storm s = *(struct storm *)arg;

	free(arg);
	for (unsigned int i = 0; i < s.n; i++) {
		kill(getpid(), SIGRTMIN + 3);
		if (s.pause_us)
			pause_us(s.pause_us);
	}
	return NULL;
}

int threads_start_signals(struct app *a, unsigned int n, unsigned int pause)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct storm *s = malloc(sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	the_app = a;
	sigaction(SIGRTMIN + 3, &sa, NULL);
	*s = (struct storm){ n, pause };
	r = thread_start(a, storm_run, s, false);
	if (r)
		free(s);
	return r;
}
