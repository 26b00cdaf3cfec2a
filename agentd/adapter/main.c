/* SPDX-License-Identifier: MIT */
/*
 * gpu-agent-adapter: the debug adapter of an editor that speaks on the agent's own socket.
 *
 * It runs as the editor's user and can do less than that user: read files, and talk to the editor
 * and to the frontend, which takes its calls for the editor's.  It holds no session of its own: when it is
 * gone, the frontend sees the end of the channel, and lets the debugged process go free.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/access.h"
#include "agentd/ipc/child.h"
#include "agentd/ipc/monitor_worker.h"
#include "agentd/privileges.h"
#include "agentd/sandbox.h"
#include "base/argv.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "dap/dap.h"
#include "protocol/rpc_client.h"

/* Most bytes that the frontend can have read of an editor: a message, and what it reads at once. */
#define EARLY_MAX ((size_t)2 << 20)

static bool verbose;

static const struct argv_option options[] = {
	{ "verbose", 0, ARGV_FLAG, &verbose, NULL, "log more" },
	{ 0 },
};

/*
 * Become the editor's user.  The adapter of an agent without privileges stays what it is; the frontend
 * gives it no more than the editor's rights in any case.
 */
static int become_peer(void)
{
	auto_free gid_t *groups = NULL;
	struct ucred peer;
	socklen_t size = sizeof(peer);
	size_t n;
	int r;

	if (!privileges_may_become())
		return privileges_become(getuid(), getgid());
	if (getsockopt(IPC_FD_EDITOR, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	r = access_peer_groups(IPC_FD_EDITOR, &groups, &n);
	return r < 0 ? r : privileges_become_login(peer.uid, peer.gid, groups, n);
}

/* Give up rights, tell the monitor that this process has settled, and enter the sandbox. */
static int settle_in(void)
{
	const struct ipc_guard settled = { .type = IPC_DISARM };
	const struct rlimit no_core = { 0, 0 };
	int r = become_peer();

	if (r == 0)
		r = privileges_hide();
	if (r < 0)
		return r;
	/* The adapter ends with the monitor.  The change of user has reset this, so it is set here. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	(void)setrlimit(RLIMIT_CORE, &no_core);
	/* If the socket has no room for it, the monitor kills this process later, and the frontend says so. */
	fd_send(IPC_FD_MONITOR, &settled, sizeof(settled), NULL, 0);
	close(IPC_FD_MONITOR);
	return sandbox_adapter();
}

/* The one connection of an adapter was made before it started, so no address is needed. */
static int connect_front(const char *socket, struct rpc_client **ret, struct agent_err *err)
{
	return rpc_client_open_fd(IPC_FD_FRONT, ret, err);
}

static int serve(void)
{
	struct dap_options o = { .in_fd = IPC_FD_EDITOR,
				 .out_fd = IPC_FD_EDITOR,
				 .connect = connect_front };
	struct agent_err err = { 0 };
	const void *early;
	int r = fd_memfd_map(IPC_FD_EARLY, EARLY_MAX, &early, &o.early_size);

	if (r < 0) {
		log_error("what the editor said first: %s", strerror(-r));
		return 1;
	}
	o.early = early;
	r = dap_run(&o, &err);
	if (r < 0)
		log_info("debug adapter: %s", err.message);
	fd_memfd_unmap(early, o.early_size);
	return r < 0;
}

int main(int argc, char **argv)
{
	static const struct argv_option *const tables[] = { options, NULL };
	char error[160];
	int r;

	if (fd_reserve_stdio() < 0)
		return 1;
	if (argv_parse(argc, argv, tables, error, sizeof(error)) != 0 ||
	    fd_set_cloexec(IPC_FD_EDITOR, true) < 0 || fd_set_cloexec(IPC_FD_FRONT, true) < 0 ||
	    fd_set_cloexec(IPC_FD_EARLY, true) < 0) {
		fputs("gpu-agent-adapter is started by gpu-agentd\n", stderr);
		return 2;
	}
	log_init("gpu-agent-adapter", verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	signal(SIGPIPE, SIG_IGN);
	/* A terminal's Ctrl-C goes to all processes of the agent, but the monitor decides their order. */
	signal(SIGINT, SIG_IGN);
	r = settle_in();
	if (r < 0) {
		log_error("debug adapter cannot give up rights: %s", strerror(-r));
		return 1;
	}
	return serve();
}
