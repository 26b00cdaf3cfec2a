/* SPDX-License-Identifier: MIT */
#include <event2/event.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/frontend/net/arrivals.h"
#include "agentd/frontend/net/conn.h"
#include "agentd/frontend/net/monitor_link.h"
#include "base/fd.h"
#include "base/out.h"
#include "protocol/agent_err.h"
#include "testlib.h"

/* ------------------------------------------------------------------ those above and the monitor ---- */

static struct net net;
static struct monitor_link monitor;
static int monitor_fd;

static struct {
	struct out messages; /* each with a '!' in front if it was the first, and a '|' behind */
	int refused, gone;
	bool busy, holds;
	struct conn *last;
} seen;

static void on_message(struct conn *c, const char *body, size_t size, bool first)
{
	out_str(&seen.messages, first ? "!" : "");
	out_bytes(&seen.messages, body, size);
	out_char(&seen.messages, '|');
	seen.last = c;
	if (seen.holds)
		conn_hold(c);
}

static void on_refuse(struct conn *c, const struct agent_err *err)
{
	seen.refused++;
}

static void on_drained(struct conn *c)
{
}

static void on_gone(struct conn *c)
{
	seen.gone++;
}

static bool is_busy(struct net *n)
{
	return seen.busy;
}

static const struct net_ops ops = { on_message, on_refuse, on_drained, on_gone, is_busy };

static void begin(void)
{
	int pair[2];

	seen = (typeof(seen)){ 0 };
	out_init(&seen.messages, 0);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	monitor_fd = pair[1];
	net = (struct net){ .ops = &ops,
			    .base = event_base_new(),
			    .monitor = &monitor,
			    .connections_max = 100,
			    .connections_per_user_max = 100 };
	monitor = (struct monitor_link){ .base = net.base, .fd = pair[0] };
	net.closings = (struct closings){ .base = net.base, .monitor = &monitor };
	TEST_EQ_FATAL(closing_init(&net.closings), 0);
	TEST_EQ_FATAL(arrivals_init(&net), 0);
}

static void end(void)
{
	while (!LIST_EMPTY(&net.conns))
		conn_close(LIST_FIRST(&net.conns));
	closing_deinit(&net.closings);
	arrivals_deinit(&net);
	event_base_free(net.base);
	close(monitor.fd);
	close(monitor_fd);
	out_deinit(&seen.messages);
}

/* Until nothing is left to do. */
static void run(void)
{
	for (int i = 0; i < 20; i++)
		event_base_loop(net.base, EVLOOP_NONBLOCK);
}

/* @return the client's end of a connection that the monitor tells the frontend to treat so. */
static int connect_as(enum ipc_class class, uint64_t id)
{
	const struct ipc_client m = { .type = IPC_CLIENT, .class = class, .id = id, .pid = (uint32_t)getpid(),
				      .uid = getuid(), .charge = getuid() };
	int pair[2];

	TEST_EQ_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	TEST_EQ_FATAL(fd_set_nonblock(pair[0], true), 0);
	TEST_EQ_FATAL(fd_refuse_rights(pair[0]), 0);
	arrivals_received(&net, &m, pair[0]);
	run();
	return pair[1];
}

static int connect_client(void)
{
	static uint64_t last_id;

	return connect_as(IPC_CLASS_SERVED, ++last_id);
}

static void say(int fd, const char *text)
{
	TEST_EQ_FATAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	run();
}

static void check_messages(const char *want)
{
	out_char(&seen.messages, '\0');
	TEST_STR(seen.messages.data, want);
	out_reset(&seen.messages);
}

/* The next message of that type and size that the frontend has sent to the monitor.  @return false: there is none. */
static bool next_message(uint32_t type, void *ret, size_t size)
{
	int fds[FD_MESSAGE_MAX];
	char text[512];
	size_t n_fds;
	ssize_t n;

	while ((n = fd_recv(monitor_fd, text, sizeof(text), fds, &n_fds)) > 0) {
		memcpy(ret, text, size);
		if ((size_t)n == size && *(const uint32_t *)ret == type)
			return true;
	}
	return false;
}

/* The next note, or 0. */
static uint32_t next_note(void)
{
	struct ipc_note m;

	return next_message(IPC_NOTE, &m, sizeof(m)) ? m.kind : 0;
}

/* ------------------------------------------------------------------ tests -------------------- */

/* Who knows another protocol is asked about the first message only. */
static void the_first_message_is_told_from_others(void)
{
	int a, b;

	begin();
	a = connect_client();
	b = connect_client();
	say(a, "one\ntwo\n");
	say(b, "three\n");
	say(a, "four\n");
	check_messages("!one|two|!three|four|");
	TEST_EQ(net.n_conns, 2);
	close(a);
	close(b);
	run();
	TEST_EQ(seen.gone, 2);
	TEST_EQ(net.n_conns, 0);
	end();
}

