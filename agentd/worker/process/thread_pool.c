/* SPDX-License-Identifier: MIT */
#include "agentd/worker/process/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* More threads would only wait for each other at the target's address space. */
#define MEMBERS_MAX 8u
/* A job needs far less, but AddressSanitizer makes frames larger. */
#define STACK_SIZE ((size_t)256 << 10)

struct thread_pool {
	pthread_mutex_t lock; /* Guards the members up to `ending`. */
	pthread_cond_t start, finish;
	void (*job)(void *ctx, size_t i);
	void *ctx;
	size_t next, n; /* The next job to hand out, and the number of jobs. */
	size_t n_busy; /* Threads that are in a job, the caller not counted. */
	bool ending;

	size_t n_members;
	pthread_t members[MEMBERS_MAX - 1];
};

/* Take jobs until there are none.  The lock is held on entry and on return, but not in a job. */
static void work_on(struct thread_pool *c)
{
	while (c->next < c->n) {
		size_t i = c->next++;

		pthread_mutex_unlock(&c->lock);
		c->job(c->ctx, i);
		pthread_mutex_lock(&c->lock);
	}
}

static void *member(void *arg)
{
	struct thread_pool *c = arg;

	pthread_mutex_lock(&c->lock);
	while (!c->ending) {
		if (c->next == c->n) {
			pthread_cond_wait(&c->start, &c->lock);
			continue;
		}
		c->n_busy++;
		work_on(c);
		if (--c->n_busy == 0)
			pthread_cond_signal(&c->finish);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static size_t processors(void)
{
	cpu_set_t set;

	/* The call fails where there are more than 1024 processors: they do not fit into a set. */
	return sched_getaffinity(0, sizeof(set), &set) < 0 ? MEMBERS_MAX : (size_t)CPU_COUNT(&set);
}

/* The new threads block all signals: those are for the thread that waits for them. */
static void add_members(struct thread_pool *c, size_t n)
{
	pthread_attr_t attr;
	sigset_t all, before;

	if (pthread_attr_init(&attr) != 0)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	while (c->n_members < n &&
	       pthread_create(&c->members[c->n_members], &attr, member, c) == 0)
		c->n_members++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
}

struct thread_pool *thread_pool_create(size_t n_max)
{
	size_t n = processors();
	struct thread_pool *c;

	n = n < n_max ? n : n_max;
	n = n < MEMBERS_MAX ? n : MEMBERS_MAX;
	c = n > 1 ? calloc(1, sizeof(*c)) : NULL;
	if (!c)
		return NULL;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->start, NULL);
	pthread_cond_init(&c->finish, NULL);
	add_members(c, n - 1);
	return c;
}

void thread_pool_destroy(struct thread_pool *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->ending = true;
	pthread_cond_broadcast(&c->start);
	pthread_mutex_unlock(&c->lock);
	for (size_t i = 0; i < c->n_members; i++)
		pthread_join(c->members[i], NULL);
	pthread_cond_destroy(&c->finish);
	pthread_cond_destroy(&c->start);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void thread_pool_run(struct thread_pool *c, void (*job)(void *ctx, size_t i), void *ctx, size_t n)
{
	/* A single job is done here: waking a thread for it would only cost time. */
	if (!c || n < 2) {
		for (size_t i = 0; i < n; i++)
			job(ctx, i);
		return;
	}
	pthread_mutex_lock(&c->lock);
	c->job = job;
	c->ctx = ctx;
	c->next = 0;
	c->n = n;
	pthread_cond_broadcast(&c->start);
	work_on(c);
	while (c->n_busy)
		pthread_cond_wait(&c->finish, &c->lock);
	pthread_mutex_unlock(&c->lock);
}
