/* SPDX-License-Identifier: MIT */
#include <event2/event.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agentd/access.h"
#include "agentd/frontend/net/conn.h"
#include "agentd/frontend/net/listener.h"
#include "agentd/frontend/net/monitor_link.h"
#include "base/fd.h"
#include "base/out.h"
#include "protocol/agent_err.h"
#include "testlib.h"

/* ------------------------------------------------------------------ those above and the monitor ---- */

static struct net net;
static struct monitor_link monitor;
static int listen_fd, monitor_fd;
static struct sockaddr_un address;
static socklen_t address_size;

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
			    .connections_per_user_max = 100,
			    .admin_gid = ACCESS_NO_GROUP };
	monitor = (struct monitor_link){ .base = net.base, .fd = pair[0] };
	net.closings = (struct closings){ .base = net.base, .monitor = &monitor };
	TEST_EQ_FATAL(closing_init(&net.closings), 0);
	/* A name of its own in the abstract namespace. */
	address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	address_size = sizeof(address);
	listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	TEST_EQ_FATAL(bind(listen_fd, (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
	TEST_EQ_FATAL(getsockname(listen_fd, (struct sockaddr *)&address, &address_size), 0);
	TEST_EQ_FATAL(listen(listen_fd, 8), 0);
	TEST_EQ_FATAL(listener_init(&net, listen_fd), 0);
}

static void end(void)
{
	while (!LIST_EMPTY(&net.conns))
		conn_close(LIST_FIRST(&net.conns));
	closing_deinit(&net.closings);
	listener_deinit(&net);
	event_base_free(net.base);
	close(monitor.fd);
	close(monitor_fd);
	close(listen_fd);
	out_deinit(&seen.messages);
}

/* Until nothing is left to do. */
static void run(void)
{
	for (int i = 0; i < 20; i++)
		event_base_loop(net.base, EVLOOP_NONBLOCK);
}

static int connect_client(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	TEST_EQ_FATAL(connect(fd, (struct sockaddr *)&address, address_size), 0);
	run();
	return fd;
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

/* The next note that the frontend has sent to the monitor, or 0. */
static uint32_t next_note(void)
{
	int fds[FD_MESSAGE_MAX];
	struct ipc_note m;
	size_t n_fds;

	return fd_recv(monitor_fd, &m, sizeof(m), fds, &n_fds) == sizeof(m) && m.type == IPC_NOTE ? m.kind : 0;
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

static void too_many_of_a_user_are_refused(void)
{
	char text[400] = { 0 };
	int a, b;

	begin();
	net.connections_per_user_max = 1;
	a = connect_client();
	b = connect_client();
	TEST_EQ(net.n_conns, 1);
	TEST_EQ(read(b, text, sizeof(text) - 1) > 0, true);
	TEST_EQ(strstr(text, "your user has too many connections") != NULL, true);
	TEST_EQ(read(b, text, sizeof(text)), 0);
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

/* Nobody is accepted from then on, until the monitor says that the agent stays. */
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
		TEST_ROW_EQ(i, event_pending(net.accept_event, EV_READ, NULL) != 0, !rows[i].told);
		if (client >= 0)
			close(client);
		end();
	}
}

TEST_SUITE(front_net, TEST(the_first_message_is_told_from_others),
	   TEST(a_held_connection_is_read_no_further), TEST(a_stream_that_cannot_be_followed_ends),
	   TEST(the_end_of_input_waits_for_answers), TEST(too_many_of_a_user_are_refused),
	   TEST(descriptors_that_nobody_reads_are_counted),
	   TEST(a_socket_with_a_descriptor_is_handed_to_the_monitor),
	   TEST(idleness_is_told_when_nothing_is_left_to_do));
