/* SPDX-License-Identifier: MIT */
/* The loop: bytes of the client, and what runs for it. */
#include "ctl/mcp/server.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "rpc_gen.h"

#define CHUNK 65536
/* Bytes that a client may leave unread before nothing more is read from it. */
#define BACKLOG_MAX ((size_t)4 << 20)
/* Milliseconds for the last words to a client that does not read. */
#define FAREWELL_MS 1000
#define OWN_FDS	    2

static size_t backlog(const struct server *s)
{
	return s->out.size - s->sent;
}

void server_send(struct server *s, const struct out *line)
{
	if (out_error(line)) {
		s->failed = out_error(line);
		return;
	}
	out_bytes(&s->out, line->data, line->size);
	out_char(&s->out, '\n');
	if (out_error(&s->out))
		s->failed = out_error(&s->out);
}

/* A client that is always a little behind must not make the buffer grow: what was written leaves it. */
static void forget_written(struct server *s)
{
	size_t left = backlog(s);

	if (s->sent < left)
		return;
	memmove(s->out.data, s->out.data + s->sent, left);
	s->out.size = left;
	s->out.data[left] = '\0';
	s->sent = 0;
}

static void flush(struct server *s)
{
	while (backlog(s) && !s->failed) {
		ssize_t n = write(s->options->out_fd, s->out.data + s->sent, backlog(s));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			s->failed = -errno;
			return;
		}
		s->sent += (size_t)n;
	}
	if (s->out.data)
		forget_written(s);
}

/* ------------------------------------------------------------------ input -------------------- */

static void on_line(struct server *s, const char *text, size_t size)
{
	struct mcp_message m;
	struct mcp_problem problem;

	while (size && strchr(" \t\r", text[0])) {
		text++;
		size--;
	}
	if (!size)
		return;
	if (mcp_message_parse(text, size, &m, &problem) == 0)
		method_run(s, &m);
	else
		answer_error(s, m.id, problem.code, problem.text);
}

static void take(struct server *s, const char *data, size_t size)
{
	const char *body;
	size_t n;
	int r;

	if (rpc_wire_feed(&s->wire, data, size) < 0) {
		s->failed = -ENOMEM;
		return;
	}
	while ((r = rpc_wire_next(&s->wire, &body, &n)) > 0 && !s->failed)
		if (r == RPC_WIRE_BODY)
			on_line(s, body, n);
		else
			answer_error(s, "", MCP_INVALID_REQUEST, "a message is longer than 1 MiB");
	if (r < 0)
		s->failed = -EPROTO;
}

static void read_some(struct server *s)
{
	char chunk[CHUNK];
	ssize_t n = read(s->options->in_fd, chunk, sizeof(chunk));
	const char *body;
	size_t size;

	if (n > 0) {
		take(s, chunk, (size_t)n);
		return;
	}
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	s->eof = true;
	if (rpc_wire_finish(&s->wire, &body, &size) == RPC_WIRE_BODY)
		on_line(s, body, size);
}

/* ------------------------------------------------------------------ the loop ----------------- */

static void step(struct server *s)
{
	/* Answers to calls stay within the limit of the buffer: only requests are not read while it is full. */
	bool listen = backlog(s) < BACKLOG_MAX;
	struct pollfd fds[OWN_FDS + CALLS_MAX * CHILD_FDS] = {
		{ .fd = listen ? s->options->in_fd : -1, .events = POLLIN },
		/* Without events, poll() tells when nobody reads any more. */
		{ .fd = s->options->out_fd, .events = backlog(s) ? POLLOUT : 0 },
	};
	size_t n = OWN_FDS + calls_list(s, fds + OWN_FDS);

	if (poll(fds, n, calls_left_ms(s)) < 0) {
		if (errno != EINTR && errno != ENOMEM && errno != EAGAIN)
			s->failed = -errno;
		return;
	}
	/* Of a socket, as some clients give, it is the hang-up that tells. */
	if (fds[1].revents & (POLLERR | POLLHUP | POLLNVAL)) {
		s->failed = -EPIPE;
		return;
	}
	calls_serve(s, fds + OWN_FDS);
	if (fds[0].revents)
		read_some(s);
}

static void deinit(struct server *s)
{
	uint64_t deadline_ns = clock_deadline_ms(FAREWELL_MS);

	calls_end(s);
	flush(s);
	while (backlog(s) && !s->failed && clock_left_ms(deadline_ns)) {
		struct pollfd p = { .fd = s->options->out_fd, .events = POLLOUT };

		if (poll(&p, 1, clock_left_ms(deadline_ns)) > 0)
			flush(s);
	}
	keep_deinit(&s->keep);
	rpc_wire_deinit(&s->wire);
	out_deinit(&s->out);
}

int mcp_run(const struct mcp_options *o, struct agent_err *err)
{
	struct server s = { .options = o };
	struct sigaction own = { .sa_handler = SIG_DFL }, before;
	int r = fd_set_nonblock(o->out_fd, true);

	if (r < 0)
		return agent_err_set(err, RPC_ERROR_FAILED, -r, "fcntl", NULL, "cannot write to the client");
	/* Where whoever has started us ignores the ends of children, waitpid() would not tell how they ended. */
	sigaction(SIGCHLD, &own, &before);
	/* What the verbs print is for no terminal. */
	unsetenv("COLUMNS");
	s.end = &s.calls;
	rpc_wire_init(&s.wire, 0);
	s.wire.mode = RPC_WIRE_LINES;
	while (!s.eof && !s.failed) {
		step(&s);
		calls_step(&s);
		flush(&s);
	}
	r = s.failed;
	deinit(&s);
	sigaction(SIGCHLD, &before, NULL);
	fd_set_nonblock(o->out_fd, false);
	/* A client that has gone without a word has left as well; that is no failure. */
	if (r == 0 || r == -EPIPE)
		return 0;
	return agent_err_set(err, RPC_ERROR_FAILED, -r, "serve the client", NULL, "cannot talk to the client: %s", strerror(-r));
}
