/* SPDX-License-Identifier: MIT */
/*
 * The blocking client.  Requests are lines of JSON-RPC 2.0 with rising numbers as ids.  While a
 * call waits, notifications are queued; an answer with another id is that of a call that timed out,
 * and is dropped.  The socket is non-blocking, so that each wait is a poll() with the call's
 * deadline.
 */
#include "protocol/rpc_client.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/out.h"
#include "protocol/rpc_codec.h"
#include "protocol/rpc_format.h"
#include "protocol/rpc_wire.h"

#define READ_SIZE		((size_t)64 << 10) /* Bytes read at once. */
#define NOTIFICATION_BYTES_MAX	((size_t)16 << 20) /* Bytes of params kept unread. */
#define CONNECT_SECONDS		5

/* A notification that has arrived; its params end with a NUL. */
struct notification {
	struct notification *next;
	size_t size; /* Bytes of params. */
	char method[RPC_METHOD_MAX];
	char params[];
};

struct rpc_client {
	int fd;
	uint32_t timeout_ms;
	uint64_t last_id;
	bool calling; /* An answer to last_id is wanted. */
	bool broken; /* A message was cut in half; the connection is of no use any more. */
	rpc_client_wait_fn wait; /* NULL stands for poll(). */
	void *wait_data;
	int got_fd; /* The descriptor that came last; -1: none since the call began. */
	size_t fd_in; /* Unread bytes up to the end of what got_fd came with; 0: all is read. */
	struct rpc_wire wire;
	struct out result, error; /* JSON texts of the last call. */
	bool has_result, has_error;
	struct notification *first, **end; /* Unread ones, the oldest first. */
	struct notification *current; /* The one that the user looks at. */
	size_t n_notifications, notification_bytes;
	uint64_t dropped;
	char chunk[READ_SIZE];
};

static int unreachable(struct agent_err *err, int err_no, const char *op, const char *hint,
		       const char *message)
{
	return agent_err_set(err, AGENT_ERR_UNREACHABLE, err_no, op, hint, "%s", message);
}

int rpc_client_open_fd(int take_fd, struct rpc_client **ret_c, struct agent_err *err)
{
	struct rpc_client *c;
	int r;

	r = fd_set_nonblock(take_fd, true);
	if (r < 0)
		return unreachable(err, -r, "fcntl", NULL, "cannot use the socket");
	c = calloc(1, sizeof(*c));
	if (!c)
		return agent_err_no_memory(err, NULL);
	c->fd = take_fd;
	c->got_fd = -1;
	c->timeout_ms = RPC_CLIENT_TIMEOUT_MS;
	c->end = &c->first;
	rpc_wire_init(&c->wire, RPC_CLIENT_REPLY_MAX);
	c->wire.mode = RPC_WIRE_LINES;
	out_init(&c->result, RPC_CLIENT_REPLY_MAX);
	out_init(&c->error, RPC_CLIENT_REPLY_MAX);
	*ret_c = c;
	return 0;
}

static const char *connect_hint(int err_no)
{
	switch (err_no) {
	case ENOENT:
	case ECONNREFUSED:
		return "start gpu-agentd, or say where its socket is with --socket or "
		       "GPU_AGENT_SOCKET";
	case EACCES:
	case EPERM:
		return "the socket belongs to a group: ask to be added to it";
	default:
		return NULL;
	}
}

int rpc_client_open(const char *path, struct rpc_client **ret_c, struct agent_err *err)
{
	struct timeval limit = { .tv_sec = CONNECT_SECONDS };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t n = strlen(path);
	auto_close int fd = -1;
	int r;

	if (!n || n >= sizeof(address.sun_path))
		return unreachable(err, ENAMETOOLONG, "connect", NULL,
				   "the path of a socket has 1 to 107 bytes");
	memcpy(address.sun_path, path, n);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return unreachable(err, errno, "socket", NULL, "cannot make a socket");
	/* Bounds connect() as well, when the listener's queue is full (unix(7)). */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (path[0] != '@'))) <
	    0) {
		r = errno;
		return agent_err_set(err, AGENT_ERR_UNREACHABLE, r, "connect", connect_hint(r),
				     "no agent at %.150s: %s", path, strerror(r));
	}
	r = rpc_client_open_fd(fd, ret_c, err);
	if (!r)
		(void)TAKE_FD(fd);
	return r;
}

