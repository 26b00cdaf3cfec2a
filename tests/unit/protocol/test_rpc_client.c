/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/out.h"
#include "rpc_client_gen.h"
#include "testlib.h"

/* A server that reads one line and answers with a fixed text, once per line of the script. */
struct server {
	pthread_t thread;
	int fd;
	const char *const *script; /* ends with NULL; "" answers nothing */
	char seen[4096];	   /* all that the client sent */
};

static void *serve(void *arg)
{
	struct server *s = arg;
	size_t n = 0, line = 0;
	ssize_t r;

	while ((r = read(s->fd, s->seen + n, sizeof(s->seen) - 1 - n)) > 0) {
		n += (size_t)r;
		s->seen[n] = '\0';
		while (strchr(s->seen + line, '\n')) {
			line = (size_t)(strchr(s->seen + line, '\n') - s->seen) + 1;
			if (!*s->script)
				goto out;
			if (fd_write_all(s->fd, *s->script, strlen(*s->script)) < 0)
				goto out;
			s->script++;
		}
	}
out:
	close(s->fd);
	return NULL;
}

static struct rpc_client *start(struct server *s, const char *const *script)
{
	struct rpc_client *c;
	struct agent_err err;
	int fds[2];

	*s = (struct server){ .script = script };
	TEST_EQ_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	s->fd = fds[1];
	TEST_EQ_FATAL(rpc_client_open_fd(fds[0], &c, &err), 0);
	TEST_EQ_FATAL(pthread_create(&s->thread, NULL, serve, s), 0);
	return c;
}

static void stop(struct server *s, struct rpc_client *c)
{
	rpc_client_close(c);
	pthread_join(s->thread, NULL);
}

#define R "{\"jsonrpc\":\"2.0\",\"id\":"

static void typed_calls_go_round(void)
{
	static const char *const script[] = {
		R "1,\"result\":{\"ended\":true,\"unknown_to_us\":[1]}}\n",
		R "2,\"result\":{\"queues\":[{\"queue_id\":4,\"verdict\":\"suspended\"}],\"suspended\":1,"
		  "\"lease_ms\":5000}}\n", NULL };
	uint32_t ids[] = { 4 };
	auto_rpc_arena struct rpc_arena a;
	struct rpc_session_detach_result detached;
	struct rpc_gpu_suspend_result suspended;
	struct agent_err err;
	struct rpc_client *c;
	struct server s;
	size_t size;

	rpc_arena_init(&a, 0);
	c = start(&s, script);
	TEST_EQ(rpc_client_session_detach(c, &(struct rpc_session_detach_params){ .session = "s1" }, &a,
					  &detached, &err), 0);
	CU_ASSERT_TRUE(detached.ended);
	TEST_STR(rpc_client_last_result(c, &size), "{\"ended\":true,\"unknown_to_us\":[1]}");
	TEST_EQ(size, 34);
	TEST_EQ(rpc_client_gpu_suspend(c, &(struct rpc_gpu_suspend_params){ .session = "s1",
			.has_queues = true, .n_queues = 1, .queues = ids }, &a, &suspended, &err), 0);
	TEST_EQ(suspended.n_queues, 1);
	TEST_EQ(suspended.queues[0].verdict, RPC_QUEUE_VERDICT_SUSPENDED);
	stop(&s, c);
	TEST_STR(s.seen, R "1,\"method\":\"session.detach\",\"params\":{\"session\":\"s1\"}}\n" R
			   "2,\"method\":\"gpu.suspend\",\"params\":{\"session\":\"s1\",\"queues\":[4]}}\n");
}

