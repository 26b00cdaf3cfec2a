/* SPDX-License-Identifier: MIT */
/* Messages to a process that is busy, with the time of this test. */
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/ipc/outbox.h"
#include "base/clock.h"
#include "base/fd.h"
#include "testlib.h"

#define MS UINT64_C(1000000)

static uint64_t now;

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

struct fixture {
	struct outbox f;
	int theirs; /* The other end; reads nothing by itself */
	uint32_t sent, received;
};

static void begin(struct fixture *x)
{
	int pair[2];

	*x = (struct fixture){ .f = OUTBOX_NULL, .theirs = -1 };
	now = 1000 * 1000 * MS;
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	x->f.sock = pair[0];
	x->theirs = pair[1];
}

static void finish(struct fixture *x)
{
	outbox_forget(&x->f);
	if (x->f.sock >= 0)
		close(x->f.sock);
	if (x->theirs >= 0)
		close(x->theirs);
}

#define FIXTURE(x) struct fixture x __attribute__((cleanup(finish))); begin(&x)

static int tell(struct fixture *x, int fd)
{
	uint32_t m[64] = { x->sent };
	int r = outbox_send(&x->f, m, sizeof(m), fd);

	x->sent += r == 0;
	return r;
}

/* Until the socket takes no more, and one message waits. */
static void make_busy(struct fixture *x)
{
	while (!x->f.first && x->sent < 100000)
		TEST_EQ_FATAL(tell(x, -1), 0);
	TEST_EQ_FATAL(x->f.n_waiting, 1);
}

/* @return how many messages were there; they come in their order.  @param ret_fd  Of the last that had one. */
static uint32_t receive(struct fixture *x, uint32_t max, int *ret_fd)
{
	int fds[FD_MESSAGE_MAX];
	uint32_t m[64], n = 0;
	size_t n_fds;

	for (; n < max && fd_recv(x->theirs, m, sizeof(m), fds, &n_fds) == sizeof(m); n++) {
		TEST_EQ(m[0], x->received);
		x->received++;
		if (n_fds && ret_fd)
			*ret_fd = fds[0];
	}
	return n;
}

static void messages_wait_for_their_turn(void)
{
	FIXTURE(x);
	int memory, got = -1;

	TEST_EQ(outbox_events(&x.f), POLLIN);
	make_busy(&x);
	TEST_EQ(outbox_events(&x.f), POLLIN | POLLOUT);
	TEST_EQ_FATAL(fd_memfd_sealed("test", "text", 4, &memory), 0);
	TEST_EQ(tell(&x, memory), 0);
	close(memory);
	TEST_EQ(tell(&x, -1), 0);
	TEST_EQ(x.f.n_waiting, 3);
	TEST_EQ(outbox_flush(&x.f), 0);
	TEST_EQ(x.f.n_waiting, 3);
	receive(&x, UINT32_MAX, NULL);
	TEST_EQ(outbox_flush(&x.f), 0);
	TEST_EQ(x.f.n_waiting, 0);
	TEST_EQ(x.f.give_up_at, 0);
	TEST_EQ(outbox_events(&x.f), POLLIN);
	TEST_EQ(receive(&x, UINT32_MAX, &got), 3);
	TEST_EQ(x.received, x.sent);
	TEST_EQ(fd_is_memfd(got), true);
	close(got);
}

/* The kernel's limit for this process, lowered for one message. */
static void without_a_free_descriptor_the_message_goes_alone(void)
{
	FIXTURE(x);
	struct rlimit all, none;
	int memory, got = -1, r;

	make_busy(&x);
	TEST_EQ_FATAL(fd_memfd_sealed("test", "text", 4, &memory), 0);
	TEST_EQ_FATAL(getrlimit(RLIMIT_NOFILE, &all), 0);
	none = (struct rlimit){ .rlim_cur = 3, .rlim_max = all.rlim_max };
	TEST_EQ_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
	r = tell(&x, memory);
	TEST_EQ_FATAL(setrlimit(RLIMIT_NOFILE, &all), 0);
	close(memory);
	TEST_EQ(r, 0);
	TEST_EQ(x.f.n_waiting, 2);
	receive(&x, UINT32_MAX, NULL);
	TEST_EQ(outbox_flush(&x.f), 0);
	TEST_EQ(receive(&x, UINT32_MAX, &got), 2);
	TEST_EQ(got, -1);
	TEST_EQ(x.received, x.sent);
}

static void what_is_forgotten_is_closed(void)
{
	FIXTURE(x);
	int ends[2];
	char c;

	make_busy(&x);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, ends), 0);
	TEST_EQ(tell(&x, ends[0]), 0);
	close(ends[0]);
	TEST_EQ(read(ends[1], &c, 1), -1);
	outbox_forget(&x.f);
	TEST_EQ(read(ends[1], &c, 1), 0);
	close(ends[1]);
}

static void one_that_takes_nothing_is_given_up(void)
{
	FIXTURE(x);

	make_busy(&x);
	now += 999 * MS;
	TEST_EQ(outbox_flush(&x.f), 0);
	TEST_EQ(tell(&x, -1), 0);
	now += MS;
	TEST_EQ(outbox_flush(&x.f), -EAGAIN);
	outbox_forget(&x.f);
	TEST_EQ(x.f.give_up_at, 0);
	TEST_EQ(outbox_flush(&x.f), 0);
}

/* A slow one is not a broken one. */
static void each_message_that_is_taken_gives_more_time(void)
{
	FIXTURE(x);
	size_t before;

	make_busy(&x);
	for (unsigned i = 0; i < 10000; i++)
		TEST_EQ_FATAL(x.f.n_waiting < 4096 ? tell(&x, -1) : 0, 0);
	while (x.f.n_waiting) {
		before = x.f.n_waiting;
		now += 999 * MS;
		TEST_EQ(receive(&x, 1000, NULL) > 0, true);
		TEST_EQ_FATAL(outbox_flush(&x.f), 0);
		TEST_EQ_FATAL(x.f.n_waiting < before, true);
	}
	receive(&x, UINT32_MAX, NULL);
	TEST_EQ(x.received, x.sent);
}

static void so_many_do_not_wait(void)
{
	FIXTURE(x);
	int r = 0;

	make_busy(&x);
	while (r == 0 && x.sent < 100000)
		r = tell(&x, -1);
	TEST_EQ(r, -ENOBUFS);
	TEST_EQ(x.f.n_waiting, 4096);
}

static void one_that_is_gone_is_known(void)
{
	FIXTURE(x);

	make_busy(&x);
	receive(&x, UINT32_MAX, NULL);
	close(TAKE_FD(x.theirs));
	TEST_EQ(outbox_flush(&x.f), -EPIPE);
	outbox_forget(&x.f);
	close(TAKE_FD(x.f.sock));
	TEST_EQ(tell(&x, -1), -EPIPE);
}

TEST_SUITE(agentd_outbox, TEST(messages_wait_for_their_turn),
	   TEST(without_a_free_descriptor_the_message_goes_alone), TEST(what_is_forgotten_is_closed),
	   TEST(one_that_takes_nothing_is_given_up),
	   TEST(each_message_that_is_taken_gives_more_time), TEST(so_many_do_not_wait),
	   TEST(one_that_is_gone_is_known));
