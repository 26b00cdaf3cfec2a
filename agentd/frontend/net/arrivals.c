/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/net/arrivals.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agentd/frontend/net/conn.h"
#include "agentd/frontend/net/monitor_link.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/out.h"
#include "protocol/rpc_message.h"
#include "rpc_gen.h"

#define RETRY_MS 50
/* So many arrivals are told at once: with IPC_CLIENTS_UNTOLD the monitor need not wait. */
#define TOLD_AT_ONCE (IPC_CLIENTS_UNTOLD / 2)
/* Descriptors that connections do not get: channels to workers, texts in memfds. */
#define KEPT_FDS 32

/* ------------------------------------------------------------------ telling the monitor ------ */

/* The kernel gives out the lowest free number. */
static bool is_one_of_the_last(int fd, unsigned n)
{
	struct rlimit limit;

	return fd < 0 || (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
			  (rlim_t)fd + n >= limit.rlim_cur);
}

/* While few descriptors are left the monitor is not told of arrivals, so that it sends no more. */
static bool has_room(const struct net *net)
{
	auto_close int fd = fcntl(net->monitor->fd, F_DUPFD_CLOEXEC, 0);

	return !is_one_of_the_last(fd, KEPT_FDS + IPC_CLIENTS_UNTOLD);
}

static bool is_due(const struct net *net)
{
	return net->n_closed || (net->n_taken >= TOLD_AT_ONCE && has_room(net));
}

static int tell_some(struct net *net)
{
	struct ipc_clients m = { .type = IPC_CLIENTS, .taken = net->n_taken };
	int r;

	m.n_closed = net->n_closed < IPC_CLIENTS_CLOSED ? (uint16_t)net->n_closed : IPC_CLIENTS_CLOSED;
	memcpy(m.closed, net->closed + net->n_closed - m.n_closed, m.n_closed * sizeof(m.closed[0]));
	r = monitor_link_try(net->monitor, &m, sizeof(m));
	if (r < 0)
		return r;
	net->n_taken = 0;
	net->n_closed -= m.n_closed;
	return 0;
}

/* A monitor that is too busy for it now is told later: nothing waits for that. */
static void tell(struct net *net)
{
	const struct timeval later = { .tv_usec = RETRY_MS * 1000 };
	int r = 0;

	while (r == 0 && is_due(net))
		r = tell_some(net);
	if (net->n_closed || net->n_taken >= TOLD_AT_ONCE)
		event_add(net->retry, &later);
}

static void tell_again(int fd, short what, void *user)
{
	tell(user);
}

void arrivals_closed(struct net *net, uint64_t id)
{
	if (!id)
		return;
	/* It has given out no more ids than fit. */
	if (net->n_closed < IPC_CLIENTS_MAX)
		net->closed[net->n_closed++] = id;
	tell(net);
}

/* ------------------------------------------------------------------ arrivals ----------------- */

static void reject(struct net *net, const struct ipc_client *m, int take_fd, const char *why)
{
	auto_out struct out text = { 0 }, frame = { 0 };
	struct agent_err err = { 0 };

	net->n_refused++;
	agent_err_set(&err, RPC_ERROR_LIMIT, 0, "connect", "close connections you no longer need",
		      "%s", why);
	out_init(&text, 512);
	out_init(&frame, 1024);
	rpc_message_error(&text, NULL, 0, &err);
	rpc_wire_write(&frame, RPC_WIRE_LINES, text.data, text.size);
	(void)fd_send(take_fd, frame.data, frame.size, NULL, 0);
	closing_end(&net->closings, take_fd, m->charge);
	arrivals_closed(net, m->id);
}

static void welcome(struct net *net, const struct ipc_client *m, int take_fd)
{
	if (m->class == IPC_CLASS_TOO_MANY || is_one_of_the_last(take_fd, KEPT_FDS))
		reject(net, m, take_fd, "the agent has too many connections");
	else if (m->class == IPC_CLASS_TOO_MANY_OF_USER)
		reject(net, m, take_fd, "your user has too many connections to the agent");
	else if (m->class != IPC_CLASS_SERVED)
		closing_end(&net->closings, take_fd, m->charge);
	else if (closing_is_blocked(&net->closings, m->charge))
		reject(net, m, take_fd, "descriptors that your user has sent cannot be closed");
	else if (!conn_create(net, take_fd, m))
		log_error("out of memory for a connection");
	else
		net->n_accepted++;
}

static struct conn *find(struct net *net, uint64_t id)
{
	struct conn *c;

	LIST_FOREACH(c, &net->conns, link)
		if (c->id == id)
			return c;
	return NULL;
}

static void about_one_of_ours(struct net *net, const struct ipc_client *m)
{
	struct conn *c = find(net, m->id);

	if (c && m->class == IPC_CLASS_OVER) {
		conn_close(c);
	} else if (c) {
		c->admin = m->admin;
		c->near = m->near;
	}
}

void arrivals_received(struct net *net, const struct ipc_client *m, int take_fd)
{
	if (m->class == IPC_CLASS_OVER || m->class == IPC_CLASS_CHANGED) {
		about_one_of_ours(net, m);
		return;
	}
	net->n_taken++;
	if (take_fd >= 0)
		welcome(net, m, take_fd);
	else
		arrivals_closed(net, m->id);
	tell(net);
}

/* Connections beyond a limit that was lowered stay. */
void arrivals_set_limits(struct net *net, const struct ipc_limits *m)
{
	net->connections_max = m->connections;
	net->connections_per_user_max = m->connections_per_user;
	net->idle_ms = m->idle_ms;
	net->idle = net->idle && !m->serve_on;
	net_update_idle(net);
}

/* ------------------------------------------------------------------ idleness ----------------- */

static void idle(int fd, short what, void *user)
{
	struct net *net = user;

	/* Arrivals that were not told would look to the monitor like somebody who has just come. */
	if (net->ops->is_busy(net) || (net->n_taken && tell_some(net) < 0)) {
		net_start_idle_timer(net);
		return;
	}
	/*
	 * A client that connects from now on waits, is left to the next instance, or is refused,
	 * but it is not cut off.
	 */
	net->idle = true;
	monitor_link_note(net->monitor, IPC_NOTE_IDLE, 0);
}

int arrivals_init(struct net *net)
{
	net->retry = event_new(net->base, -1, 0, tell_again, net);
	net->idle_timer = event_new(net->base, -1, 0, idle, net);
	if (!net->retry || !net->idle_timer)
		return -ENOMEM;
	net_start_idle_timer(net);
	return 0;
}

void arrivals_deinit(struct net *net)
{
	struct event *const events[] = { net->retry, net->idle_timer };

	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (events[i])
			event_free(events[i]);
}