static void errors_carry_everything(void)
{
	static const char *const script[] = {
		R "1,\"error\":{\"code\":-32002,\"message\":\"no\",\"data\":{\"errno\":\"EPERM\",\"op\":\"seize\","
		  "\"hint\":\"root\",\"resumed\":true}}}\n",
		R "null,\"error\":{\"code\":-32700,\"message\":\"bad\"}}\n",
		R "3,\"result\":{\"ended\":1}}\n", NULL };
	struct rpc_session_detach_result ret;
	auto_rpc_arena struct rpc_arena a;
	struct agent_err err;
	struct rpc_client *c;
	struct server s;
	size_t size;

	rpc_arena_init(&a, 0);
	c = start(&s, script);
	TEST_EQ(rpc_client_call(c, "x.y", NULL, 0, &err), -EPERM);
	TEST_EQ(err.code, RPC_ERROR_NOT_PERMITTED);
	TEST_STR(err.hint, "root");
	CU_ASSERT_TRUE(err.resumed);
	TEST_EQ(agent_err_exit(&err), 4);
	CU_ASSERT_PTR_NULL(rpc_client_last_result(c, &size));
	CU_ASSERT_PTR_NOT_NULL(rpc_client_last_error(c, &size));
	TEST_EQ(rpc_client_call(c, "x.y", "{\"a\":\n1}", 8, &err), -EPROTO);
	TEST_STR(err.message, "bad");
	TEST_EQ(rpc_client_session_detach(c, &(struct rpc_session_detach_params){ .session = "s" }, &a,
					  &ret, &err), -EPROTO);
	TEST_STR(err.message, "unexpected reply: result.ended: must be true or false, not an integer");
	TEST_EQ(rpc_client_call(c, "x.y", "{", 1, &err), -EPROTO);
	TEST_EQ(err.code, RPC_ERROR_INVALID_PARAMS);
	stop(&s, c);
	CU_ASSERT_PTR_NOT_NULL(strstr(s.seen, "\"params\":{\"a\":1}}\n"));
}

/* Notifications that come between request and reply are kept, in order. */
static void notifications_are_kept(void)
{
	static const char *const script[] = {
		"{\"jsonrpc\":\"2.0\",\"method\":\"a.one\",\"params\":{\"n\":1}}\n"
		"{\"jsonrpc\":\"2.0\",\"method\":\"a.two\"}\n" R "1,\"result\":{}}\n",
		R "2,\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"method\":\"a.three\",\"params\":{}}\n", NULL };
	struct rpc_client_notification n;
	struct agent_err err;
	struct rpc_client *c;
	struct server s;

	c = start(&s, script);
	TEST_EQ(rpc_client_next_notification(c, 0, &n, &err), -ETIMEDOUT);
	TEST_EQ(rpc_client_call(c, "x.y", NULL, 0, &err), 0);
	TEST_EQ(rpc_client_next_notification(c, 0, &n, &err), 0);
	TEST_STR(n.method, "a.one");
	TEST_STR(n.params, "{\"n\":1}");
	TEST_EQ(rpc_client_call(c, "x.y", NULL, 0, &err), 0);
	TEST_EQ(rpc_client_next_notification(c, 0, &n, &err), 0);
	TEST_STR(n.method, "a.two");
	TEST_STR(n.params, "");
	TEST_EQ(rpc_client_next_notification(c, clock_deadline_ms(5000), &n, &err), 0);
	TEST_STR(n.method, "a.three");
	TEST_EQ(rpc_client_next_notification(c, clock_deadline_ms(20), &n, &err), -ETIMEDOUT);
	TEST_EQ(rpc_client_dropped(c), 0);
	stop(&s, c);
}

static void unread_notifications_are_bounded(void)
{
	auto_out struct out o;
	const char *script[2] = { NULL, NULL };
	struct rpc_client_notification n;
	struct agent_err err;
	struct rpc_client *c;
	struct server s;

	out_init(&o, 0);
	for (int i = 0; i < RPC_CLIENT_NOTIFICATIONS_MAX + 3; i++)
		out_fmt(&o, "{\"jsonrpc\":\"2.0\",\"method\":\"a.b\",\"params\":{\"n\":%d}}\n", i);
	out_str(&o, R "1,\"result\":{}}\n");
	script[0] = o.data;
	c = start(&s, script);
	TEST_EQ(rpc_client_call(c, "x.y", NULL, 0, &err), 0);
	TEST_EQ(rpc_client_dropped(c), 3);
	TEST_EQ(rpc_client_next_notification(c, 0, &n, &err), 0);
	TEST_STR(n.params, "{\"n\":3}");
	stop(&s, c);
}

