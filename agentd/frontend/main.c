/* SPDX-License-Identifier: MIT */
/*
 * gpu-agent-front: serves the socket.
 *
 * Everything that strangers send is parsed here, by a process that holds nothing worth stealing: no
 * privileges, no file, no way to open one.  What needs rights is asked of the monitor, what concerns a
 * target goes to that target's worker.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/frontend/method/adapters.h"
#include "agentd/frontend/method/frontend.h"
#include "agentd/frontend/method/handlers.h"
#include "agentd/frontend/method/hooks.h"
#include "agentd/frontend/net/arrivals.h"
#include "agentd/frontend/net/closing.h"
#include "agentd/frontend/rpc/notices.h"
#include "agentd/frontend/rpc/request.h"
#include "agentd/frontend/rpc/start.h"
#include "agentd/frontend/session/attachment.h"
#include "agentd/frontend/session/readers.h"
#include "agentd/frontend/session/rules.h"
#include "agentd/frontend/session/suspensions.h"
#include "agentd/frontend/session/watch.h"
#include "agentd/frontend/session/worker.h"
#include "agentd/privileges.h"
#include "agentd/sandbox.h"
#include "base/argv.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#define NOBODY UINT32_MAX

static struct frontend front;
static uint32_t uid = NOBODY, gid = NOBODY;
static bool verbose;

static const struct argv_option options[] = {
	{ "uid", 0, ARGV_U32, &uid, "UID", "become this user" },
	{ "gid", 0, ARGV_U32, &gid, "GID", "and this group" },
	{ "connections", 0, ARGV_U32, &front.net.connections_max, "N", "most connections" },
	{ "connections-per-user", 0, ARGV_U32, &front.net.connections_per_user_max, "N",
	  "most connections of a user" },
	{ "sessions-per-user", 0, ARGV_U32, &front.sessions_per_user_max, "N",
	  "most sessions of a user, for agent.hello" },
	{ "silent-holder-ms", 0, ARGV_U32, &front.sessions.silent_holder_ms, "MS",
	  "others may take the lease of who asks for nothing for this time" },
	{ "idle-ms", 0, ARGV_U32, &front.net.idle_ms, "MS", "report idleness after this time" },
	{ "user", 0, ARGV_FLAG, &front.user_mode, NULL, "unprivileged mode" },
	{ "verbose", 0, ARGV_FLAG, &verbose, NULL, "log more" },
	{ 0 },
};

/* ------------------------------------------------------------------ what clients do ---------- */

static void on_message(struct conn *c, const char *body, size_t size, bool first)
{
	struct frontend *f = c->net->owner;

	if (!first || !adapters_begin(f, c, body, size))
		request_receive(&f->requests, c, body, size);
}

static void on_refuse(struct conn *c, const struct agent_err *err)
{
	struct frontend *f = c->net->owner;

	request_refuse(&f->requests, c, err);
}

/* The client reads again: notices that waited for that may go. */
static void on_drained(struct conn *c)
{
	struct attachment *a;

	LIST_FOREACH(a, &c->attachments, in_conn)
		notices_flush(&a->notices, c, false);
}

static void on_gone(struct conn *c)
{
	while (!LIST_EMPTY(&c->attachments))
		attachment_leave(LIST_FIRST(&c->attachments));
	if (c->store)
		session_close(c->store);
	while (!LIST_EMPTY(&c->requests))
		request_orphan(LIST_FIRST(&c->requests));
}

static bool is_busy(struct net *net)
{
	const struct frontend *f = net->owner;

	return !LIST_EMPTY(&f->sessions.list);
}

static const struct net_ops net_ops = {
	.message = on_message,
	.refuse = on_refuse,
	.drained = on_drained,
	.gone = on_gone,
	.is_busy = is_busy,
};

/* ------------------------------------------------------------------ what the monitor says ---------- */

static void on_client(void *owner, const struct ipc_client *m, int take_fd)
{
	struct frontend *f = owner;

	arrivals_received(&f->net, m, take_fd);
}

static void on_started(void *owner, const struct ipc_started *m, int take_channel)
{
	struct frontend *f = owner;

	start_answered(&f->starts, m, take_channel);
}

static void on_unwanted(void *owner, const struct ipc_started *m, int take_channel)
{
	struct frontend *f = owner;

	worker_create_orphan(&f->sessions, m, take_channel);
}

static void on_ended(void *owner, const struct ipc_ended *m)
{
	struct frontend *f = owner;
	struct session *s = session_find_worker(&f->sessions, m->worker);

	if (s)
		worker_ended(s, m);
}

static void on_hooked(void *owner, const struct ipc_hooked *m, int take_fd)
{
	hooks_answered(owner, m, take_fd);
}

static void on_watch(void *owner, const struct ipc_watch *m, int take_channel)
{
	struct frontend *f = owner;

	watch_received(&f->sessions, m, take_channel);
}

