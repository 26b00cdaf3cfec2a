/* SPDX-License-Identifier: MIT */
#include "agentd/front/conn.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/access.h"
#include "agentd/front/adapters.h"
#include "agentd/front/closing.h"
#include "agentd/front/given.h"
#include "agentd/front/request.h"
#include "agentd/front/rules.h"
#include "agentd/front/session.h"
#include "agentd/front/spawner.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/out.h"
#include "protocol/rpc_message.h"

#define READ_SIZE	(64 * 1024)
#define REFERENCE_MIN	(16 * 1024) /* larger texts are not copied into the send buffer */
#define ACCEPT_RETRY_MS 200
#define NOBODY		((uid_t)-1)
#define KEPT_FDS	32 /* not for connections: channels to workers, texts in memfds */

static const struct timeval stall_time = { .tv_sec = CONN_STALL_S };

struct attachment *conn_attachment(struct conn *c, const char *session_id)
{
	struct attachment *a;

	LIST_FOREACH(a, &c->attachments, in_conn)
		if (!strcmp(a->session->id, session_id) && !a->session->over &&
		    !a->session->closing)
			return a;
	return NULL;
}

static void start_idle_timer(struct front *f)
{
	const struct timeval tv = { .tv_sec = f->idle_ms / 1000,
				    .tv_usec = (f->idle_ms % 1000) * 1000 };

	if (f->idle_ms && !f->n_conns && !f->idle && !rules_exist(f))
		event_add(f->idle_timer, &tv);
}

void conn_update_idle(struct front *f)
{
	event_del(f->idle_timer);
	start_idle_timer(f);
}

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
	/* The adapter may still read from the editor, and is no more trusted than he is. */
	if (c->peer_fd != c->fd)
		closing_hand_over(c->front, c->peer_fd, c->uid);
	closing_end(c->front, c->fd, c->uid);
	free(c);
}

/*
 * Both halves closed, or only the sending one?  A client like socat still wants its answers.  Of one
 * that is gone, what lay there for it is closed.
 */
static bool is_gone(const struct conn *c)
{
	struct pollfd p = { .fd = c->fd };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR));
}

static void accept_on(struct front *f)
{
	if (!f->idle && !event_pending(f->accept_event, EV_READ, NULL))
		event_add(f->accept_event, NULL);
}

void conn_close(struct conn *c)
{
	struct front *f = c->front;

	while (!LIST_EMPTY(&c->attachments))
		session_leave(LIST_FIRST(&c->attachments));
	if (c->store)
		session_close(c->store);
	while (!LIST_EMPTY(&c->requests))
		request_orphan(LIST_FIRST(&c->requests));
	LIST_REMOVE(c, link);
	f->n_conns--;
	if (c->fd_given && !given_is_read(c->fd) && !is_gone(c))
		given_left(f, c->uid);
	conn_free(c);
	start_idle_timer(f);
	accept_on(f); /* a descriptor is free again */
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
		     c->n_requests >= CONN_PENDING_MAX;

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

/* It reads again: what waited for that may go. */
static void send_notices(struct conn *c)
{
	struct attachment *a;

	LIST_FOREACH(a, &c->attachments, in_conn)
		notices_flush(&a->notices, c, false);
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
		send_notices(c);
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
	LIST_FOREACH(i, &c->front->conns, link)
		if (i->uid == c->uid)
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
	if (!given_may(c->front, c->uid))
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
	    evbuffer_add_reference(c->out, body->mapped, size, unmap_text, NULL) < 0) {
		close_later(c);
		return;
	}
	body->mapped = NULL;
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

static void refuse_framing(struct conn *c, int32_t code, const char *hint, const char *problem)
{
	struct agent_err err = { 0 };

	agent_err_set(&err, code, 0, NULL, hint, "%s", problem);
	request_refuse(c, &err);
}

/* @return false when there is nothing to read now: told to close, or paused. */
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
		else if (first && adapters_begin(c, body, size))
			return false;
		else
			request_receive(c, body, size);
		if (c->closing)
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
		request_receive(c, body, size);
	else if (r < 0)
		refuse_framing(c, RPC_ERROR_PARSE_ERROR, "finish the message before closing",
			       rpc_wire_problem(&c->wire));
	c->closing = true;
	event_del(c->read_event);
	event_active(c->write_event, EV_WRITE, 0);
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
	if (n < 0 || (n > 0 && rpc_wire_feed(&c->wire, buf, (size_t)n) < 0)) {
		conn_close(c);
		return;
	}
	if (n == 0)
		end_of_input(c);
	else
		take_messages(c);
}

static void conn_readable(int fd, short what, void *user)
{
	read_some(user);
}

static int watch(struct conn *c)
{
	struct event_base *base = c->front->base;

	c->read_event = event_new(base, c->fd, EV_READ | EV_PERSIST, conn_readable, c);
	c->write_event = event_new(base, c->fd, EV_WRITE, conn_writable, c);
	c->gone_event = event_new(base, c->fd, EV_CLOSED, conn_gone, c);
	return c->read_event && c->write_event && c->gone_event &&
			       event_add(c->read_event, NULL) == 0 ? 0 : -ENOMEM;
}

void conn_hold(struct conn *c)
{
	event_del(c->read_event);
	event_add(c->gone_event, NULL);
}