/* Make the oldest notification the current one; the one that was current is freed. */
static void pop_notification(struct rpc_client *c)
{
	struct notification *n = c->first;

	c->first = n->next;
	if (!c->first)
		c->end = &c->first;
	c->n_notifications--;
	c->notification_bytes -= n->size;
	free(c->current);
	c->current = n;
}

static void drop_fd(struct rpc_client *c)
{
	if (c->got_fd >= 0)
		close(TAKE_FD(c->got_fd));
}

void rpc_client_close(struct rpc_client *c)
{
	if (!c)
		return;
	while (c->first)
		pop_notification(c);
	free(c->current);
	out_deinit(&c->result);
	out_deinit(&c->error);
	rpc_wire_deinit(&c->wire);
	drop_fd(c);
	close(c->fd);
	free(c);
}

void rpc_client_set_timeout(struct rpc_client *c, uint32_t timeout_ms)
{
	c->timeout_ms = timeout_ms ? timeout_ms : RPC_CLIENT_TIMEOUT_MS;
}

int rpc_client_fd(const struct rpc_client *c)
{
	return c->fd;
}

void rpc_client_set_wait(struct rpc_client *c, rpc_client_wait_fn wait, void *data)
{
	c->wait = wait;
	c->wait_data = data;
}

int rpc_client_take_fd(struct rpc_client *c)
{
	return TAKE_FD(c->got_fd);
}

uint64_t rpc_client_dropped(const struct rpc_client *c)
{
	return c->dropped;
}

const char *rpc_client_last_result(const struct rpc_client *c, size_t *ret_size)
{
	*ret_size = c->has_result ? c->result.size : 0;
	return c->has_result ? c->result.data : NULL;
}

const char *rpc_client_last_error(const struct rpc_client *c, size_t *ret_size)
{
	*ret_size = c->has_error ? c->error.size : 0;
	return c->has_error ? c->error.data : NULL;
}

/*
 * Wait until the socket may be ready.
 * @return 0, -ETIMEDOUT, -ECANCELED (by the user's wait function), or another -errno.
 */
static int wait_for(struct rpc_client *c, short events, uint64_t deadline_ns)
{
	struct pollfd p = { .fd = c->fd, .events = events };
	int r;

	if (c->wait)
		return c->wait(c->wait_data, c->fd, events, deadline_ns);
	do
		r = poll(&p, 1, clock_left_ms(deadline_ns));
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	return r ? 0 : -ETIMEDOUT;
}

static int send_all(struct rpc_client *c, const struct out *o, uint64_t deadline_ns)
{
	size_t sent = 0;
	ssize_t n;
	int r;

	while (sent < o->size) {
		n = fd_send(c->fd, o->data + sent, o->size - sent, NULL, 0);
		if (n >= 0) {
			sent += (size_t)n;
			continue;
		}
		r = n == -EAGAIN ? wait_for(c, POLLOUT, deadline_ns) : (int)n;
		if (r < 0) {
			/* The agent would read the next request as the end of this one. */
			c->broken = c->broken || sent;
			return r;
		}
	}
	return 0;
}