static void on_rule_name(void *owner, const struct ipc_rule_name *m)
{
	struct frontend *f = owner;

	rules_named(&f->sessions, m);
}

static void on_limits(void *owner, const struct ipc_limits *m)
{
	struct frontend *f = owner;

	f->sessions_per_user_max = m->sessions_per_user;
	f->sessions.silent_holder_ms = m->silent_holder_ms;
	arrivals_set_limits(&f->net, m);
}

static void on_closer(void *owner, const struct ipc_closer *m)
{
	struct frontend *f = owner;

	closing_received(&f->net.closings, m);
}

static void on_owed(void *owner)
{
	struct frontend *f = owner;

	f->n_owed++;
}

static void on_replaced(void *owner)
{
	struct frontend *f = owner;

	f->replaced = true;
}

static const struct monitor_link_ops monitor_link_ops = {
	.client = on_client,
	.started = on_started,
	.ended = on_ended,
	.hooked = on_hooked,
	.watch = on_watch,
	.rule_name = on_rule_name,
	.limits = on_limits,
	.closer = on_closer,
	.owed = on_owed,
	.replaced = on_replaced,
};

/* ------------------------------------------------------------------ the process -------------- */

/* A directory knows those above it only by the functions and pointers that are entered here. */
static void connect_rooms(struct frontend *f, struct event_base *base)
{
	f->monitor.ops = &monitor_link_ops;
	f->monitor.owner = f->net.owner = f->requests.owner = f->starts.owner = f;
	f->monitor.base = f->net.base = f->net.closings.base = base;
	f->requests.base = f->sessions.base = base;
	f->net.ops = &net_ops;
	f->net.monitor = f->net.closings.monitor = &f->monitor;
	f->requests.run = handlers_run;
	f->starts.monitor = f->sessions.monitor = &f->monitor;
	f->starts.unwanted = on_unwanted;
	f->sessions.net = &f->net;
	f->sessions.starts = &f->starts;
}

static struct event_base *make_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base;

	if (!config)
		return NULL;
	/* The precise timers would cost a descriptor and a system call for each change. */
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	base = event_base_new_with_config(config);
	event_config_free(config);
	return base;
}

static int serve(struct frontend *f, struct event_base *base)
{
	int r = base ? 0 : -ENOMEM;

	connect_rooms(f, base);
	if (r == 0)
		r = monitor_link_init(&f->monitor, IPC_FD_MONITOR);
	if (r == 0)
		r = closing_init(&f->net.closings);
	if (r == 0)
		r = arrivals_init(&f->net);
	if (r == 0)
		r = sandbox_front();
	if (r < 0) {
		log_error("front cannot start: %s", strerror(-r));
		return 1;
	}
	monitor_link_note(&f->monitor, IPC_NOTE_READY, 0);
	event_base_dispatch(base);
	return 0;
}

/* Clients see end of file; the workers' channels close, so that they let go of their targets. */
static void deinit(struct frontend *f)
{
	f->monitor.fd = -1; /* There is nothing more to tell. */
	while (!LIST_EMPTY(&f->net.conns))
		conn_close(LIST_FIRST(&f->net.conns));
	while (!LIST_EMPTY(&f->sessions.list))
		worker_destroy(LIST_FIRST(&f->sessions.list));
	start_deinit(&f->starts);
	closing_deinit(&f->net.closings);
	suspensions_deinit(&f->sessions);
	readers_deinit(&f->sessions);
	listing_deinit(&f->listings);
	free(f->sessions.rules);
	arrivals_deinit(&f->net);
	monitor_link_deinit(&f->monitor);
}

int main(int argc, char **argv)
{
	static const struct argv_option *const tables[] = { options, NULL };
	struct event_base *base;
	char error[160];
	int r;

	if (argv_parse(argc, argv, tables, error, sizeof(error)) != 0 || uid == NOBODY ||
	    gid == NOBODY || !front.net.connections_max) {
		fputs("gpu-agent-front is started by gpu-agentd\n", stderr);
		return 2;
	}
	log_init("gpu-agent-front", verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	/* A terminal's Ctrl-C goes to all processes; the monitor decides the order of their ends. */
	signal(SIGINT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	fd_set_cloexec(IPC_FD_MONITOR, true);
	r = privileges_become(uid, gid);
	if (r == 0)
		r = privileges_hide();
	if (r < 0) {
		log_error("front cannot drop privileges: %s%s", strerror(-r),
			  r == -EPERM ? "; gpu-agentd as root needs CAP_SETUID and CAP_SETGID" : "");
		return 1;
	}
	front.started_ns = clock_now_ns();
	front.started_wall_us = clock_wall_us();
	front.daemon_pid = getppid();
	base = make_base();
	r = serve(&front, base);
	deinit(&front);
	if (base)
		event_base_free(base);
	return r;
}
