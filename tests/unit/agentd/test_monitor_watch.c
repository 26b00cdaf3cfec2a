/* SPDX-License-Identifier: MIT */
/* Which processes are watched, and tried again, with the time and the workers of this test. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/rules/config/config.h"
#include "agentd/rules/engine/watch.h"
#include "base/clock.h"
#include "testlib.h"

#define MS UINT64_C(1000000)
#define LOOKER 1000u

/* What the test decides, and what it was asked. */
static struct {
	uint64_t now;
	int watch_result, look_result, n_watches, n_new, n_looks;
	uint32_t worker, let_go;
} k;

uint64_t clock_now_ns(void)
{
	return k.now;
}

uint64_t clock_wall_us(void)
{
	return k.now / 1000;
}

int clock_left_ms(uint64_t deadline_ns)
{
	return deadline_ns > k.now ? (int)((deadline_ns - k.now) / MS) : 0;
}

static int watch(void *ctx, pid_t pid, int pidfd, enum ipc_vendor vendor, const struct ipc_rule *rule,
		 struct ipc_watch *ret)
{
	k.n_watches++;
	k.n_new += !rule->again;
	if (k.watch_result < 0)
		return k.watch_result;
	*ret = (struct ipc_watch){ .type = IPC_WATCH, .worker = ++k.worker, .pid = (uint32_t)pid };
	return 0;
}

static void let_go(void *ctx, uint32_t worker)
{
	k.let_go = worker;
}

static int start_look(void *ctx, uint32_t *ret_worker)
{
	k.n_looks++;
	if (k.look_result < 0)
		return k.look_result;
	*ret_worker = LOOKER + (uint32_t)k.n_looks;
	return 0;
}

static int read_process(void *ctx, pid_t pid, int pidfd, struct rules_process *ret)
{
	*ret = (struct rules_process){ .uid = getuid(), .exe = "/usr/bin/test" };
	return kill(pid, 0) < 0 ? -ESRCH : 0;
}

static const struct rules_monitor monitor = {
	.look = start_look, .read = read_process, .watch = watch, .let_go = let_go
};

struct fixture {
	struct config config;
	struct rules rules;
	struct watches w;
	pid_t pid;
};

