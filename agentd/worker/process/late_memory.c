/* SPDX-License-Identifier: MIT */
#include "agentd/worker/process/late_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STACK_SIZE ((size_t)128 << 10)

enum state { IDLE, ASKED, ANSWERED };

struct late_memory {
	struct memory memory; /* With a descriptor of its own: the session may end while the thread hangs. */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock.  While it is ASKED the thread alone uses the rest. */
	enum state state;
	bool is_left; /* Nobody waits for the answer any more. */
	bool is_over;
	uint64_t address;
	uint8_t *buf;
	size_t size, capacity;
	int result;
};

static void release(struct late_memory *l)
{
	memory_close(&l->memory);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	free(l->buf);
	free(l);
}

static void *run(void *ctx)
{
	struct late_memory *l = ctx;
	bool is_left;

	pthread_mutex_lock(&l->lock);
	while (!l->is_over) {
		if (l->state != ASKED) {
			pthread_cond_wait(&l->changed, &l->lock);
			continue;
		}
		pthread_mutex_unlock(&l->lock);
		l->result = memory_read_exact(&l->memory, l->address, l->buf, l->size);
		pthread_mutex_lock(&l->lock);
		l->state = l->is_left ? IDLE : ANSWERED;
		pthread_cond_broadcast(&l->changed);
	}
	is_left = l->is_left;
	pthread_mutex_unlock(&l->lock);
	/* Who ended the reader did not wait for this. */
	if (is_left)
		release(l);
	return NULL;
}

/* The new thread blocks all signals: those are for the thread that waits for them. */
static int start(struct late_memory *l)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int r = pthread_attr_init(&attr);

	if (r)
		return -r;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	r = pthread_create(&l->thread, &attr, run, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

struct late_memory *late_memory_create(const struct memory *m)
{
	struct late_memory *l = calloc(1, sizeof(*l));
	pthread_condattr_t attributes;

	if (!l)
		return NULL;
	l->memory = *m;
	l->memory.fd = fcntl(m->fd, F_DUPFD_CLOEXEC, 3);
	if (l->memory.fd < 0) {
		free(l);
		return NULL;
	}
	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&l->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	if (start(l) < 0) {
		release(l);
		return NULL;
	}
	return l;
}

void late_memory_destroy(struct late_memory *l)
{
	bool hangs;

	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	hangs = l->state == ASKED;
	/* A read that was given up may have come since: then the thread is joined, and frees nothing itself. */
	l->is_left = hangs;
	l->is_over = true;
	pthread_cond_broadcast(&l->changed);
	if (hangs)
		pthread_detach(l->thread);
	pthread_mutex_unlock(&l->lock);
	if (hangs)
		return;
	pthread_join(l->thread, NULL);
	release(l);
}

static int ask(struct late_memory *l, uint64_t address, size_t size)
{
	if (size > l->capacity) {
		uint8_t *buf = realloc(l->buf, size);

		if (!buf)
			return -ENOMEM;
		l->buf = buf;
		l->capacity = size;
	}
	l->address = address;
	l->size = size;
	l->is_left = false;
	l->state = ASKED;
	pthread_cond_broadcast(&l->changed);
	return 0;
}

int late_memory_read(struct late_memory *l, uint64_t address, void *buf, size_t size, uint64_t deadline_ns)
{
	const struct timespec late = { .tv_sec = (time_t)(deadline_ns / 1000000000),
				       .tv_nsec = (long)(deadline_ns % 1000000000) };
	int r, e = 0;

	pthread_mutex_lock(&l->lock);
	r = l->state == ASKED ? -ETIMEDOUT : ask(l, address, size);
	while (r == 0 && l->state == ASKED && e == 0)
		e = pthread_cond_timedwait(&l->changed, &l->lock, &late);
	if (r == 0 && l->state == ASKED) {
		l->is_left = true;
		r = -ETIMEDOUT;
	} else if (r == 0) {
		r = l->result;
		l->state = IDLE;
		if (r == 0)
			memcpy(buf, l->buf, size);
	}
	pthread_mutex_unlock(&l->lock);
	return r;
}