/* Keep a notification until the user asks for it; the oldest ones make room. */
static int keep_notification(struct rpc_client *c, const struct rpc_reply *reply)
{
	struct notification *n;

	while (c->first && (c->n_notifications >= RPC_CLIENT_NOTIFICATIONS_MAX ||
			    c->notification_bytes + reply->value_size > NOTIFICATION_BYTES_MAX)) {
		pop_notification(c);
		c->dropped++;
	}
	n = malloc(sizeof(*n) + reply->value_size + 1);
	if (!n)
		return -ENOMEM;
	n->next = NULL;
	n->size = reply->value_size;
	memcpy(n->method, reply->method, sizeof(n->method));
	if (n->size)
		memcpy(n->params, reply->value, n->size);
	n->params[n->size] = '\0';
	*c->end = n;
	c->end = &n->next;
	c->n_notifications++;
	c->notification_bytes += n->size;
	return 0;
}

/* Whether a reply answers the call under way; one that comes later answers nobody. */
static bool is_mine(const struct rpc_client *c, const struct rpc_reply *reply)
{
	char id[24];
	int n = snprintf(id, sizeof(id), "%" PRIu64, c->last_id);

	if (!c->calling)
		return false;
	/* The agent could not read the id: only the request under way can be meant. */
	if (reply->kind == RPC_REPLY_ERROR && reply->id_size == 4 && !memcmp(reply->id, "null", 4))
		return true;
	return reply->id_size == (size_t)n && !memcmp(reply->id, id, (size_t)n);
}

/* What read_message() found; an answer to an earlier call counts as a notification. */
enum { GOT_NOTHING, GOT_NOTIFICATION, GOT_ANSWER };

static int take_answer(struct rpc_client *c, const struct rpc_reply *reply, struct agent_err *err)
{
	bool ok = reply->kind == RPC_REPLY_RESULT;
	struct out *o = ok ? &c->result : &c->error;

	out_bytes(o, reply->value, reply->value_size);
	if (out_error(o))
		return agent_err_set(err, RPC_ERROR_INTERNAL, -out_error(o), NULL, NULL,
				     "cannot keep the reply");
	*(ok ? &c->has_result : &c->has_error) = true;
	return GOT_ANSWER;
}

/*
 * Take the next message out of the bytes that have arrived.  A descriptor belongs to the message
 * that has the last byte which was received with it: the kernel hands out nothing behind that.
 * @param ret_fd  Whether got_fd came with this message.
 */
static int next_message(struct rpc_client *c, const char **ret_body, size_t *ret_size, bool *ret_fd)
{
	size_t unread = rpc_wire_unread(&c->wire), taken;
	int r = rpc_wire_next(&c->wire, ret_body, ret_size);

	taken = unread - rpc_wire_unread(&c->wire);
	*ret_fd = c->fd_in && taken >= c->fd_in;
	c->fd_in -= *ret_fd ? c->fd_in : c->fd_in ? taken : 0;
	return r;
}

/* Handle one message that has arrived.  @return GOT_..., or negative with err. */
static int read_message(struct rpc_client *c, struct agent_err *err)
{
	struct rpc_reply reply;
	const char *body;
	size_t size;
	bool has_fd;
	int r = next_message(c, &body, &size, &has_fd);

	if (!r)
		return GOT_NOTHING;
	if (r == RPC_WIRE_BODY && !rpc_reply_parse(body, size, &reply)) {
		bool is_answer = reply.kind != RPC_REPLY_NOTIFICATION && is_mine(c, &reply);

		if (has_fd && !is_answer)
			drop_fd(c);
		if (reply.kind != RPC_REPLY_NOTIFICATION)
			return is_answer ? take_answer(c, &reply, err) : GOT_NOTIFICATION;
		if (keep_notification(c, &reply) < 0)
			return agent_err_no_memory(err, NULL);
		return GOT_NOTIFICATION;
	}
	c->broken = true;
	return unreachable(err, EPROTO, "receive", "is this the agent's socket?",
			   r == RPC_WIRE_TOO_LARGE ? "a reply is longer than 256 MiB" :
						     "what came is no JSON-RPC 2.0 message");
}

