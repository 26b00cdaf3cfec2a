/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/net/conn.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/frontend/net/arrivals.h"
#include "agentd/ipc/link.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/out.h"
#include "protocol/rpc_message.h"
#include "rpc_gen.h"

#define READ_SIZE	(64 * 1024)
/* Texts from this size on are not copied into the send buffer. */
#define REFERENCE_MIN	(16 * 1024)
/* A multiple of every size of a page. */
#define TEXT_PIECE	(1024 * 1024)

static const struct timeval stall_time = { .tv_sec = CONN_STALL_S };

static void unwatch(struct conn *c)
{
	struct event **const events[] = { &c->read_event, &c->write_event, &c->gone_event };

	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		if (*events[i])
			event_free(*events[i]);
		*events[i] = NULL;
	}
}

static void conn_free(struct conn *c)
{
	unwatch(c);
	if (c->out_fd >= 0)
		close(c->out_fd);
	if (c->out)
		evbuffer_free(c->out);
	rpc_wire_deinit(&c->wire);
	/* The adapter may still read from the editor's socket, and is trusted no more than the editor. */
	if (c->peer_fd != c->fd)
		closing_hand_over(&c->net->closings, c->peer_fd, c->charge);
	closing_end(&c->net->closings, c->fd, c->charge);
	arrivals_closed(c->net, c->id);
	free(c);
}

/*
 * Tell whether both halves are closed, or only the sending one: a client like socat still wants its
 * answers.  When the client is gone, the kernel has closed what lay in the socket for it.
 */
static bool is_gone(const struct conn *c)
{
	struct pollfd p = { .fd = c->fd };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR));
}

void conn_close(struct conn *c)
{
	struct net *net = c->net;

	net->ops->gone(c);
	LIST_REMOVE(c, link);
	net->n_conns--;
	if (c->fd_given && !given_is_read(c->fd) && !is_gone(c))
		given_left(&net->given, c->charge);
	conn_free(c);
	net_start_idle_timer(net);
}

/*
 * Callers of conn_send() still hold pointers to the connection: closing it is left to the write
 * event, which comes from the loop.
 */
static void close_later(struct conn *c)
{
	c->closing = c->dead = true;
	event_del(c->read_event);
	event_del(c->gone_event);
	evbuffer_drain(c->out, evbuffer_get_length(c->out));
	event_active(c->write_event, EV_WRITE, 0);
}

/* Too much unsent, or too many requests open: let the socket's buffer push back. */
static void update_reading(struct conn *c)
{
	bool pause = evbuffer_get_length(c->out) > CONN_OUT_PAUSE ||
		     c->n_requests >= CONN_PENDING_MAX || c->n_first;

	if (pause == c->paused || c->closing)
		return;
	c->paused = pause;
	if (pause) {
		event_del(c->read_event);
		event_add(c->gone_event, NULL);
		return;
	}
	event_del(c->gone_event);
	event_add(c->read_event, NULL);
	if (c->backlog)
		event_active(c->read_event, EV_READ, 0);
}

/* Nobody reads while paused; a client that leaves must lose its lease all the same. */
static void conn_gone(int fd, short what, void *user)
{
	struct conn *c = user;

	if (is_gone(c))
		conn_close(c);
}

size_t conn_unsent(const struct conn *c)
{
	return evbuffer_get_length(c->out);
}

/* A descriptor goes with one byte and not with another, so what comes before it is sent alone. */
static int write_some(struct conn *c)
{
	const char *first;
	ssize_t n;

	if (c->out_fd < 0)
		return evbuffer_write(c->out, c->fd);
	if (c->out_fd_at) {
		n = evbuffer_write_atmost(c->out, c->fd, (ev_ssize_t)c->out_fd_at);
		c->out_fd_at -= n > 0 ? (size_t)n : 0;
		return (int)n;
	}
	first = (const char *)evbuffer_pullup(c->out, 1);
	n = fd_send(c->fd, first, 1, &c->out_fd, 1);
	if (n < 0) {
		errno = (int)-n;
		return -1;
	}
	evbuffer_drain(c->out, (size_t)n);
	close(TAKE_FD(c->out_fd));
	c->fd_given = true;
	return (int)n;
}