/* A reply that comes too late is not taken for the answer to the next request. */
static void late_replies_are_dropped(void)
{
	static const char *const script[] = { "", R "1,\"result\":{\"n\":1}}\n" R "2,\"result\":{\"n\":2}}\n",
					      NULL };
	struct agent_err err;
	struct rpc_client *c;
	struct server s;
	size_t size;

	c = start(&s, script);
	rpc_client_set_timeout(c, 30);
	TEST_EQ(rpc_client_call(c, "x.slow", NULL, 0, &err), -ETIMEDOUT);
	TEST_EQ(err.code, RPC_ERROR_TIMEOUT);
	TEST_EQ(agent_err_exit(&err), 7);
	TEST_STR(err.message, "x.slow: no answer within 30 ms");
	rpc_client_set_timeout(c, 0);
	TEST_EQ(rpc_client_call(c, "x.y", NULL, 0, &err), 0);
	TEST_STR(rpc_client_last_result(c, &size), "{\"n\":2}");
	stop(&s, c);
}

/* A client whose first call has timed out, and the other end of its socket. */
static struct rpc_client *start_late(int *ret_fd)
{
	struct rpc_client *c;
	struct agent_err err;
	int fds[2];

	TEST_EQ_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	TEST_EQ_FATAL(rpc_client_open_fd(fds[0], &c, &err), 0);
	rpc_client_set_timeout(c, 10);
	TEST_EQ(rpc_client_call(c, "x.slow", NULL, 0, &err), -ETIMEDOUT);
	rpc_client_set_timeout(c, 0);
	*ret_fd = fds[1];
	return c;
}

/* Sends an answer; a descriptor goes with its first byte, as the agent sends it. */
static void answer(int fd, const char *text, bool with_fd)
{
	if (with_fd)
		TEST_EQ(fd_send(fd, text, 1, &fd, 1), 1);
	TEST_EQ(fd_write_all(fd, text + with_fd, strlen(text + with_fd)), 0);
}

/* Nor is it kept as a result when it comes while nobody waits for an answer. */
static void late_replies_are_no_results(void)
{
	struct rpc_client_notification n;
	struct agent_err err;
	struct rpc_client *c;
	size_t size;
	int fd;

	c = start_late(&fd);
	answer(fd, R "1,\"result\":{\"n\":1}}\n", true);
	TEST_EQ(rpc_client_next_notification(c, clock_deadline_ms(20), &n, &err), -ETIMEDOUT);
	CU_ASSERT_PTR_NULL(rpc_client_last_result(c, &size));
	TEST_EQ(rpc_client_take_fd(c), -1);
	rpc_client_close(c);
	close(fd);
}

/* A descriptor belongs to the answer that it came with, whatever came just before or behind. */
static void late_descriptors_are_closed(void)
{
	static const struct {
		bool with_late, with_next;
	} rows[] = { { true, false }, { false, true }, { true, true }, { false, false } };

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct agent_err err;
		struct rpc_client *c;
		size_t size;
		int fd, got;

		c = start_late(&fd);
		answer(fd, R "1,\"result\":{\"n\":1}}\n", rows[i].with_late);
		answer(fd, R "2,\"result\":{\"n\":2}}\n", rows[i].with_next);
		TEST_ROW_EQ(i, rpc_client_call(c, "x.y", NULL, 0, &err), 0);
		TEST_ROW_STR(i, rpc_client_last_result(c, &size), "{\"n\":2}");
		got = rpc_client_take_fd(c);
		TEST_ROW_EQ(i, got >= 0, rows[i].with_next);
		if (got >= 0)
			close(got);
		rpc_client_close(c);
		close(fd);
	}
}