/*
 * Read what has arrived, once; wait if nothing has.
 * @return 0, -ETIMEDOUT or -ECANCELED (err untouched), other negative with err.
 */
static int receive(struct rpc_client *c, uint64_t deadline_ns, struct agent_err *err)
{
	ssize_t n;
	int fd, r;

	do {
		n = fd_recv_stream(c->fd, c->chunk, sizeof(c->chunk), &fd);
		if (fd >= 0) {
			/* The agent sends one at a time: an older one is of a late answer. */
			drop_fd(c);
			c->got_fd = fd;
			c->fd_in = rpc_wire_unread(&c->wire) + (size_t)n;
		}
		r = n >= 0 ? 0 : n == -EAGAIN ? wait_for(c, POLLIN, deadline_ns) : (int)n;
		if (r == -ETIMEDOUT || r == -ECANCELED)
			return r;
		if (r < 0)
			return unreachable(err, -r, "receive", NULL, "the connection is lost");
	} while (n < 0);
	if (!n) {
		c->broken = true;
		return unreachable(err, ECONNRESET, "receive", "see the agent's log",
				   "the agent closed the connection");
	}
	r = rpc_wire_feed(&c->wire, c->chunk, (size_t)n);
	if (r < 0)
		return agent_err_set(err, RPC_ERROR_INTERNAL, -r, NULL, NULL, "out of memory");
	return 0;
}

/* Say that there is no answer: none came in time, or the user's wait function wants none. */
static int given_up(const struct rpc_client *c, int r, const char *method, struct agent_err *err)
{
	if (r == -ECANCELED)
		return agent_err_set(err, RPC_ERROR_FAILED, ECANCELED, "wait for the reply", NULL,
				     "%.60s: cancelled", method);
	return agent_err_set(err, RPC_ERROR_TIMEOUT, ETIMEDOUT, "wait for the reply",
			     "allow more time with --timeout",
			     "%.60s: no answer within %" PRIu32 " ms", method, c->timeout_ms);
}

static int send_request(struct rpc_client *c, const char *method, const char *params,
			size_t params_size, uint64_t deadline_ns, struct agent_err *err)
{
	auto_out struct out message = { 0 }, compact = { 0 };
	int r;

	/* A line break between two tokens would end the message. */
	r = params_size ? rpc_format(&compact, params, params_size, RPC_FORMAT_SHORT) : 0;
	if (r == -EINVAL)
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, 0, NULL, NULL,
				     "the parameters are not JSON");
	rpc_message_request(&message, ++c->last_id, method, compact.data, compact.size);
	rpc_wire_end(&message, RPC_WIRE_LINES);
	if (r < 0 || out_error(&message))
		return agent_err_no_memory(err, NULL);
	r = send_all(c, &message, deadline_ns);
	if (r == -ETIMEDOUT || r == -ECANCELED)
		return given_up(c, r, method, err);
	/*
	 * An agent that refuses a connection says why and closes it.  Its message waits in the
	 * socket then, although sending fails: the caller reads it, or finds the connection closed.
	 */
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		return unreachable(err, -r, "send", NULL, "the connection is lost");
	return 0;
}

/* Send a request and read until its answer has come. */
static int request(struct rpc_client *c, const char *method, const char *params, size_t params_size,
		   struct agent_err *err)
{
	uint64_t deadline_ns = clock_deadline_ms(c->timeout_ms);
	int r = send_request(c, method, params, params_size, deadline_ns, err);

	while (r >= 0 && (r = read_message(c, err)) != GOT_ANSWER) {
		if (r == GOT_NOTHING)
			r = receive(c, deadline_ns, err);
		if (r == -ETIMEDOUT || r == -ECANCELED)
			return given_up(c, r, method, err);
	}
	return r;
}

