/* SPDX-License-Identifier: MIT */
/* What the frontend may ask of the judge, and what it is killed for; what goes on to the monitor. */
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agentd/judge/judge.h"
#include "base/fd.h"
#include "testlib.h"

static void front_asks_for_its_own(void)
{
	static const union {
		uint32_t type;
		struct ipc_start start;
		struct ipc_hooks hooks;
		struct ipc_note note;
		struct ipc_drop drop;
		struct ipc_clients clients;
		char longer[sizeof(struct ipc_clients) + 1];
	} note = { .note = { .type = IPC_NOTE, .kind = IPC_NOTE_KILL } },
	  start = { .start = { .type = IPC_START } }, hooks = { .hooks = { .type = IPC_HOOKS } },
	  drop = { .drop = { .type = IPC_DROP } }, arm = { .type = IPC_ARM },
	  none = { .clients = { .type = IPC_CLIENTS } },
	  closed = { .clients = { .type = IPC_CLIENTS, .n_closed = 1, .closed = { 77 } } },
	  taken = { .clients = { .type = IPC_CLIENTS, .taken = 1 } },
	  many = { .clients = { .type = IPC_CLIENTS, .n_closed = IPC_CLIENTS_CLOSED + 1 } };
	const struct {
		const void *message;
		size_t size;
		bool with_fd; /* memory */
		int want;
	} rows[] = {
		{ &note, sizeof(note.note), false, 0 },
		{ &note, sizeof(note.note) - 1, false, -EPROTO },
		{ &note, sizeof(note.note) + 1, false, -EPROTO },
		{ &note, sizeof(note.note), true, -EPROTO },
		{ &start, sizeof(start.start), false, -EPROTO },
		{ &start, sizeof(start.start), true, -EPROTO },
		{ &hooks, sizeof(hooks.hooks), false, -EPROTO },
		{ &hooks, sizeof(hooks.hooks), true, -EPROTO },
		{ &drop, sizeof(drop.drop), false, -EPROTO },
		{ &drop, sizeof(drop.drop), true, -EPROTO },
		{ &none, sizeof(none.clients), false, 0 },
		{ &none, sizeof(none.clients), true, -EPROTO },
		{ &closed, sizeof(closed.clients), false, -EPROTO },
		{ &taken, sizeof(taken.clients), false, -EPROTO },
		{ &many, sizeof(many.clients), false, -EPROTO },
		{ &arm, sizeof(arm.note), false, -EPROTO },
		{ &arm, sizeof(uint32_t), false, -EPROTO },
		{ &note, sizeof(note), false, -EMSGSIZE },
	};
	struct judge *s = calloc(1, sizeof(*s));
	struct ipc_note got;
	int pair[2], above[2], memory;

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	TEST_EQ_FATAL(fd_memfd_sealed("test", "text", 4, &memory), 0);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, above), 0);
	s->front.sock = pair[0];
	s->monitor.sock = above[0];
	s->manager.sock = -1;
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		TEST_EQ(fd_send(pair[1], rows[i].message, rows[i].size, &memory, rows[i].with_fd) > 0, true);
		TEST_ROW_EQ(i, requests_read_front(s), rows[i].want);
	}
	TEST_EQ(requests_read_front(s), -EAGAIN);
	close(pair[1]);
	TEST_EQ(requests_read_front(s), -EPIPE);
	/* The one note has gone on to the monitor, and nothing else. */
	TEST_EQ(recv(above[1], &got, sizeof(got), 0), (ssize_t)sizeof(got));
	TEST_EQ(got.kind, IPC_NOTE_KILL);
	TEST_EQ(recv(above[1], &got, sizeof(got), 0), -1);
	close(above[0]);
	close(above[1]);
	close(pair[0]);
	close(memory);
	free(s);
}

