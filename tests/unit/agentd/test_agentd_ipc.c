/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/ipc/frontend_worker.h"
#include "agentd/ipc/link.h"
#include "agentd/ipc/monitor_worker.h"
#include "base/fd.h"
#include "testlib.h"

static struct ipc_link a, b;

static void open_links(void)
{
	int pair[2];

	TEST_EQ_FATAL(fd_socketpair(04000 /* SOCK_NONBLOCK */, pair), 0);
	ipc_link_init(&a, pair[0]);
	ipc_link_init(&b, pair[1]);
}

static void close_links(void)
{
	ipc_link_deinit(&a);
	ipc_link_deinit(&b);
}

/* Short texts travel inside the message, long ones as a sealed memory file; both arrive whole. */
static void texts_of_every_size_arrive(void)
{
	static const size_t sizes[] = { 0, 1, IPC_INLINE_MAX, IPC_INLINE_MAX + 1, 3 << 20 };
	auto_free char *text = malloc(3 << 20);

	memset(text, 'x', 3 << 20);
	open_links();
	for (size_t i = 0; i < TEST_COUNT(sizes); i++) {
		struct ipc_head head = { .type = IPC_REPLY, .id = i, .size = sizes[i] };
		struct ipc_message m;

		TEST_ROW_EQ(i, ipc_link_send(&a, &head, text), 0);
		TEST_ROW_EQ(i, ipc_link_recv(&b, &m), 1);
		TEST_ROW_EQ(i, m.head.id, i);
		TEST_ROW_EQ(i, m.head.size, sizes[i]);
		TEST_ROW_EQ(i, memcmp(m.text, text, sizes[i]), 0);
		ipc_message_deinit(&m);
	}
	close_links();
}

/* A peer that does not read makes messages queue up to a limit; they keep their order. */
static void slow_peer_gets_everything_in_order(void)
{
	struct ipc_head head = { .type = IPC_REPLY, .size = 1000 };
	char text[1000] = { 0 };
	struct ipc_message m;
	uint64_t sent = 0, got = 0;
	int r;

	open_links();
	while ((r = ipc_link_send(&a, &head, text)) == 0)
		head.id = ++sent;
	TEST_EQ(r, -ENOBUFS);
	CU_ASSERT_TRUE(ipc_link_has_queued(&a));
	CU_ASSERT_TRUE(a.queued_bytes <= IPC_QUEUE_MAX + 2000);
	for (;;) {
		r = ipc_link_recv(&b, &m);
		if (r == -EAGAIN && ipc_link_has_queued(&a)) {
			TEST_EQ_FATAL(ipc_link_flush(&a), 0);
			continue;
		}
		if (r != 1)
			break;
		if (m.head.id != got)
			CU_FAIL("message out of order");
		got++;
		ipc_message_deinit(&m);
	}
	TEST_EQ(r, -EAGAIN);
	TEST_EQ(got, sent);
	close_links();
}

/* Lies about the size, missing or unsealed memory files: refused, and nothing leaks. */
static void malformed_messages_are_refused(void)
{
	struct {
		struct ipc_head head;
		char text[8];
	} raw = { .head = { .type = IPC_CALL, .size = 9 } };
	struct ipc_message m;
	int fd;

	open_links();
	fd_send(a.fd, &raw, sizeof(raw), NULL, 0);
	TEST_EQ(ipc_link_recv(&b, &m), -EPROTO);
	fd_send(a.fd, &raw, sizeof(raw.head) - 1, NULL, 0);
	TEST_EQ(ipc_link_recv(&b, &m), -EPROTO);
	raw.head.size = IPC_INLINE_MAX + 1;
	fd_send(a.fd, &raw, sizeof(raw.head), NULL, 0);
	TEST_EQ(ipc_link_recv(&b, &m), -EPROTO);
	TEST_EQ_FATAL(fd_memfd_sealed("short", "abc", 3, &fd), 0);
	fd_send(a.fd, &raw, sizeof(raw.head), &fd, 1);
	TEST_EQ(ipc_link_recv(&b, &m), -EPROTO);
	raw.head.size = 8;
	fd_send(a.fd, &raw, sizeof(raw), &fd, 1);
	TEST_EQ(ipc_link_recv(&b, &m), -EPROTO);
	fd_send(a.fd, &raw, sizeof(raw), (int[]){ fd, fd }, 2);
	TEST_EQ(ipc_link_recv(&b, &m), -EPROTO);
	close(fd);
	close_links();
}

