/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/net/listener.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "agentd/access.h"
#include "agentd/frontend/net/conn.h"
#include "agentd/frontend/net/monitor_link.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/out.h"
#include "protocol/rpc_message.h"
#include "rpc_gen.h"

#define ACCEPT_RETRY_MS 200
#define NOBODY		((uid_t)-1)
/* Descriptors that connections do not get: channels to workers, texts in memfds. */
#define KEPT_FDS	32

static unsigned count_user(const struct net *net, uid_t uid)
{
	const struct conn *c;
	unsigned n = 0;

	LIST_FOREACH(c, &net->conns, link)
		n += c->uid == uid;
	return n;
}

static void reject(struct net *net, int take_fd, uid_t uid, const char *why)
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
	closing_end(&net->closings, take_fd, uid);
}

/* The kernel gives out the lowest free number. */
static bool is_one_of_the_last(int fd)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	       (rlim_t)fd + KEPT_FDS >= limit.rlim_cur;
}

static int read_peer(const struct net *net, int fd, struct access_peer *ret)
{
	const struct access_rules rules = { net->admin_gid, ACCESS_NO_GROUP };
	int r = access_peer_read(fd, &rules, ret);

	if (r == 0)
		access_peer_deinit(ret);
	return r;
}

/* Connections beyond a limit that was lowered stay. */
void listener_set_limits(struct net *net, const struct ipc_limits *m)
{
	struct access_peer peer;
	struct conn *c;

	net->connections_max = m->connections;
	net->connections_per_user_max = m->connections_per_user;
	net->idle_ms = m->idle_ms;
	net->admin_gid = m->admin_gid;
	LIST_FOREACH(c, &net->conns, link)
		c->admin = read_peer(net, c->peer_fd, &peer) == 0 && peer.admin;
	net->idle = net->idle && !m->serve_on;
	net_update_idle(net);
	net_accept(net);
}

static void welcome(struct net *net, int fd)
{
	struct access_peer peer = { .uid = NOBODY };

	/* Descriptors are refused before anything is read, or the socket closed. */
	if (fd_refuse_rights(fd) < 0 || read_peer(net, fd, &peer) < 0) {
		closing_end(&net->closings, fd, peer.uid);
		return;
	}
	if (net->n_conns >= net->connections_max || is_one_of_the_last(fd))
		reject(net, fd, peer.uid, "the agent has too many connections");
	else if (count_user(net, peer.uid) >= net->connections_per_user_max)
		reject(net, fd, peer.uid, "your user has too many connections to the agent");
	else if (closing_is_blocked(&net->closings, peer.uid))
		reject(net, fd, peer.uid, "descriptors that your user has sent cannot be closed");
	else if (!conn_create(net, fd, &peer))
		log_error("out of memory for a connection");
	else
		net->n_accepted++;
}

static void acceptable(int listen_fd, short what, void *user)
{
	const struct timeval retry = { .tv_usec = ACCEPT_RETRY_MS * 1000 };
	struct net *net = user;
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		welcome(net, fd);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		log_warning("cannot accept: %s; waiting", strerror(errno));
		event_del(net->accept_event);
		event_add(net->accept_retry, &retry);
	}
}

static void accept_again(int fd, short what, void *user)
{
	struct net *net = user;

	event_add(net->accept_event, NULL);
}

static void idle(int fd, short what, void *user)
{
	struct net *net = user;

	if (net->ops->is_busy(net)) {
		net_start_idle_timer(net); /* A target is still being released. */
		return;
	}
	/*
	 * A client that connects from now on waits, is left to the next instance, or is refused,
	 * but it is not cut off.
	 */
	net->idle = true;
	event_del(net->accept_event);
	monitor_link_note(net->monitor, IPC_NOTE_IDLE, 0);
}

int listener_init(struct net *net, int listen_fd)
{
	net->accept_event = event_new(net->base, listen_fd, EV_READ | EV_PERSIST, acceptable, net);
	net->accept_retry = event_new(net->base, -1, 0, accept_again, net);
	net->idle_timer = event_new(net->base, -1, 0, idle, net);
	if (!net->accept_event || !net->accept_retry || !net->idle_timer ||
	    event_add(net->accept_event, NULL) < 0)
		return -ENOMEM;
	net_start_idle_timer(net);
	return 0;
}

void listener_deinit(struct net *net)
{
	struct event *const events[] = { net->accept_event, net->accept_retry, net->idle_timer };

	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (events[i])
			event_free(events[i]);
}
