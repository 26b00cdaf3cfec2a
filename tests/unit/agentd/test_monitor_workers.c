/* SPDX-License-Identifier: MIT */
/* How much the monitor lets one child say before it looks at the others. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

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

TEST_SUITE(monitor_workers, TEST(a_child_has_its_turn), TEST(a_dead_child_has_its_last_word));
