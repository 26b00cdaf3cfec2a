/* SPDX-License-Identifier: MIT */
#include "agentd/worker/target/relay.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"

/* How often the thread that waits has a look at the one that reads. */
#define TICK_NS UINT64_C(5000000)
/* A read is over after this time even if it does not sleep. */
#define READ_MAX_NS UINT64_C(2000000000)
/* A look needs far less, but AddressSanitizer makes frames larger. */
#define STACK_SIZE ((size_t)256 << 10)

/* Shared by the threads, the last of which frees it. */
struct relay {
	pthread_mutex_t lock;
	pthread_cond_t over;
	struct relay_work work;
	size_t next, n;
	uint32_t users;
	const struct relay_turn *turn; /* Whose it is; NULL: all is done. */
};

struct relay_turn {
	struct relay *relay;
	size_t i;
	pid_t tid;
	bool is_out;   /* Between relay_leave() and relay_enter(), */
	uint64_t left; /* since then. */
};

/* Turns that have lost their place, and are not over. */
static atomic_uint n_behind;

bool relay_is_stuck(void)
{
	return atomic_load(&n_behind) > 0;
}

/* With the lock held, which is released. */
static void put(struct relay *r)
{
	const bool is_last = --r->users == 0;

	pthread_mutex_unlock(&r->lock);
	if (!is_last)
		return;
	pthread_cond_destroy(&r->over);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

void relay_leave(struct relay_turn *turn)
{
	turn->is_out = true;
	turn->left = clock_now_ns();
	pthread_mutex_unlock(&turn->relay->lock);
}

bool relay_enter(struct relay_turn *turn)
{
	pthread_mutex_lock(&turn->relay->lock);
	turn->is_out = false;
	return turn->relay->turn == turn;
}

static void *run(void *arg)
{
	struct relay_turn *turn = arg;
	struct relay *r = turn->relay;

	pthread_mutex_lock(&r->lock);
	turn->tid = gettid();
	while (r->turn == turn && r->next < r->n) {
		turn->i = r->next++;
		r->work.look(r->work.ctx, turn, turn->i);
	}
	if (r->turn == turn) {
		r->turn = NULL;
		pthread_cond_signal(&r->over);
	} else {
		atomic_fetch_sub(&n_behind, 1);
	}
	put(r);
	free(turn);
	return NULL;
}

/* The new thread blocks all signals: those are for the thread that waits for it. */
static int start(struct relay *r)
{
	struct relay_turn *turn = calloc(1, sizeof(*turn));
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t thread;
	int e;

	if (!turn)
		return -ENOMEM;
	turn->relay = r;
	e = pthread_attr_init(&attr);
	if (!e) {
		pthread_attr_setstacksize(&attr, STACK_SIZE);
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		e = pthread_create(&thread, &attr, run, turn);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		pthread_attr_destroy(&attr);
	}
	if (e) {
		free(turn);
		return -e;
	}
	/* It waits for the lock, which is held here. */
	r->turn = turn;
	r->users++;
	return 0;
}

/* On a busy machine a read takes long without being stuck: its thread runs, or waits for a processor. */
static bool sleeps(pid_t tid)
{
	auto_free char *text = NULL;
	const char *paren;
	char path[64];
	size_t size;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	if (!tid || fd_read_file(path, 4096, &text, &size) < 0)
		return tid;
	paren = strrchr(text, ')');
	return !paren || strncmp(paren, ") R", 3) != 0;
}

static void wait_a_tick(struct relay *r)
{
	const uint64_t until = clock_now_ns() + TICK_NS;
	const struct timespec t = { .tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000) };

	pthread_cond_timedwait(&r->over, &r->lock, &t);
}

/* Wait until all is done.  @return the turn that does not come back, and for how long; NULL: there is none. */
static const struct relay_turn *wait_for(struct relay *r, uint64_t patience_ns, uint64_t *ret_slept_ns)
{
	uint64_t since = 0, slept = 0;

	while (r->turn) {
		const struct relay_turn *turn = r->turn;

		wait_a_tick(r);
		if (r->turn != turn || !turn->is_out || turn->left != since) {
			since = r->turn == turn && turn->is_out ? turn->left : 0;
			slept = 0;
			continue;
		}
		if (sleeps(turn->tid))
			slept += TICK_NS;
		*ret_slept_ns = slept;
		if (slept >= patience_ns || clock_now_ns() - since >= READ_MAX_NS)
			return turn;
	}
	return NULL;
}

static uint64_t patience_of(const struct relay_budget *b)
{
	const bool is_short = b->waited_ns >= RELAY_WAIT_MS * UINT64_C(1000000);

	return (is_short ? RELAY_SHORT_MS : RELAY_PATIENCE_MS) * UINT64_C(1000000);
}

static void lose(struct relay *r, struct relay_budget *b, const struct relay_turn *turn, uint64_t slept_ns)
{
	b->waited_ns += slept_ns;
	b->stuck++;
	r->turn = NULL;
	atomic_fetch_add(&n_behind, 1);
	r->work.lost(r->work.ctx, turn->i, true);
}

static struct relay *create(const struct relay_work *work, size_t n)
{
	struct relay *r = calloc(1, sizeof(*r));
	pthread_condattr_t attributes;

	if (!r)
		return NULL;
	r->work = *work;
	r->n = n;
	r->users = 1;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&r->over, &attributes);
	pthread_condattr_destroy(&attributes);
	return r;
}

void relay_run(struct relay_budget *b, const struct relay_work *work, size_t n)
{
	struct relay *r = n ? create(work, n) : NULL;
	uint64_t slept_ns = 0;
	size_t next = 0;

	b->no_thread |= n && !r;
	if (r) {
		pthread_mutex_lock(&r->lock);
		while (r->next < r->n && b->stuck < RELAY_STUCK_MAX) {
			const struct relay_turn *turn;

			if (start(r) < 0) {
				b->no_thread = true;
				break;
			}
			turn = wait_for(r, patience_of(b), &slept_ns);
			if (turn)
				lose(r, b, turn, slept_ns);
		}
		next = r->next;
		put(r);
	}
	while (next < n)
		work->lost(work->ctx, next++, false);
}
