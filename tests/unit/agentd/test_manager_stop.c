/* SPDX-License-Identifier: MIT */
/* Stopping while the judge is busy, with the time of this test. */
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/manager/manager.h"
#include "base/clock.h"
#include "base/fd.h"
#include "testlib.h"

#define MS UINT64_C(1000000)

static uint64_t now = 1000 * 1000 * MS;

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
	return deadline_ns > now ? (int)((deadline_ns - now) / MS) : 0;
}

/* One that takes a message now and then would else hold a stop for as long as messages wait. */
static void a_stop_does_not_wait_for_all_messages(void)
{
	struct manager *s = calloc(1, sizeof(*s));
	const struct ipc_note m = { .type = IPC_NOTE };
	int pair[2];

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	s->closers = (struct closers){ .gate_fd = -1, .uid = getuid(), .gid = getgid() };
	s->front.box.sock = pair[0];
	s->monitor.link.fd = s->rules.link.fd = -1;
	while (s->front.box.n_waiting < 2)
		TEST_EQ_FATAL(outbox_send(&s->front.box, &m, sizeof(m), -1), 0);
	s->stop_at = now + 5000 * MS;
	TEST_EQ(manager_stop_step(s), true);
	TEST_EQ(s->front.box.n_waiting, 2);
	now += 5000 * MS;
	TEST_EQ(manager_stop_step(s), false);
	TEST_EQ(s->front.box.n_waiting, 0);
	TEST_EQ(s->front.box.sock, -1);
	closers_deinit(&s->closers);
	close(pair[1]);
	free(s);
}

TEST_SUITE(manager_stop, TEST(a_stop_does_not_wait_for_all_messages));