/* A descriptor arrives with the message that says so, once, and is closed with it. */
static void descriptors_of_clients_arrive(void)
{
	struct ipc_head head = { .type = IPC_CALL, .flags = IPC_FLAG_FD, .size = 3 };
	struct ipc_message m;
	int pair[2];
	char c;

	open_links();
	TEST_EQ_FATAL(fd_socketpair(04000 /* SOCK_NONBLOCK */, pair), 0);
	TEST_EQ(ipc_link_send_fd(&a, &head, "abc", pair[0]), 0);
	TEST_EQ(ipc_link_recv(&b, &m), 1);
	TEST_EQ(memcmp(m.text, "abc", 3), 0);
	CU_ASSERT_TRUE(m.fd >= 0);
	TEST_EQ(read(pair[1], &c, 1), -1); /* its other end is open */
	ipc_message_deinit(&m);
	TEST_EQ(read(pair[1], &c, 1), 0);
	/* Too long a text needs the place for itself. */
	head.size = IPC_INLINE_MAX + 1;
	TEST_EQ(ipc_link_send_fd(&a, &head, NULL, dup(pair[1])), -EMSGSIZE);
	head.size = 0;
	fd_send(a.fd, &head, sizeof(head), NULL, 0);
	TEST_EQ(ipc_link_recv(&b, &m), -EPROTO);
	close(pair[1]);
	close_links();
}

/* Of the descriptors beside the bytes of a stream the first is kept. */
static void a_stream_brings_one_descriptor(void)
{
	int pair[2], fds[FD_MESSAGE_MAX], fd;
	char buf[8];

	TEST_EQ_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	for (size_t i = 0; i < FD_MESSAGE_MAX; i++)
		fds[i] = dup(pair[0]);
	TEST_EQ(fd_recv_stream(pair[1], buf, sizeof(buf), &fd), -EAGAIN);
	TEST_EQ(fd_send(pair[0], "ab", 2, NULL, 0), 2);
	TEST_EQ(fd_recv_stream(pair[1], buf, sizeof(buf), &fd), 2);
	TEST_EQ(fd, -1);
	for (size_t n = 1; n <= FD_MESSAGE_MAX; n++) {
		TEST_ROW_EQ(n, fd_send(pair[0], "abc", 3, fds, n), 3);
		TEST_ROW_EQ(n, fd_recv_stream(pair[1], buf, sizeof(buf), &fd), 3);
		TEST_ROW_EQ(n, fcntl(fd, F_GETFD), FD_CLOEXEC);
		close(fd);
		/* Nothing else was installed: the lowest number is free. */
		TEST_ROW_EQ(n, dup(pair[0]), fd);
		close(fd);
	}
	for (size_t i = 0; i < FD_MESSAGE_MAX; i++)
		close(fds[i]);
	close(pair[0]);
	TEST_EQ(fd_recv_stream(pair[1], buf, sizeof(buf), &fd), 0);
	close(pair[1]);
}

static void end_of_file_is_told(void)
{
	struct ipc_head head = { .type = IPC_CALL };
	struct ipc_message m;

	open_links();
	ipc_link_deinit(&b);
	TEST_EQ(ipc_link_recv(&a, &m), 0);
	TEST_EQ(ipc_link_send(&a, &head, NULL), -EPIPE);
	ipc_link_deinit(&a);
	TEST_EQ(ipc_link_send(&a, &head, NULL), -EPIPE);
}

static void fixed_messages_have_one_size(void)
{
	struct ipc_guard g = { IPC_ARM, 5 };
	int pair[2], fd;

	TEST_EQ_FATAL(fd_socketpair(0, pair), 0);
	fd_send(pair[0], &g, sizeof(g), NULL, 0);
	TEST_EQ(ipc_recv_fixed(pair[1], &g, sizeof(g), &fd), 1);
	TEST_EQ(fd, -1);
	fd_send(pair[0], &g, 4, pair, 1);
	TEST_EQ(ipc_recv_fixed(pair[1], &g, sizeof(g), &fd), -EPROTO);
	fd_send(pair[0], "longer than a guard", 19, NULL, 0);
	TEST_EQ(ipc_recv_fixed(pair[1], &g, sizeof(g), &fd), -EPROTO);
	close(pair[0]);
	TEST_EQ(ipc_recv_fixed(pair[1], &g, sizeof(g), &fd), 0);
	close(pair[1]);
}

TEST_SUITE(agentd_ipc, TEST(texts_of_every_size_arrive), TEST(slow_peer_gets_everything_in_order),
	   TEST(malformed_messages_are_refused), TEST(descriptors_of_clients_arrive),
	   TEST(a_stream_brings_one_descriptor), TEST(end_of_file_is_told),
	   TEST(fixed_messages_have_one_size));