/* Waits once like poll(), then wants no more. */
static int wait_once(void *data, int fd, short events, uint64_t deadline_ns)
{
	struct pollfd p = { .fd = fd, .events = events };
	int *left = data;

	if (!*left)
		return -ECANCELED;
	--*left;
	return poll(&p, 1, clock_left_ms(deadline_ns)) > 0 ? 0 : -ETIMEDOUT;
}

/* Who waits in the client's place may give up a call; the connection stays usable. */
static void calls_are_cancelled(void)
{
	static const char *const script[] = { "", R "1,\"result\":{\"ended\":true}}\n" R
						    "2,\"result\":{\"ended\":false}}\n", NULL };
	const struct rpc_session_detach_params p = { .session = "s1" };
	struct rpc_session_detach_result ret;
	auto_rpc_arena struct rpc_arena a;
	struct agent_err err = { 0 };
	struct rpc_client *c;
	struct server s;
	int left = 0;

	rpc_arena_init(&a, 0);
	c = start(&s, script);
	rpc_client_set_wait(c, wait_once, &left);
	TEST_EQ(rpc_client_session_detach(c, &p, &a, &ret, &err), -ECANCELED);
	TEST_STR(err.message, "session.detach: cancelled");
	left = 1000;
	TEST_EQ(rpc_client_session_detach(c, &p, &a, &ret, &err), 0);
	CU_ASSERT_FALSE(ret.ended);
	stop(&s, c);
}

static void lost_connections_are_reported(void)
{
	static const char *const end[] = { NULL };
	static const char *const junk[] = { "hello\n", NULL };
	static const char *const *const scripts[] = { end, junk };
	static const char *const messages[] = { "the agent closed the connection",
						"what came is no JSON-RPC 2.0 message" };

	for (size_t i = 0; i < TEST_COUNT(scripts); i++) {
		struct rpc_client_notification n;
		struct agent_err err;
		struct rpc_client *c;
		struct server s;

		c = start(&s, scripts[i]);
		TEST_ROW_EQ(i, rpc_client_call(c, "x.y", NULL, 0, &err) < 0, true);
		TEST_ROW_STR(i, err.message, messages[i]);
		TEST_ROW_EQ(i, agent_err_exit(&err), 9);
		TEST_ROW_EQ(i, rpc_client_call(c, "x.y", NULL, 0, &err), -ENOTCONN);
		TEST_ROW_EQ(i, rpc_client_next_notification(c, 0, &n, &err), -ENOTCONN);
		stop(&s, c);
	}
}

static void nobody_listens(void)
{
	char dir[] = "/tmp/test_rpc_client.XXXXXX", path[64], too_long[200];
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct rpc_client *c;
	struct agent_err err;
	int fd;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	TEST_EQ(rpc_client_open(path, &c, &err), -ENOENT);
	TEST_EQ(agent_err_exit(&err), 9);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.message, path));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.hint, "gpu-agentd"));

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	memcpy(address.sun_path, path, strlen(path) + 1);
	TEST_EQ_FATAL(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	TEST_EQ(rpc_client_open(path, &c, &err), -ECONNREFUSED);
	TEST_EQ_FATAL(listen(fd, 1), 0);
	TEST_EQ(rpc_client_open(path, &c, &err), 0);
	rpc_client_close(c);
	close(fd);
	unlink(path);
	rmdir(dir);

	memset(too_long, 'x', sizeof(too_long) - 1);
	too_long[sizeof(too_long) - 1] = '\0';
	TEST_EQ(rpc_client_open(too_long, &c, &err), -ENAMETOOLONG);
	TEST_EQ(rpc_client_open("", &c, &err), -ENAMETOOLONG);
	rpc_client_close(NULL);
}

TEST_SUITE(rpc_client, TEST(typed_calls_go_round), TEST(errors_carry_everything),
	   TEST(notifications_are_kept), TEST(unread_notifications_are_bounded),
	   TEST(late_replies_are_dropped), TEST(late_replies_are_no_results),
	   TEST(late_descriptors_are_closed), TEST(calls_are_cancelled),
	   TEST(lost_connections_are_reported), TEST(nobody_listens));