/* What is read of an editor after its first message is the adapter's, until the adapter speaks. */
static void a_held_connection_is_read_no_further(void)
{
	int client, pair[2];

	begin();
	client = connect_client();
	seen.holds = true;
	say(client, "one\ntwo\n");
	say(client, "three\n");
	check_messages("!one|");
	seen.holds = false;
	TEST_EQ_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	TEST_EQ(conn_hand_over(seen.last, pair[0]), 0);
	say(client, "four\n");
	say(pair[1], "five\n");
	check_messages("five|");
	close(pair[1]);
	run();
	TEST_EQ(seen.gone, 1);
	close(client);
	end();
}

static void a_stream_that_cannot_be_followed_ends(void)
{
	int client;

	begin();
	client = connect_client();
	say(client, "Content-Length: many\r\n\r\n");
	TEST_EQ(seen.refused, 1);
	TEST_EQ(seen.gone, 1);
	check_messages("");
	close(client);
	end();
}

/* Answers that wait keep a connection whose client has nothing more to say. */
static void the_end_of_input_waits_for_answers(void)
{
	int client;

	begin();
	client = connect_client();
	say(client, "one\n");
	conn_request_begun(seen.last);
	shutdown(client, SHUT_WR);
	run();
	TEST_EQ(seen.gone, 0);
	conn_request_done(seen.last);
	run();
	TEST_EQ(seen.gone, 1);
	close(client);
	end();
}

/* Whether a connection is too many the monitor knows; who connected is told why. */
static void who_is_too_many_is_told(void)
{
	static const struct {
		enum ipc_class class;
		const char *told;
	} rows[] = { { IPC_CLASS_TOO_MANY, "the agent has too many connections" },
		     { IPC_CLASS_TOO_MANY_OF_USER, "your user has too many connections" },
		     { IPC_CLASS_UNKNOWN, NULL } };

	begin();
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		char text[400] = { 0 };
		int client = connect_as(rows[i].class, 0);

		TEST_ROW_EQ(i, net.n_conns, 0);
		TEST_ROW_EQ(i, read(client, text, sizeof(text) - 1) > 0, rows[i].told != NULL);
		TEST_ROW_EQ(i, !rows[i].told || strstr(text, rows[i].told), true);
		TEST_ROW_EQ(i, read(client, text, sizeof(text)), 0);
		close(client);
	}
	TEST_EQ(net.n_refused, 2);
	end();
}

/* The monitor keeps what it knows about a client for as long as the frontend says that there is one. */
static void the_monitor_is_told_who_has_gone(void)
{
	struct ipc_clients m = { 0 };
	int clients[IPC_CLIENTS_UNTOLD / 2];

	begin();
	for (size_t i = 0; i < TEST_COUNT(clients); i++) {
		TEST_ROW_EQ(i, next_message(IPC_CLIENTS, &m, sizeof(m)), false);
		clients[i] = connect_as(IPC_CLASS_SERVED, 1000 + i);
	}
	TEST_EQ_FATAL(next_message(IPC_CLIENTS, &m, sizeof(m)), true);
	TEST_EQ(m.taken, TEST_COUNT(clients));
	TEST_EQ(m.n_closed, 0);
	for (size_t i = 0; i < TEST_COUNT(clients); i++) {
		close(clients[i]);
		run();
		TEST_ROW_EQ(i, next_message(IPC_CLIENTS, &m, sizeof(m)), true);
		TEST_ROW_EQ(i, m.taken, 0);
		TEST_ROW_EQ(i, m.n_closed, 1);
		TEST_ROW_EQ(i, m.closed[0], 1000 + i);
	}
	end();
}

/* Nobody waits for a monitor that takes no message; nor is anything of it lost. */
static void what_the_monitor_does_not_take_is_told_later(void)
{
	const struct timeval wait = { .tv_usec = 200000 };
	uint64_t sum = 0, want = 0;
	struct ipc_clients m;

	begin();
	monitor_link_note(&monitor, IPC_NOTE_PONG, 0);
	while (monitor_link_try(&monitor, &(struct ipc_note){ .type = IPC_NOTE }, sizeof(struct ipc_note)) == 0)
		;
	for (uint64_t id = 1; id <= 100; id++) {
		want += id;
		close(connect_as(IPC_CLASS_SERVED, id));
		run();
	}
	TEST_EQ(net.n_conns, 0);
	TEST_EQ(next_message(IPC_CLIENTS, &m, sizeof(m)), false);
	event_base_loopexit(net.base, &wait);
	event_base_dispatch(net.base);
	while (next_message(IPC_CLIENTS, &m, sizeof(m)))
		for (size_t i = 0; i < m.n_closed; i++)
			sum += m.closed[i];
	TEST_EQ(sum, want);
	end();
}