int rpc_client_call(struct rpc_client *c, const char *method, const char *params,
		    size_t params_size, struct agent_err *err)
{
	int r;

	c->has_result = c->has_error = false;
	drop_fd(c);
	out_reset(&c->result);
	out_reset(&c->error);
	if (c->broken)
		return unreachable(err, ENOTCONN, "send", NULL, "the connection is lost");
	c->calling = true;
	r = request(c, method, params, params_size, err);
	c->calling = false;
	if (r < 0)
		return r;
	if (c->has_result)
		return 0;
	if (err && agent_err_decode_text(c->error.data, c->error.size, err) < 0)
		return unreachable(err, EPROTO, "receive", NULL, "the agent sent a broken error");
	return err && err->err ? -err->err : -EPROTO;
}

/* Say that the agent's reply does not fit the schema that this client was built with. */
static int misfit(struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_INTERNAL, 0, NULL,
			     "client and agent may be of different versions",
			     "unexpected reply: %s", err ? err->message : "");
}

int rpc_client_call_typed(struct rpc_client *c, enum rpc_method m, const void *params,
			  struct rpc_arena *arena, void *ret, struct agent_err *err)
{
	const struct rpc_method_info *info = &rpc_methods[m];
	struct json_object *obj = NULL;
	auto_out struct out text = { 0 };
	struct rpc_decoder d;
	int r;

	if (params)
		rpc_encode_struct(&text, info->params, params);
	if (out_error(&text))
		return agent_err_set(err, RPC_ERROR_INTERNAL, -out_error(&text), NULL, NULL,
				     "cannot write the parameters");
	r = rpc_client_call(c, info->name, text.data, text.size, err);
	if (r < 0)
		return r;
	if (rpc_struct_is_bare(info->result)) {
		*(const char **)ret = rpc_arena_strndup(arena, c->result.data, c->result.size);
		return rpc_arena_error(arena);
	}
	r = rpc_json_parse(c->result.data, c->result.size, &obj, err);
	if (r < 0)
		return misfit(err);
	rpc_decoder_init_lenient(&d, "result", arena, err);
	r = rpc_decode_struct(&d, info->result, obj, ret);
	rpc_json_put(obj);
	return r == -EINVAL ? misfit(err) : r;
}

int rpc_client_next_notification(struct rpc_client *c, uint64_t deadline_ns,
				 struct rpc_client_notification *ret, struct agent_err *err)
{
	int r;

	while (!c->first) {
		r = c->broken ? GOT_NOTHING : read_message(c, err);
		if (r == GOT_NOTHING && c->broken)
			r = unreachable(err, ENOTCONN, "receive", NULL, "the connection is lost");
		else if (r == GOT_NOTHING)
			r = receive(c, deadline_ns, err);
		if (r < 0)
			return r;
	}
	pop_notification(c);
	memcpy(ret->method, c->current->method, sizeof(ret->method));
	ret->params = c->current->params;
	ret->params_size = c->current->size;
	return 0;
}

int rpc_client_decode(const struct rpc_client_notification *n, const struct rpc_struct *structure,
		      struct rpc_arena *arena, void *ret)
{
	struct json_object *obj = NULL;
	struct rpc_decoder d;
	int r = rpc_json_parse(n->params, n->params_size, &obj, NULL);

	if (r < 0)
		return r;
	rpc_decoder_init_lenient(&d, "params", arena, NULL);
	r = rpc_decode_struct(&d, structure, obj, ret);
	rpc_json_put(obj);
	return r;
}

int rpc_client_bytes(const char *text, uint64_t size, const char *method, struct rpc_arena *arena,
		     uint8_t **ret, struct agent_err *err)
{
	size_t n = strlen(text), decoded;

	*ret = rpc_arena_alloc(arena, n / 4 * 3 + 1);
	if (*ret && base64_decode(text, n, *ret, &decoded) == 0 && decoded == size)
		return 0;
	return agent_err_set(err, RPC_ERROR_INTERNAL, 0, method, NULL,
			     "the agent's reply holds no such bytes");
}