static void conn_writable(int fd, short what, void *user)
{
	struct conn *c = user;
	size_t left = conn_unsent(c);
	bool dead = c->dead;

	if (what & EV_TIMEOUT) {
		log_info("client of pid %d does not read: dropped with %zu bytes unsent",
			 (int)c->pid, left);
		dead = true;
	} else if (left && write_some(c) < 0) {
		dead = errno != EAGAIN && errno != EINTR;
	}
	if (!dead)
		c->net->ops->drained(c);
	left = conn_unsent(c);
	if (dead || (!left && c->closing && !c->n_requests)) {
		conn_close(c);
		return;
	}
	if (left)
		event_add(c->write_event, &stall_time);
	update_reading(c);
}

static void release_text(const void *data, size_t size, void *extra)
{
	free(extra);
}

static void queue_text(struct conn *c, struct out *text)
{
	auto_out struct out frame = { 0 };
	char *data;
	size_t size;

	out_init(&frame, 0);
	if (text->size < REFERENCE_MIN) {
		rpc_wire_write(&frame, c->wire.mode, text->data, text->size);
		evbuffer_add(c->out, frame.data, frame.size);
		return;
	}
	if (out_steal(text, &data, &size) < 0)
		return;
	rpc_wire_begin(&frame, c->wire.mode, size);
	evbuffer_add(c->out, frame.data, frame.size);
	if (evbuffer_add_reference(c->out, data, size, release_text, data) < 0)
		free(data);
	out_reset(&frame);
	rpc_wire_end(&frame, c->wire.mode);
	evbuffer_add(c->out, frame.data, frame.size);
}

/* Most replies are small and the socket takes them at once. */
static bool send_now(struct conn *c, const struct out *text)
{
	auto_out struct out frame = { 0 };
	ssize_t n;

	if (text->size >= REFERENCE_MIN || evbuffer_get_length(c->out))
		return false;
	out_init(&frame, 0);
	rpc_wire_write(&frame, c->wire.mode, text->data, text->size);
	n = fd_send(c->fd, frame.data, frame.size, NULL, 0);
	if (n == (ssize_t)frame.size)
		return true;
	if (n < 0 && n != -EAGAIN) {
		close_later(c);
		return true;
	}
	evbuffer_add(c->out, frame.data + (n > 0 ? n : 0), frame.size - (size_t)(n > 0 ? n : 0));
	event_add(c->write_event, &stall_time);
	return true;
}

/* Many connections of a user together may not hold more than a few could. */
static bool is_too_much(const struct conn *c, size_t own)
{
	const struct conn *i;
	size_t sum = 0;

	if (own <= CONN_OUT_PAUSE)
		return false;
	LIST_FOREACH(i, &c->net->conns, link)
		if (i->charge == c->charge)
			sum += conn_unsent(i) + i->batched;
	return own > CONN_OUT_MAX || sum > CONN_USER_OUT_MAX;
}

bool conn_may_keep(const struct conn *c, size_t size)
{
	return size <= CONN_OUT_PAUSE / CONN_PENDING_MAX || !is_too_much(c, c->batched);
}

/* @return false when nothing can be sent; the connection is then closed, or will be. */
static bool may_send(struct conn *c, const struct out *text)
{
	if (c->dead)
		return false;
	if (!out_error(text) && !is_too_much(c, conn_unsent(c)))
		return true;
	log_info("client of pid %d dropped: %s", (int)c->pid,
		 out_error(text) ? strerror(-out_error(text)) : "it does not read");
	close_later(c);
	return false;
}

static void start_writing(struct conn *c)
{
	if (!event_pending(c->write_event, EV_WRITE, NULL))
		event_add(c->write_event, &stall_time);
}

void conn_send(struct conn *c, struct out *text)
{
	if (!may_send(c, text))
		return;
	if (!send_now(c, text)) {
		queue_text(c, text);
		start_writing(c);
	}
	update_reading(c);
}

void conn_send_fd(struct conn *c, struct out *text, int take_fd)
{
	auto_close int fd = take_fd;

	if (!may_send(c, text))
		return;
	c->out_fd_at = conn_unsent(c);
	c->out_fd = TAKE_FD(fd);
	queue_text(c, text);
	start_writing(c);
	update_reading(c);
}