/* Somebody may have connected while the frontend thought that it was idle. */
static void one_that_is_idle_serves_nobody(void)
{
	const struct ipc_note idle = { .type = IPC_NOTE, .kind = IPC_NOTE_IDLE };
	const struct ipc_limits first = { .type = IPC_LIMITS, .connections = 5 };
	const struct ipc_limits serve_on = { .type = IPC_LIMITS, .connections = 7, .serve_on = 1 };
	struct judge *s = calloc(1, sizeof(*s));
	struct ipc_limits limits;
	struct ipc_note note;
	int below[2], above[2];

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, below), 0);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, above), 0);
	s->front.sock = below[0];
	s->manager.sock = above[0];
	s->monitor.sock = -1;
	s->front_serves = true;
	/* It does not know yet who is an administrator. */
	TEST_EQ(accept_wanted(s), false);
	TEST_EQ(fd_send(above[1], &first, sizeof(first), NULL, 0) > 0, true);
	TEST_EQ(requests_read_manager(s), 0);
	TEST_EQ(recv(below[1], &limits, sizeof(limits), 0), (ssize_t)sizeof(limits));
	TEST_EQ(accept_wanted(s), true);
	/* One is on its way. */
	s->clients.n_untold = 1;
	TEST_EQ(fd_send(below[1], &idle, sizeof(idle), NULL, 0) > 0, true);
	TEST_EQ(requests_read_front(s), 0);
	TEST_EQ(recv(below[1], &limits, sizeof(limits), 0), (ssize_t)sizeof(limits));
	TEST_EQ(limits.serve_on, 1);
	TEST_EQ(recv(above[1], &note, sizeof(note), 0), -1);
	TEST_EQ(accept_wanted(s), true);
	s->clients.n_untold = 0;
	TEST_EQ(fd_send(below[1], &idle, sizeof(idle), NULL, 0) > 0, true);
	TEST_EQ(requests_read_front(s), 0);
	TEST_EQ(recv(above[1], &note, sizeof(note), 0), (ssize_t)sizeof(note));
	TEST_EQ(note.kind, IPC_NOTE_IDLE);
	TEST_EQ(accept_wanted(s), false);
	TEST_EQ(fd_send(above[1], &serve_on, sizeof(serve_on), NULL, 0) > 0, true);
	TEST_EQ(requests_read_manager(s), 0);
	TEST_EQ(accept_wanted(s), true);
	TEST_EQ(s->limits.connections, 7);
	TEST_EQ(recv(below[1], &limits, sizeof(limits), 0), (ssize_t)sizeof(limits));
	TEST_EQ(limits.serve_on, 1);
	for (size_t i = 0; i < 2; i++) {
		close(below[i]);
		close(above[i]);
	}
	free(s);
}

/* What the judge does not know is for the frontend, with its descriptor. */
static void messages_for_the_frontend_pass(void)
{
	const struct ipc_hooked sent = { .type = IPC_HOOKED, .request = 9 };
	struct judge *s = calloc(1, sizeof(*s));
	int below[2], above[2], memory, fds[FD_MESSAGE_MAX];
	struct ipc_hooked got;
	size_t n_fds;

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, below), 0);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, above), 0);
	TEST_EQ_FATAL(fd_memfd_sealed("test", "text", 4, &memory), 0);
	s->front.sock = below[0];
	s->manager.sock = above[0];
	TEST_EQ(fd_send(above[1], &sent, sizeof(sent), &memory, 1) > 0, true);
	TEST_EQ(requests_read_manager(s), 0);
	TEST_EQ(fd_recv(below[1], &got, sizeof(got), fds, &n_fds), (ssize_t)sizeof(got));
	TEST_EQ(got.request, 9);
	TEST_EQ(n_fds, 1);
	TEST_EQ(fd_is_memfd(fds[0]), true);
	close(fds[0]);
	close(memory);
	for (size_t i = 0; i < 2; i++) {
		close(below[i]);
		close(above[i]);
	}
	free(s);
}

/* @return the number of a client that this process is. */
static uint64_t connect_client(struct judge *s, int *ret_fd)
{
	static const struct clients_limits plenty = { .all = 9, .of_user = 9 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t size = sizeof(address);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), theirs;
	struct ipc_client m;

	TEST_EQ_FATAL(bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
	TEST_EQ_FATAL(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	TEST_EQ_FATAL(listen(listener, 1), 0);
	*ret_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	TEST_EQ_FATAL(connect(*ret_fd, (struct sockaddr *)&address, size), 0);
	TEST_EQ_FATAL(clients_accept(&s->clients, listener, &s->groups, &plenty, &m, &theirs), 0);
	close(theirs);
	close(listener);
	return m.id;
}

/* That is known when something is sent, while the one it is about is in use. */
static void a_monitor_that_has_died_takes_nobody_with_it(void)
{
	struct judge *s = calloc(1, sizeof(*s));
	struct ipc_start start = { .type = IPC_START, .kind = IPC_KIND_STORE, .timeout_ms = 1000 };
	int below[2], monitor[2], client;

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, below), 0);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, monitor), 0);
	s->groups = (struct access_rules){ ACCESS_NO_GROUP, ACCESS_NO_GROUP };
	s->closers = (struct closers){ .gate_fd = -1, .uid = getuid(), .gid = getgid() };
	s->front.sock = below[0];
	s->monitor.sock = monitor[0];
	s->manager.sock = -1;
	start.client = connect_client(s, &client);
	close(monitor[1]);
	TEST_EQ(fd_send(below[1], &start, sizeof(start), NULL, 0) > 0, true);
	TEST_EQ(requests_read_front(s), 0);
	TEST_EQ(s->monitor.sock, -1);
	TEST_EQ(s->is_stopping, true);
	candidates_cancel(s);
	clients_deinit(&s->clients);
	closers_deinit(&s->closers);
	close(client);
	close(below[0]);
	close(below[1]);
	free(s);
}

TEST_SUITE(judge_requests, TEST(front_asks_for_its_own), TEST(one_that_is_idle_serves_nobody),
	   TEST(messages_for_the_frontend_pass), TEST(a_monitor_that_has_died_takes_nobody_with_it));
