/* SPDX-License-Identifier: MIT */
/* A rules process that says nothing, with the time of this test. */
#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/manager/rules_child.h"
#include "base/clock.h"
#include "testlib.h"

#define MS UINT64_C(1000000)

/* While `quick`, a wait takes a millisecond of this machine and a second of that time. */
static uint64_t now;
static bool quick;

uint64_t clock_now_ns(void)
{
	return now;
}

uint64_t clock_wall_us(void)
{
	return now / 1000;
}

int clock_left_ms(uint64_t deadline_ns)
{
	if (quick)
		now += 1000 * MS;
	if (deadline_ns <= now)
		return 0;
	return quick ? 1 : (int)((deadline_ns - now) / MS);
}

static void begin(struct rules_child *p)
{
	static char name[] = "gpu-agentd", seconds[] = "1000";
	static char *argv[] = { name, seconds, NULL };

	now = 1000 * 1000 * MS;
	rules_child_init(p, "/bin/sleep", argv);
	TEST_EQ_FATAL(rules_child_start(p), 0);
}

static void finish(struct rules_child *p)
{
	rules_child_kill(p);
	if (p->pid)
		waitpid(p->pid, NULL, 0);
	rules_child_deinit(p);
}

#define FIXTURE(p) struct rules_child p __attribute__((cleanup(finish))); begin(&p)

/* @return the signal that has ended it, which comes in any case; 0: it lives. */
static int look(struct rules_child *p)
{
	bool started;
	int status;

	rules_child_deadlines(p, &started);
	TEST_EQ(started, false);
	if (p->link.fd >= 0)
		return 0;
	TEST_EQ_FATAL(waitpid(p->pid, &status, 0), p->pid);
	rules_child_ended(p, status, false);
	return WTERMSIG(status);
}

static void each_answer_has_its_time(void)
{
	FIXTURE(p);

	now += 59999 * MS;
	TEST_EQ(look(&p), 0);
	rules_child_answered(&p, -1);
	now += 60000 * MS;
	TEST_EQ(look(&p), 0);
	TEST_EQ(rules_child_ask_idle(&p), 0);
	now += 9999 * MS;
	TEST_EQ(look(&p), 0);
	now += MS;
	TEST_EQ(look(&p), SIGKILL);
	TEST_EQ(p.pid, 0);
	TEST_EQ(p.idle_by, 0);
	CU_ASSERT_TRUE(p.restart_at > now);
}

/* Between its end and its reaping: the next process reads the file, at once. */
static void a_reload_outlives_the_process(void)
{
	FIXTURE(p);
	bool started;

	rules_child_answered(&p, -1);
	rules_child_reload(&p);
	TEST_EQ(p.reloads, 1);
	TEST_EQ(p.unsent, 0);
	rules_child_kill(&p);
	rules_child_reload(&p);
	TEST_EQ(p.reloads, 2);
	TEST_EQ(p.unsent, 1);
	TEST_EQ(look(&p), SIGKILL);
	/* The one that it was told is over, as the monitor says. */
	p.reloads = p.unsent;
	TEST_EQ(p.restart_at, now);
	rules_child_deadlines(&p, &started);
	TEST_EQ(started, true);
	TEST_EQ(p.reloads, 1);
	TEST_EQ(p.unsent, 0);
}

/* ------------------------------------------------------------------ the first one ------------ */

static int signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	CU_ASSERT_FATAL(fd >= 0);
	return fd;
}

static int take_nothing(void *ctx)
{
	int *n = ctx;

	(*n)++;
	return -EAGAIN;
}

static int take_at_once(void *ctx)
{
	return *(int *)ctx;
}

static void the_first_one_has_a_minute(void)
{
	FIXTURE(p);
	auto_close int fd = signals();
	uint64_t begun = now;
	int n = 0;

	quick = true;
	/* Whoever asks for reloads meanwhile gives it no more time. */
	kill(getpid(), SIGHUP);
	TEST_EQ(rules_child_await(&p, fd, take_nothing, &n), -ETIMEDOUT);
	quick = false;
	TEST_EQ((now - begun) / MS, 60000);
	CU_ASSERT(n > 30);
	TEST_EQ(p.reloads, 1);
	TEST_EQ(kill(p.pid, 0), 0);
}

static void the_first_one_ends_the_wait(void)
{
	FIXTURE(p);
	auto_close int fd = signals();
	int r = 0;

	quick = true;
	TEST_EQ(rules_child_await(&p, fd, take_at_once, &r), 0);
	r = -EPROTO;
	TEST_EQ(rules_child_await(&p, fd, take_at_once, &r), -EPROTO);
	kill(getpid(), SIGTERM);
	r = 0;
	TEST_EQ(rules_child_await(&p, fd, take_at_once, &r), -EINTR);
	quick = false;
}

/* Its program is of another build. */
static void one_that_stays_ended_is_not_started(void)
{
	FIXTURE(p);
	bool started;

	rules_child_answered(&p, -1);
	rules_child_kill(&p);
	TEST_EQ(look(&p), SIGKILL);
	CU_ASSERT_FALSE(rules_child_is_due(&p));
	now += 60000 * MS;
	CU_ASSERT_TRUE(rules_child_is_due(&p));
	rules_child_stay_ended(&p);
	rules_child_reload(&p);
	now += 60000 * MS;
	rules_child_deadlines(&p, &started);
	TEST_EQ(started, false);
	TEST_EQ(p.pid, 0);
}

TEST_SUITE(manager_rules_child, TEST(each_answer_has_its_time), TEST(a_reload_outlives_the_process),
	   TEST(the_first_one_has_a_minute), TEST(the_first_one_ends_the_wait),
	   TEST(one_that_stays_ended_is_not_started));
