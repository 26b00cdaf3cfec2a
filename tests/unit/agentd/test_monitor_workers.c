/* SPDX-License-Identifier: MIT */
/* How much the monitor lets one child say before it looks at the others, and when it has targets looked at. */
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/ipc/child.h"
#include "agentd/ipc/link.h"
#include "agentd/monitor/workers.h"
#include "base/fd.h"
#include "testlib.h"

/* More than anybody may say at once. */
#define FOR_EVER  10000
/* What a dead child has said may be read to the end, but that end comes. */
#define WORDS_MAX 1024

/* A child that says the next thing as soon as one is heard: its socket is never empty. */
struct flood {
	struct workers workers;
	int said_fd; /* The child's end of its guard socket. */
	unsigned heard;
};

static void say(struct flood *f)
{
	const struct ipc_guard m = { .type = IPC_DISARM };

	TEST_EQ(send(f->said_fd, &m, sizeof(m), 0), sizeof(m));
}

static int hear(void *ctx, struct worker *k, const union ipc_child_message *m, size_t size, int *take_fd)
{
	struct flood *f = ctx;

	if (++f->heard < FOR_EVER)
		say(f);
	return 0;
}

static struct worker *begin(struct flood *f)
{
	static const struct config config = { 0 };
	static const struct programs programs;
	const struct workers_setup setup = { .config = &config, .programs = &programs, .records = "/nonexistent",
					     .ask = hear, .ctx = f };
	struct worker *k = calloc(1, sizeof(*k));
	int pair[2];

	CU_ASSERT_PTR_NOT_NULL_FATAL(k);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	workers_init(&f->workers, &setup);
	*k = (struct worker){ .kind = IPC_KIND_INSPECT, .pid = getpid(), .guard_fd = pair[0], .target_pidfd = -1,
			      .undo_fd = -1 };
	f->workers.first = k;
	f->said_fd = pair[1];
	f->heard = 0;
	say(f);
	return k;
}

static void a_child_has_its_turn(void)
{
	struct flood f;
	struct worker *k = begin(&f);

	workers_guard(&f.workers, k);
	TEST_EQ(f.heard, IPC_TURN);
	workers_guard(&f.workers, k);
	TEST_EQ(f.heard, 2 * IPC_TURN);
	workers_deinit(&f.workers);
	close(f.said_fd);
}

/* It has left children behind, which have its socket. */
static void a_dead_child_has_its_last_word(void)
{
	struct ipc_ended ended;
	struct flood f;
	const struct worker *k = begin(&f);

	CU_ASSERT_TRUE(workers_reaped(&f.workers, k->pid, 0, &ended));
	TEST_EQ(f.heard, WORDS_MAX);
	CU_ASSERT_PTR_NULL(f.workers.first);
	workers_deinit(&f.workers);
	close(f.said_fd);
}

/* What a session worker says by its exit status: somebody may wait in its target. */
#define LOOK (IPC_EXIT_LOOK << 8)

static struct worker *add_session(struct flood *f, pid_t pid)
{
	struct worker *k = calloc(1, sizeof(*k));

	CU_ASSERT_PTR_NOT_NULL_FATAL(k);
	*k = (struct worker){ .next = f->workers.first, .kind = IPC_KIND_SESSION, .pid = pid, .guard_fd = -1,
			      .target = getpid(), .target_pidfd = pidfd_open(getpid(), 0), .undo_fd = -1 };
	CU_ASSERT_TRUE_FATAL(k->target_pidfd >= 0);
	f->workers.first = k;
	return k;
}

static void end_session(struct flood *f, pid_t pid, int wait_status)
{
	struct ipc_ended ended;

	add_session(f, pid);
	CU_ASSERT_TRUE(workers_reaped(&f->workers, pid, wait_status, &ended));
}

static void init(struct flood *f)
{
	static const struct config config = { .kfd_device = "/nonexistent", .kfd_sysfs = "/nonexistent",
					      .cuda_library = "none" };
	static const struct programs programs = { .path = { [PROGRAM_HEIR] = (char *)"/bin/true" } };
	const struct workers_setup setup = { .config = &config, .programs = &programs, .records = "/nonexistent" };

	*f = (struct flood){ 0 };
	workers_init(&f->workers, &setup);
}

static void done(struct flood *f)
{
	workers_deinit(&f->workers);
	while (wait(NULL) > 0)
		;
}

/* Clients that come and go do not have it looked at each time, nor put it off for ever. */
static void one_look_is_for_all_who_ended(void)
{
	struct flood f;
	uint64_t at;

	init(&f);
	end_session(&f, 1, LOOK);
	at = workers_deadlines(&f.workers);
	CU_ASSERT_TRUE(at != 0);
	end_session(&f, 2, LOOK);
	TEST_EQ(workers_deadlines(&f.workers), at);
	CU_ASSERT_PTR_NULL(f.workers.rescues.first);
	f.workers.looks->look_at = 1;
	TEST_EQ(workers_deadlines(&f.workers), 0);
	CU_ASSERT_PTR_NOT_NULL(f.workers.rescues.first);
	CU_ASSERT_PTR_NULL(f.workers.looks);
	done(&f);
}

/* The next worker may fail to attach, and then nobody has looked. */
static void a_look_waits_for_the_next_session_and_is_not_lost(void)
{
	struct ipc_ended ended;
	struct flood f;

	init(&f);
	end_session(&f, 1, LOOK);
	f.workers.looks->look_at = 1;
	add_session(&f, 2);
	TEST_EQ(workers_deadlines(&f.workers), 0);
	CU_ASSERT_PTR_NULL(f.workers.rescues.first);
	CU_ASSERT_TRUE(workers_reaped(&f.workers, 2, 0, &ended));
	workers_deadlines(&f.workers);
	CU_ASSERT_PTR_NOT_NULL(f.workers.rescues.first);
	done(&f);
}

static void a_look_that_is_not_due_is_had_at_the_end(void)
{
	struct flood f;

	init(&f);
	end_session(&f, 1, LOOK);
	workers_look_now(&f.workers);
	CU_ASSERT_PTR_NOT_NULL(f.workers.rescues.first);
	done(&f);
}

static void who_asks_for_none_gets_none(void)
{
	struct flood f;

	init(&f);
	end_session(&f, 1, 0);
	TEST_EQ(workers_deadlines(&f.workers), 0);
	CU_ASSERT_PTR_NULL(f.workers.looks);
	CU_ASSERT_PTR_NULL(f.workers.rescues.first);
	done(&f);
}

TEST_SUITE(monitor_workers, TEST(a_child_has_its_turn), TEST(a_dead_child_has_its_last_word),
	   TEST(one_look_is_for_all_who_ended), TEST(a_look_waits_for_the_next_session_and_is_not_lost),
	   TEST(a_look_that_is_not_due_is_had_at_the_end), TEST(who_asks_for_none_gets_none));
