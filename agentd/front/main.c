/* SPDX-License-Identifier: MIT */
/*
 * gpu-agent-front: serves the socket.
 *
 * Everything that strangers send is parsed here, by a process that holds nothing worth stealing: no
 * privileges, no file, no way to open one.  What needs rights is asked of spawn, what concerns a
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

#include "agentd/front/closing.h"
#include "agentd/front/conn.h"
#include "agentd/front/session.h"
#include "agentd/front/spawner.h"
#include "agentd/front/suspensions.h"
#include "agentd/privileges.h"
#include "agentd/sandbox.h"
#include "base/argv.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#define NOBODY UINT32_MAX

static struct front front;
static uint32_t uid = NOBODY, gid = NOBODY;
static bool verbose;

static const struct argv_option options[] = {
	{ "uid", 0, ARGV_U32, &uid, "UID", "become this user" },
	{ "gid", 0, ARGV_U32, &gid, "GID", "and this group" },
	{ "admin-gid", 0, ARGV_U32, &front.admin_gid, "GID", "administrators" },
	{ "connections", 0, ARGV_U32, &front.connections_max, "N", "most connections" },
	{ "connections-per-user", 0, ARGV_U32, &front.connections_per_user_max, "N",
	  "most connections of a user" },
	{ "sessions-per-user", 0, ARGV_U32, &front.sessions_per_user_max, "N",
	  "most sessions of a user, for agent.hello" },
	{ "silent-holder-ms", 0, ARGV_U32, &front.silent_holder_ms, "MS",
	  "others may take the lease of who asks for nothing for this time" },
	{ "idle-ms", 0, ARGV_U32, &front.idle_ms, "MS", "report idleness after this time" },
	{ "user", 0, ARGV_FLAG, &front.user_mode, NULL, "unprivileged mode" },
	{ "verbose", 0, ARGV_FLAG, &verbose, NULL, "log more" },
	{ 0 },
};

static int serve(struct front *f)
{
	struct event_config *config = event_config_new();
	int r = -ENOMEM;

	if (config) {
		/* The precise timers would cost a descriptor and a system call for each change. */
		event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
		f->base = event_base_new_with_config(config);
		event_config_free(config);
	}
	if (f->base)
		r = spawner_init(f, IPC_FD_SPAWN);
	if (r == 0)
		r = closing_init(f);
	if (r == 0)
		r = conn_listen(f, IPC_FD_LISTEN);
	if (r == 0)
		r = sandbox_front();
	if (r < 0) {
		log_error("front cannot start: %s", strerror(-r));
		return 1;
	}
	spawner_note(f, IPC_NOTE_READY, 0);
	event_base_dispatch(f->base);
	return 0;
}

/* Clients see end of file; the workers' channels close, so that they let go of their targets. */
static void deinit(struct front *f)
{
	f->spawn_fd = -1; /* nothing more to tell */
	while (!LIST_EMPTY(&f->conns))
		conn_close(LIST_FIRST(&f->conns));
	while (!LIST_EMPTY(&f->sessions))
		session_destroy(LIST_FIRST(&f->sessions));
	spawner_deinit(f);
	closing_deinit(f);
	suspensions_deinit(f);
	free(f->rules);
	if (!f->base)
		return;
	event_free(f->accept_event);
	event_free(f->accept_retry);
	event_free(f->idle_timer);
	event_free(f->spawn_event);
	event_base_free(f->base);
}

int main(int argc, char **argv)
{
	static const struct argv_option *const tables[] = { options, NULL };
	char error[160];
	int r;

	front.admin_gid = NOBODY;
	if (argv_parse(argc, argv, tables, error, sizeof(error)) != 0 || uid == NOBODY ||
	    gid == NOBODY || !front.connections_max) {
		fputs("gpu-agent-front is started by gpu-agentd\n", stderr);
		return 2;
	}
	log_init("gpu-agent-front", verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	/* The terminal's Ctrl-C goes to all; spawn decides the order of leaving. */
	signal(SIGINT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	fd_set_cloexec(IPC_FD_LISTEN, true);
	fd_set_cloexec(IPC_FD_SPAWN, true);
	r = privileges_become(uid, gid);
	if (r == 0)
		r = privileges_hide();
	if (r < 0) {
		log_error("front cannot drop privileges: %s", strerror(-r));
		return 1;
	}
	front.started_ns = clock_now_ns();
	front.daemon_pid = getppid();
	r = serve(&front);
	deinit(&front);
	return r;
}