int conn_check_fd(struct conn *c, bool promised, const char *method, struct agent_err *err)
{
	if (!given_may(&c->net->given, c->charge))
		return agent_err_set(err, RPC_ERROR_BUSY, ETOOMANYREFS, method,
				     "use core.read, or let the agent be restarted",
				     "too many descriptors were sent to closed connections that did not read them");
	if (promised || c->out_fd >= 0 || (c->fd_given && !given_is_read(c->fd)))
		return agent_err_set(err, RPC_ERROR_BUSY, EBUSY, method, "read the answers before",
				     "another descriptor is on its way to you");
	return 0;
}

static void unmap_text(const void *data, size_t size, void *extra)
{
	fd_memfd_unmap(data, size);
}

/* Add a text in pieces, each of which is unmapped as soon as it is sent: a long one must not stay in memory. */
static int queue_mapped(struct conn *c, const char *text, size_t size)
{
	size_t n;

	for (size_t at = 0; at < size; at += n) {
		n = size - at < TEXT_PIECE ? size - at : TEXT_PIECE;
		if (evbuffer_add_reference(c->out, text + at, n, unmap_text, NULL) < 0) {
			fd_memfd_unmap(text + at, size - at);
			return -ENOMEM;
		}
	}
	return 0;
}

void conn_send_around(struct conn *c, const struct out *begin, struct ipc_message *body,
		      const struct out *end)
{
	const size_t size = (size_t)body->head.size;
	auto_out struct out first = { 0 }, last = { 0 };

	if (!may_send(c, begin))
		return;
	out_init(&first, 0);
	rpc_wire_begin(&first, c->wire.mode, begin->size + size + end->size);
	out_bytes(&first, begin->data, begin->size);
	out_init(&last, 0);
	out_bytes(&last, end->data, end->size);
	rpc_wire_end(&last, c->wire.mode);
	if (out_error(&first) || out_error(&last) ||
	    evbuffer_add(c->out, first.data, first.size) < 0 ||
	    queue_mapped(c, TAKE_PTR(body->mapped), size) < 0) {
		close_later(c);
		return;
	}
	evbuffer_add(c->out, last.data, last.size);
	start_writing(c);
	update_reading(c);
}

void conn_request_begun(struct conn *c)
{
	c->n_requests++;
	update_reading(c);
}

void conn_request_done(struct conn *c)
{
	c->n_requests--;
	update_reading(c);
	if (c->closing && !c->n_requests)
		event_active(c->write_event, EV_WRITE, 0);
}

void conn_wait(struct conn *c)
{
	c->n_first++;
	update_reading(c);
}

void conn_go_on(struct conn *c)
{
	c->n_first--;
	update_reading(c);
}

static void refuse_framing(struct conn *c, int32_t code, const char *hint, const char *problem)
{
	struct agent_err err = { 0 };

	agent_err_set(&err, code, 0, NULL, hint, "%s", problem);
	c->net->ops->refuse(c, &err);
}

/* @return false when there is nothing to read now: told to close, held, or paused. */
static bool take_messages(struct conn *c)
{
	const char *body;
	size_t size;
	int r;

	c->backlog = false;
	while ((r = rpc_wire_next(&c->wire, &body, &size)) > 0) {
		bool first = !c->spoken;

		c->spoken = true;
		if (r == RPC_WIRE_TOO_LARGE)
			refuse_framing(c, RPC_ERROR_TOO_LARGE, "agent.hello tells the limits",
				       "the request is larger than 1 MiB");
		else
			c->net->ops->message(c, body, size, first);
		if (c->closing || c->held)
			return false;
		if (c->paused) {
			c->backlog = true;
			return false;
		}
	}
	if (r == 0)
		return true;
	refuse_framing(c, RPC_ERROR_PARSE_ERROR,
		       "send one JSON document per line, or Content-Length headers",
		       rpc_wire_problem(&c->wire));
	c->closing = true;
	event_del(c->read_event);
	event_active(c->write_event, EV_WRITE, 0);
	return false;
}