int conn_hand_over(struct conn *c, int take_fd)
{
	int r = fd_refuse_rights(take_fd);

	unwatch(c);
	c->fd = take_fd;
	rpc_wire_deinit(&c->wire);
	rpc_wire_init(&c->wire, 0);
	return r < 0 ? r : watch(c);
}

static unsigned count_user(const struct front *f, uid_t uid)
{
	const struct conn *c;
	unsigned n = 0;

	LIST_FOREACH(c, &f->conns, link)
		n += c->uid == uid;
	return n;
}

static void reject(struct front *f, int take_fd, uid_t uid, const char *why)
{
	auto_out struct out text = { 0 }, frame = { 0 };
	struct agent_err err = { 0 };

	agent_err_set(&err, RPC_ERROR_LIMIT, 0, "connect", "close connections you no longer need",
		      "%s", why);
	out_init(&text, 512);
	out_init(&frame, 1024);
	rpc_message_error(&text, NULL, 0, &err);
	rpc_wire_write(&frame, RPC_WIRE_LINES, text.data, text.size);
	(void)fd_send(take_fd, frame.data, frame.size, NULL, 0);
	closing_end(f, take_fd, uid);
}

static struct conn *conn_create(struct front *f, int take_fd, const struct access_peer *peer)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c) {
		closing_end(f, take_fd, peer->uid);
		return NULL;
	}
	c->front = f;
	c->fd = c->peer_fd = take_fd;
	c->out_fd = -1;
	c->uid = peer->uid;
	c->pid = peer->pid;
	c->admin = peer->admin;
	LIST_INIT(&c->requests);
	LIST_INIT(&c->attachments);
	rpc_wire_init(&c->wire, 0);
	c->out = evbuffer_new();
	if (!c->out || watch(c) < 0) {
		conn_free(c);
		return NULL;
	}
	LIST_INSERT_HEAD(&f->conns, c, link);
	f->n_conns++;
	event_del(f->idle_timer);
	return c;
}

/* The kernel gives out the lowest free number. */
static bool is_one_of_the_last(int fd)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	       (rlim_t)fd + KEPT_FDS >= limit.rlim_cur;
}

static int read_peer(const struct front *f, int fd, struct access_peer *ret)
{
	const struct access_rules rules = { f->admin_gid, ACCESS_NO_GROUP };
	int r = access_peer_read(fd, &rules, ret);

	if (r == 0)
		access_peer_deinit(ret);
	return r;
}

/* More connections than are allowed now stay. */
void conn_set_limits(struct front *f, const struct ipc_limits *m)
{
	struct access_peer peer;
	struct conn *c;

	f->connections_max = m->connections;
	f->connections_per_user_max = m->connections_per_user;
	f->sessions_per_user_max = m->sessions_per_user;
	f->idle_ms = m->idle_ms;
	f->silent_holder_ms = m->silent_holder_ms;
	f->admin_gid = m->admin_gid;
	LIST_FOREACH(c, &f->conns, link)
		c->admin = read_peer(f, c->peer_fd, &peer) == 0 && peer.admin;
	f->idle = f->idle && !m->serve_on;
	conn_update_idle(f);
	accept_on(f);
}

static void welcome(struct front *f, int fd)
{
	struct access_peer peer = { .uid = NOBODY };

	/* Before anything is read, or the socket closed. */
	if (fd_refuse_rights(fd) < 0 || read_peer(f, fd, &peer) < 0) {
		closing_end(f, fd, peer.uid);
		return;
	}
	if (f->n_conns >= f->connections_max || is_one_of_the_last(fd))
		reject(f, fd, peer.uid, "the agent has too many connections");
	else if (count_user(f, peer.uid) >= f->connections_per_user_max)
		reject(f, fd, peer.uid, "your user has too many connections to the agent");
	else if (closing_is_blocked(f, peer.uid))
		reject(f, fd, peer.uid, "descriptors that your user has sent cannot be closed");
	else if (!conn_create(f, fd, &peer))
		log_error("out of memory for a connection");
}

static void acceptable(int listen_fd, short what, void *user)
{
	const struct timeval retry = { .tv_usec = ACCEPT_RETRY_MS * 1000 };
	struct front *f = user;
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		welcome(f, fd);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		log_warning("cannot accept: %s; waiting", strerror(errno));
		event_del(f->accept_event);
		event_add(f->accept_retry, &retry);
	}
}

static void accept_again(int fd, short what, void *user)
{
	struct front *f = user;

	event_add(f->accept_event, NULL);
}

static void idle(int fd, short what, void *user)
{
	struct front *f = user;

	if (!LIST_EMPTY(&f->sessions)) {
		start_idle_timer(f); /* a target is being released */
		return;
	}
	/* Who connects from now on waits, is left to the next instance, or refused, but not cut off. */
	f->idle = true;
	event_del(f->accept_event);
	spawner_note(f, IPC_NOTE_IDLE, 0);
}

int conn_listen(struct front *f, int listen_fd)
{
	f->accept_event = event_new(f->base, listen_fd, EV_READ | EV_PERSIST, acceptable, f);
	f->accept_retry = event_new(f->base, -1, 0, accept_again, f);
	f->idle_timer = event_new(f->base, -1, 0, idle, f);
	if (!f->accept_event || !f->accept_retry || !f->idle_timer ||
	    event_add(f->accept_event, NULL) < 0)
		return -ENOMEM;
	start_idle_timer(f);
	return 0;
}