/* One process, and one rule, which has it. */
static void begin(struct fixture *f)
{
	static const char text[] = "[rule all]\nuser = *\n";
	const struct config_reading how = { .rules = &f->rules };
	char error[256];

	memset(f, 0, sizeof(*f));
	memset(&k, 0, sizeof(k));
	k.now = 1000 * 1000 * MS;
	config_init(&f->config);
	TEST_EQ_FATAL(config_parse(&f->config, &how, "t.conf", text, strlen(text), error, sizeof(error)), 0);
	watches_init(&f->w, &f->rules, f->config.kfd_device, &monitor, NULL);
	f->pid = fork();
	if (f->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	TEST_EQ_FATAL(f->pid > 0, true);
}

static void finish(struct fixture *f)
{
	if (f->pid > 0) {
		kill(f->pid, SIGKILL);
		waitpid(f->pid, NULL, 0);
	}
	watches_deinit(&f->w);
	rules_deinit(&f->rules);
}

#define FIXTURE(f) struct fixture f __attribute__((cleanup(finish))); begin(&f)

/* @return the next deadline, in milliseconds from now; 0: none. */
static uint64_t run(struct fixture *f, uint64_t after_ms)
{
	uint64_t next;

	k.now += after_ms * MS;
	next = watches_deadlines(&f->w);
	return next ? (next - k.now) / MS : 0;
}

static void look(struct fixture *f)
{
	int before = k.n_looks;

	watches_hint(&f->w);
	run(f, 500);
	TEST_EQ_FATAL(k.n_looks, before + 1);
}

static void found_once_watched_once(void)
{
	FIXTURE(f);

	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	TEST_EQ(k.n_watches, 1);
	TEST_EQ(run(&f, 0), 0);
}

/* Each look finds such processes again; no stranger has more than so many lines of the log. */
static void what_was_not_read_to_the_end_is_told_once(void)
{
	FIXTURE(f);
	pid_t others[WATCH_CUT_MAX];

	TEST_EQ(watches_cut(&f.w, f.pid), true);
	TEST_EQ(watches_cut(&f.w, f.pid), false);
	TEST_EQ(k.n_watches, 0);
	for (size_t i = 0; i < WATCH_CUT_MAX; i++) {
		others[i] = fork();
		if (others[i] == 0) {
			pause();
			_exit(0);
		}
		TEST_ROW_EQ(i, watches_cut(&f.w, others[i]), i + 1 < WATCH_CUT_MAX);
	}
	kill(others[0], SIGKILL);
	waitpid(others[0], NULL, 0);
	TEST_EQ(watches_cut(&f.w, others[WATCH_CUT_MAX - 1]), true);
	for (size_t i = 1; i < WATCH_CUT_MAX; i++) {
		kill(others[i], SIGKILL);
		waitpid(others[i], NULL, 0);
	}
	TEST_EQ(watches_cut(&f.w, f.pid), false);
}

/*
 * The look began before the worker died and does not see the process, say because it came too early
 * or was killed: the next try waits for nobody.
 */
static void a_look_under_way_does_not_take_the_next_try(void)
{
	FIXTURE(f);

	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	look(&f);
	watches_worker_ended(&f.w, k.worker, true);
	TEST_EQ(run(&f, 0), 300);
	watches_worker_ended(&f.w, LOOKER + 1, true);
	TEST_EQ(run(&f, 299), 1);
	TEST_EQ(k.n_watches, 1);
	run(&f, 1);
	TEST_EQ(k.n_watches, 2);
	TEST_EQ(k.n_looks, 1);
	TEST_EQ(run(&f, 0), 0);
}

/* The look finds it while its dead worker is not reaped: that says nothing, and takes nothing away. */
static void found_before_the_dead_worker_is_reaped(void)
{
	FIXTURE(f);

	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	look(&f);
	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	TEST_EQ(k.n_watches, 1);
	watches_worker_ended(&f.w, LOOKER + 1, true);
	watches_worker_ended(&f.w, k.worker, true);
	run(&f, 300);
	TEST_EQ(k.n_watches, 2);
	TEST_EQ(k.n_looks, 1);
}

/* Found after the worker was reaped: watched at once, and not once more when the time comes. */
static void found_after_the_dead_worker_was_reaped(void)
{
	FIXTURE(f);

	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	look(&f);
	watches_worker_ended(&f.w, k.worker, true);
	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	TEST_EQ(k.n_watches, 2);
	TEST_EQ(run(&f, 1000), 0);
	TEST_EQ(k.n_watches, 2);
}

/* What happens during a look is looked at after it. */
static void a_hint_during_a_look_begins_another(void)
{
	FIXTURE(f);

	look(&f);
	watches_hint(&f.w);
	TEST_EQ(run(&f, 1000), 0);
	TEST_EQ(k.n_looks, 1);
	watches_worker_ended(&f.w, LOOKER + 1, true);
	TEST_EQ(run(&f, 0), 20);
	TEST_EQ(run(&f, 20), 0);
	TEST_EQ(k.n_looks, 2);
}

/* It may have been the only one to see a process that was there before. */
static void a_look_that_failed_is_repeated(void)
{
	FIXTURE(f);

	look(&f);
	for (unsigned i = 0; i < 6; i++) {
		watches_worker_ended(&f.w, LOOKER + (uint32_t)k.n_looks, false);
		TEST_ROW_EQ(i, run(&f, 0), 300 << i);
		run(&f, 300 << i);
		TEST_ROW_EQ(i, k.n_looks, (int)i + 2);
	}
	watches_worker_ended(&f.w, LOOKER + (uint32_t)k.n_looks, false);
	TEST_EQ(run(&f, 0), 0);
	/* With one that did not fail it begins anew. */
	look(&f);
	watches_worker_ended(&f.w, LOOKER + (uint32_t)k.n_looks, true);
	TEST_EQ(run(&f, 0), 0);
	look(&f);
	watches_hint(&f.w);
	watches_worker_ended(&f.w, LOOKER + (uint32_t)k.n_looks, false);
	TEST_EQ(run(&f, 0), 200);
}

static void a_look_that_cannot_begin_is_repeated(void)
{
	FIXTURE(f);

	k.look_result = -EAGAIN;
	look(&f);
	TEST_EQ(run(&f, 0), 300);
	k.look_result = 0;
	TEST_EQ(run(&f, 300), 0);
	TEST_EQ(k.n_looks, 2);
	watches_worker_ended(&f.w, LOOKER + 2, true);
	TEST_EQ(run(&f, 0), 0);
}

static void a_reload_begins_anew(void)
{
	FIXTURE(f);
	size_t n = f.rules.n;

	look(&f);
	for (unsigned i = 0; i < 6; i++) {
		watches_worker_ended(&f.w, LOOKER + (uint32_t)k.n_looks, false);
		run(&f, 300 << i);
	}
	/* The look under way has not seen with the new rules: another one follows in any case. */
	watches_configure(&f.w);
	watches_worker_ended(&f.w, LOOKER + (uint32_t)k.n_looks, false);
	TEST_EQ(run(&f, 0), 200);
	run(&f, 200);
	watches_worker_ended(&f.w, LOOKER + (uint32_t)k.n_looks, false);
	TEST_EQ(run(&f, 0), 600);
	run(&f, 600);
	/* Without rules nobody looks. */
	f.rules.n = 0;
	watches_configure(&f.w);
	watches_worker_ended(&f.w, LOOKER + (uint32_t)k.n_looks, false);
	TEST_EQ(run(&f, 0), 0);
	f.rules.n = n;
}

/* Each try waits twice as long; after six only who finds it tries, and not often. */
static void failures_are_tried_less_and_less_often(void)
{
	FIXTURE(f);

	k.watch_result = -EBUSY;
	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	for (unsigned i = 0; i < 6; i++) {
		TEST_ROW_EQ(i, k.n_watches, (int)i + 1);
		TEST_ROW_EQ(i, run(&f, 0), 300 << i);
		run(&f, (300 << i) - 1);
		TEST_ROW_EQ(i, k.n_watches, (int)i + 1);
		run(&f, 1);
	}
	TEST_EQ(k.n_watches, 7);
	TEST_EQ(run(&f, 0), 0);
	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	TEST_EQ(k.n_watches, 7);
	run(&f, 60000);
	k.watch_result = 0;
	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	TEST_EQ(k.n_watches, 8);
	/* One that lasted was no failure. */
	run(&f, 60000);
	watches_worker_ended(&f.w, k.worker, true);
	TEST_EQ(run(&f, 0), 300);
}

/* Each try opens the device, and the look that follows finds the process: that is no reason to try. */
static void a_try_does_not_bring_about_the_next(void)
{
	FIXTURE(f);
	int tries = 0;

	k.watch_result = -EPERM;
	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	for (unsigned ms = 0; ms < 120000; ms += 250) {
		if (k.n_watches > tries)
			watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
		tries = k.n_watches;
		run(&f, 250);
		/* The second at once, five more at their times within 20 s, then one in each minute. */
		TEST_ROW_EQ(ms, k.n_watches <= (ms < 1750 ? 3 : ms < 15000 ? 6 : 9), true);
	}
	TEST_EQ(k.n_new, 1);
}

/* The same with workers that start and then cannot attach; a reload tells once more. */
static void workers_that_end_at_once_are_tried_less_and_less_often(void)
{
	FIXTURE(f);

	for (unsigned i = 0; i < 100; i++) {
		watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
		watches_worker_ended(&f.w, k.worker, true);
		run(&f, 200);
		TEST_ROW_EQ(i, k.n_watches <= (i < 8 ? 3 : i < 60 ? 6 : 8), true);
	}
	TEST_EQ(k.n_new, 1);
	watches_configure(&f.w);
	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	TEST_EQ(k.n_new, 2);
}

/* Nothing is tried for a process that is gone, nor for one that is released. */
static void the_dead_and_the_released_are_left_alone(void)
{
	FIXTURE(f);

	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	watches_release(&f.w, k.worker);
	TEST_EQ(k.let_go, k.worker);
	watches_worker_ended(&f.w, k.worker, true);
	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	TEST_EQ(run(&f, 1000), 0);
	TEST_EQ(k.n_watches, 1);
	watches_deinit(&f.w);
	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	TEST_EQ(k.n_watches, 2);
	kill(f.pid, SIGKILL);
	waitpid(f.pid, NULL, 0);
	watches_worker_ended(&f.w, k.worker, true);
	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	f.pid = 0;
	TEST_EQ(run(&f, 1000), 0);
	TEST_EQ(k.n_watches, 2);
	TEST_EQ(f.w.n, 0);
}

/* What tells of the release may come behind what tells that the worker has ended. */
static void a_release_holds_though_its_worker_has_ended(void)
{
	FIXTURE(f);

	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	k.let_go = 0;
	watches_worker_ended(&f.w, k.worker, true);
	watches_release(&f.w, k.worker);
	TEST_EQ(k.let_go, 0);
	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	TEST_EQ(run(&f, 1000), 0);
	TEST_EQ(k.n_watches, 1);
}

static void a_release_holds_though_the_next_worker_has_begun(void)
{
	FIXTURE(f);
	uint32_t first;

	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	first = k.worker;
	watches_worker_ended(&f.w, first, true);
	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	TEST_EQ(k.n_watches, 2);
	k.let_go = 0;
	watches_release(&f.w, first);
	TEST_EQ(k.let_go, k.worker);
	watches_worker_ended(&f.w, k.worker, true);
	watches_found(&f.w, f.pid, IPC_VENDOR_AMD);
	TEST_EQ(run(&f, 1000), 0);
	TEST_EQ(k.n_watches, 2);
}

TEST_SUITE(monitor_watch, TEST(found_once_watched_once),
	   TEST(what_was_not_read_to_the_end_is_told_once), TEST(a_look_under_way_does_not_take_the_next_try),
	   TEST(found_before_the_dead_worker_is_reaped), TEST(found_after_the_dead_worker_was_reaped),
	   TEST(a_hint_during_a_look_begins_another), TEST(a_look_that_failed_is_repeated),
	   TEST(a_look_that_cannot_begin_is_repeated), TEST(a_reload_begins_anew),
	   TEST(failures_are_tried_less_and_less_often), TEST(a_try_does_not_bring_about_the_next),
	   TEST(workers_that_end_at_once_are_tried_less_and_less_often),
	   TEST(the_dead_and_the_released_are_left_alone), TEST(a_release_holds_though_its_worker_has_ended),
	   TEST(a_release_holds_though_the_next_worker_has_begun));