static void end_of_input(struct conn *c)
{
	const char *body;
	size_t size;
	int r;

	if (is_gone(c)) {
		/* What it sent last has been read before. */
		conn_close(c);
		return;
	}
	r = rpc_wire_finish(&c->wire, &body, &size);
	if (r == RPC_WIRE_BODY)
		c->net->ops->message(c, body, size, !c->spoken);
	else if (r < 0)
		refuse_framing(c, RPC_ERROR_PARSE_ERROR, "finish the message before closing",
			       rpc_wire_problem(&c->wire));
	c->closing = true;
	event_del(c->read_event);
	event_active(c->write_event, EV_WRITE, 0);
}

/* Parts of requests take memory for as long as their clients like. */
static bool is_too_much_in(const struct conn *c, size_t more)
{
	const struct conn *i;
	size_t sum = more;

	if (rpc_wire_unread(&c->wire) + more <= READ_SIZE)
		return false;
	LIST_FOREACH(i, &c->net->conns, link)
		if (i->charge == c->charge)
			sum += i->wire.capacity;
	return sum > CONN_USER_IN_MAX;
}

/* @return false: the connection is closed. */
static bool take_bytes(struct conn *c, const char *bytes, size_t size)
{
	const bool too_much = is_too_much_in(c, size);

	if (!too_much && rpc_wire_feed(&c->wire, bytes, size) == 0)
		return true;
	if (too_much && !conn_unsent(c))
		refuse_framing(c, RPC_ERROR_LIMIT, "finish the requests that you have begun on other connections",
			       "your user's connections have sent too much of requests that are not whole");
	conn_close(c);
	return false;
}

static void read_some(struct conn *c)
{
	static char buf[READ_SIZE];
	ssize_t n;

	if (c->backlog && !take_messages(c))
		return;
	n = fd_recv_plain(c->fd, buf, sizeof(buf));
	if (n == -EAGAIN)
		return;
	if (n == -EBADMSG && !conn_unsent(c))
		refuse_framing(c, RPC_ERROR_INVALID_REQUEST, "send none; an older client needs an update",
			       "the agent takes no descriptors");
	if (n < 0)
		conn_close(c);
	else if (n == 0)
		end_of_input(c);
	else if (take_bytes(c, buf, (size_t)n))
		take_messages(c);
}

static void conn_readable(int fd, short what, void *user)
{
	read_some(user);
}

static int watch(struct conn *c)
{
	struct event_base *base = c->net->base;

	c->read_event = event_new(base, c->fd, EV_READ | EV_PERSIST, conn_readable, c);
	c->write_event = event_new(base, c->fd, EV_WRITE, conn_writable, c);
	c->gone_event = event_new(base, c->fd, EV_CLOSED, conn_gone, c);
	return c->read_event && c->write_event && c->gone_event &&
			       event_add(c->read_event, NULL) == 0 ? 0 : -ENOMEM;
}

void conn_hold(struct conn *c)
{
	c->held = true;
	event_del(c->read_event);
	event_add(c->gone_event, NULL);
}

int conn_hand_over(struct conn *c, int take_fd)
{
	int r = fd_refuse_rights(take_fd);

	unwatch(c);
	c->held = false;
	c->fd = take_fd;
	rpc_wire_deinit(&c->wire);
	rpc_wire_init(&c->wire, 0);
	return r < 0 ? r : watch(c);
}

struct conn *conn_create(struct net *net, int take_fd, const struct ipc_client *m)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c) {
		closing_end(&net->closings, take_fd, m->charge);
		arrivals_closed(net, m->id);
		return NULL;
	}
	c->net = net;
	c->fd = c->peer_fd = take_fd;
	c->out_fd = -1;
	c->id = m->id;
	c->uid = m->uid;
	c->charge = m->charge;
	c->pid = (pid_t)m->pid;
	c->admin = m->admin;
	c->near = m->near;
	LIST_INIT(&c->requests);
	LIST_INIT(&c->attachments);
	rpc_wire_init(&c->wire, 0);
	c->out = evbuffer_new();
	if (!c->out || watch(c) < 0) {
		conn_free(c);
		return NULL;
	}
	LIST_INSERT_HEAD(&net->conns, c, link);
	net->n_conns++;
	event_del(net->idle_timer);
	return c;
}
