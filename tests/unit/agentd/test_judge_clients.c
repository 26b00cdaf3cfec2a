/* SPDX-License-Identifier: MIT */
/* Connections of clients: how many are served, and what the frontend may say about them. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agentd/ipc/monitor_judge.h"
#include "agentd/judge/clients.h"
#include "base/fd.h"
#include "testlib.h"

#define SECOND_NS UINT64_C(1000000000)

static const struct access_rules nobody = { ACCESS_NO_GROUP, ACCESS_NO_GROUP };
static const struct clients_limits plenty = { .all = 100, .of_user = 100 };

static struct clients all;
static int listen_fd;
static struct sockaddr_un address;
static socklen_t address_size;

static void begin(void)
{
	all = (struct clients){ 0 };
	/* A name of its own in the abstract namespace. */
	address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	address_size = sizeof(address);
	listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	TEST_EQ_FATAL(bind(listen_fd, (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
	TEST_EQ_FATAL(getsockname(listen_fd, (struct sockaddr *)&address, &address_size), 0);
	TEST_EQ_FATAL(listen(listen_fd, 8), 0);
}

static void end(void)
{
	clients_deinit(&all);
	TEST_EQ(all.n, 0);
	close(listen_fd);
}

/* @return the descriptor of the other end; *ret_fd is the accepted one. */
static int connect_client(const struct clients_limits *limits, struct ipc_client *ret, int *ret_fd)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	TEST_EQ_FATAL(connect(fd, (struct sockaddr *)&address, address_size), 0);
	TEST_EQ_FATAL(clients_accept(&all, listen_fd, &nobody, limits, ret, ret_fd), 0);
	return fd;
}

static uint64_t come_and_go(void)
{
	struct ipc_client m;
	int ours, theirs = connect_client(&plenty, &m, &ours);

	close(ours);
	close(theirs);
	return m.id;
}

static void who_connects_is_read_from_the_socket(void)
{
	struct ipc_client m;
	struct client *k;
	int ours, theirs, pair[2];

	begin();
	TEST_EQ(clients_accept(&all, listen_fd, &nobody, &plenty, &m, &ours), -EAGAIN);
	theirs = connect_client(&plenty, &m, &ours);
	TEST_EQ(m.class, IPC_CLASS_SERVED);
	TEST_EQ(m.pid, (uint32_t)getpid());
	TEST_EQ(m.uid, getuid());
	TEST_EQ(m.charge, getuid());
	k = clients_find(&all, m.id);
	CU_ASSERT_PTR_NOT_NULL_FATAL(k);
	TEST_EQ(k->peer.known, true);
	TEST_EQ(clients_is_socket_of(k, ours), true);
	TEST_EQ(clients_is_socket_of(k, theirs), false);
	TEST_EQ(clients_is_socket_of(k, listen_fd), false);
	TEST_EQ(clients_is_socket_of(k, -1), false);
	TEST_EQ(pipe(pair), 0);
	TEST_EQ(clients_is_socket_of(k, pair[0]), false);
	close(pair[0]);
	close(pair[1]);
	close(ours);
	close(theirs);
	end();
}

/* Whatever the frontend says that was not so is a lie; an id that was closed stays closed. */
static void an_id_is_used_once(void)
{
	struct ipc_clients m = { .type = IPC_CLIENTS, .n_closed = 1 };
	uint64_t first, second;

	begin();
	first = come_and_go();
	second = come_and_go();
	TEST_EQ(first != second && first && second, true);
	TEST_EQ(all.n, 2);
	m.closed[0] = first;
	TEST_EQ(clients_told(&all, &m), true);
	TEST_EQ(clients_find(&all, first) == NULL, true);
	TEST_EQ(clients_told(&all, &m), false);
	m.closed[0] = 0;
	TEST_EQ(clients_told(&all, &m), false);
	TEST_EQ(all.n, 1);
	for (int i = 0; i < 200; i++) {
		uint64_t id = come_and_go();

		TEST_EQ(id == first || id == second, false);
		m.closed[0] = id;
		TEST_EQ(clients_told(&all, &m), true);
	}
	all.n_untold = 3;
	m = (struct ipc_clients){ .type = IPC_CLIENTS, .taken = 2 };
	TEST_EQ(clients_told(&all, &m), true);
	TEST_EQ(clients_told(&all, &m), false);
	m = (struct ipc_clients){ .type = IPC_CLIENTS, .n_closed = IPC_CLIENTS_CLOSED + 1 };
	TEST_EQ(clients_told(&all, &m), false);
	end();
}

/* Who waits for the kernel's answer about a client that has gone looks at it afterwards. */
static void what_is_held_stays(void)
{
	struct client *k;

	begin();
	k = clients_find(&all, come_and_go());
	CU_ASSERT_PTR_NOT_NULL_FATAL(k);
	clients_hold(k);
	clients_close(&all, k);
	TEST_EQ(k->peer.uid, getuid());
	TEST_EQ(clients_find(&all, k->id) == NULL, true);
	clients_release(k);
	end();
}

/* Those who are there already, one more, and what becomes of it. */
static void connections_have_limits(void)
{
	static const struct {
		struct clients_limits limits;
		unsigned before;
		bool is_admin; /* the one more */
		enum ipc_class want;
	} rows[] = {
		{ { .all = 4, .of_user = 4 }, 3, false, IPC_CLASS_SERVED },
		{ { .all = 4, .of_user = 9 }, 4, false, IPC_CLASS_TOO_MANY },
		{ { .all = 9, .of_user = 3 }, 3, false, IPC_CLASS_TOO_MANY_OF_USER },
		{ { .all = 9, .of_user = 3 }, 3, true, IPC_CLASS_SERVED },
		/* Of four one is for administrators. */
		{ { .all = 4, .of_user = 9, .has_reserve = true }, 2, false, IPC_CLASS_SERVED },
		{ { .all = 4, .of_user = 9, .has_reserve = true }, 3, false, IPC_CLASS_TOO_MANY },
		{ { .all = 4, .of_user = 9, .has_reserve = true }, 3, true, IPC_CLASS_SERVED },
		{ { .all = 4, .of_user = 9, .has_reserve = true }, 4, true, IPC_CLASS_TOO_MANY },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const struct access_rules rules = { rows[i].is_admin ? getgid() : ACCESS_NO_GROUP, ACCESS_NO_GROUP };
		struct ipc_client m;
		int ours, theirs;

		begin();
		for (unsigned n = 0; n < rows[i].before; n++) {
			struct client *k = clients_find(&all, come_and_go());

			k->peer.admin = false;
		}
		theirs = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		TEST_EQ_FATAL(connect(theirs, (struct sockaddr *)&address, address_size), 0);
		TEST_EQ_FATAL(clients_accept(&all, listen_fd, &rules, &rows[i].limits, &m, &ours), 0);
		/* Root is an administrator in any case. */
		if (rows[i].is_admin || getuid() != 0)
			TEST_ROW_EQ(i, m.class, rows[i].want);
		TEST_ROW_EQ(i, (m.id != 0), (m.class == IPC_CLASS_SERVED));
		close(theirs);
		close(ours);
		end();
	}
}

static void a_sixteenth_is_for_administrators(void)
{
	static const struct {
		uint32_t limit, want;
	} rows[] = { { 0, 0 }, { 1, 1 }, { 2, 1 }, { 15, 14 }, { 16, 15 }, { 64, 60 }, { 128, 120 }, { 512, 480 } };

	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_ROW_EQ(i, ipc_common_part(rows[i].limit), rows[i].want);
}

/* More than a hundred in a second are once too much; slower ones never are. */
static void who_is_refused_all_the_time_is_closed(void)
{
	struct client k = { 0 };
	int over = 0;

	for (uint64_t i = 0; i < 1000; i++)
		over += clients_refused(&k, 5 + i * SECOND_NS / 50);
	TEST_EQ(over, 0);
	for (uint64_t i = 0; i < 100; i++)
		over += clients_refused(&k, 100 * SECOND_NS + i);
	TEST_EQ(over, 0);
	TEST_EQ(k.is_over, false);
	for (uint64_t i = 0; i < 1000; i++)
		over += clients_refused(&k, 100 * SECOND_NS + 100 + i);
	TEST_EQ(over, 1);
	TEST_EQ(k.is_over, true);
}

TEST_SUITE(judge_clients, TEST(who_connects_is_read_from_the_socket), TEST(an_id_is_used_once),
	   TEST(what_is_held_stays), TEST(connections_have_limits), TEST(a_sixteenth_is_for_administrators),
	   TEST(who_is_refused_all_the_time_is_closed));
