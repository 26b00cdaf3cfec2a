/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agentd/sandbox.h"
#include "agentd/worker/process/thread_pool.h"
#include "testlib.h"

#define PATIENCE_S 60
#define N_MAX	   1000u

static bool has_processors(int n)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) >= n;
}

static void count(void *ctx, size_t i)
{
	atomic_uint *counts = ctx;

	atomic_fetch_add(&counts[i], 1);
}

static bool does_each_once(struct thread_pool *c, size_t n)
{
	static atomic_uint counts[N_MAX + 1];
	bool once = true;

	for (size_t i = 0; i <= N_MAX; i++)
		atomic_store(&counts[i], 0);
	thread_pool_run(c, count, counts, n);
	for (size_t i = 0; i <= N_MAX; i++)
		once = once && atomic_load(&counts[i]) == (i < n);
	return once;
}

static void each_job_is_done_once(void)
{
	static const size_t sizes[] = { 0, 1, 2, 7, N_MAX };
	static const size_t crews[] = { 0, 1, 2, 100 };

	for (size_t k = 0; k < TEST_COUNT(crews); k++) {
		struct thread_pool *c = thread_pool_create(crews[k]);

		TEST_ROW_EQ(k, c && crews[k] < 2, false);
		for (size_t round = 0; round < 200; round++)
			for (size_t i = 0; i < TEST_COUNT(sizes); i++)
				TEST_ROW_EQ(i, does_each_once(c, sizes[i]), true);
		thread_pool_destroy(c);
	}
}

/* The jobs of two threads meet, or the deadline passes. */
struct meeting {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	unsigned there;
	bool members_hear_signals;
	pthread_t caller;
};

static void meet(void *ctx, size_t i)
{
	struct meeting *m = ctx;
	struct timespec until;
	sigset_t blocked;
	int r = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	pthread_mutex_lock(&m->lock);
	if (!pthread_equal(pthread_self(), m->caller) && !sigismember(&blocked, SIGTERM))
		m->members_hear_signals = true;
	m->there++;
	pthread_cond_broadcast(&m->cond);
	while (m->there < 2 && r == 0)
		r = pthread_cond_timedwait(&m->cond, &m->lock, &until);
	pthread_mutex_unlock(&m->lock);
}

static bool two_meet(struct thread_pool *c)
{
	struct meeting m = { .lock = PTHREAD_MUTEX_INITIALIZER,
			     .cond = PTHREAD_COND_INITIALIZER,
			     .caller = pthread_self() };
	time_t start = time(NULL);

	thread_pool_run(c, meet, &m, 2);
	return m.there == 2 && !m.members_hear_signals && time(NULL) - start < PATIENCE_S;
}

static void jobs_run_side_by_side(void)
{
	struct thread_pool *c;

	if (!has_processors(2)) {
		test_skip("one processor");
		return;
	}
	c = thread_pool_create(2);
	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	for (int i = 0; i < 100; i++)
		TEST_EQ(two_meet(c), true);
	thread_pool_destroy(c);
}

static void one_processor_has_no_crew(void)
{
	cpu_set_t before, one;
	int first = 0;

	TEST_EQ_FATAL(sched_getaffinity(0, sizeof(before), &before), 0);
	while (!CPU_ISSET(first, &before))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	TEST_EQ_FATAL(sched_setaffinity(0, sizeof(one), &one), 0);
	CU_ASSERT_PTR_NULL(thread_pool_create(8));
	TEST_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

/* @return what @check returned, in a process of its own. */
static int in_child(int (*check)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(check());
	CU_ASSERT_FATAL(pid > 0);
	TEST_EQ_FATAL(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Sanitizers allow themselves more. */
#ifdef __SANITIZE_ADDRESS__
#define PROCESSES_ARE_FORBIDDEN 0
#else
#define PROCESSES_ARE_FORBIDDEN 1
#endif

static int in_the_workers_sandbox(void)
{
	struct thread_pool *c;
	bool met;
	pid_t pid;

	if (sandbox_worker(false) < 0)
		return 2;
	c = thread_pool_create(2);
	met = !has_processors(2) || (c && two_meet(c));
	thread_pool_destroy(c);
	pid = PROCESSES_ARE_FORBIDDEN ? fork() : -1;
	if (pid == 0)
		_exit(0);
	return !met ? 3 : pid > 0 ? 4 : 0;
}

static int where_threads_are_forbidden(void)
{
	struct thread_pool *c;

	if (sandbox_front() < 0)
		return 2;
	c = thread_pool_create(2);
	return does_each_once(c, 7) ? 0 : 3;
}

static void the_sandbox_allows_threads_alone(void)
{
	TEST_EQ(in_child(in_the_workers_sandbox), 0);
}

static void without_threads_the_caller_does_it(void)
{
	TEST_EQ(in_child(where_threads_are_forbidden), 0);
}

TEST_SUITE(worker_thread_pool, TEST(each_job_is_done_once), TEST(jobs_run_side_by_side),
	   TEST(one_processor_has_no_crew), TEST(the_sandbox_allows_threads_alone),
	   TEST(without_threads_the_caller_does_it));