static void the_monitor_closes_and_changes_connections(void)
{
	struct ipc_clients told = { 0 };
	char byte;
	int a, b;

	begin();
	a = connect_as(IPC_CLASS_SERVED, 7);
	b = connect_as(IPC_CLASS_SERVED, 8);
	say(b, "one\n");
	TEST_EQ(seen.last->admin, false);
	arrivals_received(&net, &(struct ipc_client){ .class = IPC_CLASS_CHANGED, .id = 8, .admin = 1 }, -1);
	TEST_EQ(seen.last->admin, true);
	arrivals_received(&net, &(struct ipc_client){ .class = IPC_CLASS_OVER, .id = 7 }, -1);
	TEST_EQ(read(a, &byte, 1), 0);
	TEST_EQ(net.n_conns, 1);
	TEST_EQ(next_message(IPC_CLIENTS, &told, sizeof(told)), true);
	TEST_EQ(told.closed[0], 7);
	/* It may have gone by itself. */
	arrivals_received(&net, &(struct ipc_client){ .class = IPC_CLASS_OVER, .id = 7 }, -1);
	/* Nor is one that was lost on its way any more. */
	arrivals_received(&net, &(struct ipc_client){ .class = IPC_CLASS_SERVED, .id = 9 }, -1);
	TEST_EQ(next_message(IPC_CLIENTS, &told, sizeof(told)), true);
	TEST_EQ(told.closed[0], 9);
	close(a);
	close(b);
	end();
}

/* The kernel counts what nobody has received for the agent, which would then send none to anybody. */
static void descriptors_that_nobody_reads_are_counted(void)
{
	struct agent_err err = { 0 };
	int clients[5];

	begin();
	for (size_t i = 0; i < TEST_COUNT(clients); i++) {
		struct out text;

		clients[i] = connect_client();
		say(clients[i], "one\n");
		TEST_ROW_EQ(i, conn_check_fd(seen.last, false, "test", &err) == 0, i < 4);
		TEST_ROW_EQ(i, conn_check_fd(seen.last, true, "test", &err) == 0, false);
		if (i == 4)
			break;
		out_init(&text, 0);
		out_str(&text, "answer");
		conn_send_fd(seen.last, &text, open("/dev/null", O_RDONLY | O_CLOEXEC));
		out_deinit(&text);
		run();
		TEST_ROW_EQ(i, conn_check_fd(seen.last, false, "test", &err) == 0, false);
		conn_close(seen.last);
	}
	for (size_t i = 0; i < TEST_COUNT(clients); i++)
		close(clients[i]);
	end();
}

/* A socket in which a descriptor lies is closed by a process that the monitor makes, and not here. */
static void a_socket_with_a_descriptor_is_handed_to_the_monitor(void)
{
	int client, null = open("/dev/null", O_RDONLY | O_CLOEXEC), fds[FD_MESSAGE_MAX];
	struct ipc_drop m;
	size_t n_fds;

	begin();
	client = connect_client();
	if (fd_send(client, "x", 1, &null, 1) < 0) {
		test_skip("the kernel refuses to send one");
	} else {
		run();
		TEST_EQ(seen.gone, 1);
		TEST_EQ(fd_recv(monitor_fd, &m, sizeof(m), fds, &n_fds), sizeof(m));
		TEST_EQ(m.type, IPC_DROP);
		TEST_EQ(m.uid, getuid());
		TEST_EQ(n_fds, 1);
		closing_received(&net.closings, &(struct ipc_closer){ .kind = IPC_CLOSER_HOLDS, .uid = m.uid });
		TEST_EQ(next_note(), IPC_NOTE_DROPPED);
		close(fds[0]);
	}
	close(client);
	close(null);
	end();
}

/* Also that nobody is on the way: the monitor has accepted whoever it was told of. */
static void idleness_is_told_when_nothing_is_left_to_do(void)
{
	static const struct {
		bool client, stays, busy, told;
	} rows[] = { { .told = true }, { .client = true }, { .stays = true }, { .busy = true } };

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const struct timeval wait = { .tv_usec = 30000 };
		int client;

		begin();
		client = rows[i].client ? connect_client() : -1;
		net.idle_ms = 1;
		net.stays = rows[i].stays;
		seen.busy = rows[i].busy;
		net_update_idle(&net);
		event_base_loopexit(net.base, &wait);
		event_base_dispatch(net.base);
		TEST_ROW_EQ(i, next_note(), rows[i].told ? IPC_NOTE_IDLE : 0);
		TEST_ROW_EQ(i, net.idle, rows[i].told);
		if (client >= 0)
			close(client);
		end();
	}
}

TEST_SUITE(front_net, TEST(the_first_message_is_told_from_others),
	   TEST(a_held_connection_is_read_no_further), TEST(a_stream_that_cannot_be_followed_ends),
	   TEST(the_end_of_input_waits_for_answers), TEST(who_is_too_many_is_told),
	   TEST(the_monitor_is_told_who_has_gone), TEST(what_the_monitor_does_not_take_is_told_later),
	   TEST(the_monitor_closes_and_changes_connections),
	   TEST(descriptors_that_nobody_reads_are_counted),
	   TEST(a_socket_with_a_descriptor_is_handed_to_the_monitor),
	   TEST(idleness_is_told_when_nothing_is_left_to_do));
