/* SPDX-License-Identifier: MIT */
#include "agentd/worker/inspect/discover.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "agentd/ipc/monitor_worker.h"
#include "agentd/privileges.h"
#include "agentd/sandbox.h"
#include "agentd/worker/target/relay.h"
#include "agentd/worker/target/target.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

_Static_assert((int)IPC_VENDOR_AMD == (int)RPC_VENDOR_AMD &&
		       (int)IPC_VENDOR_NVIDIA == (int)RPC_VENDOR_NVIDIA,
	       "agentd/ipc/child.h");

static int tell(const struct worker_options *o, pid_t pid, uint32_t vendor)
{
	const struct ipc_found m = { .type = IPC_FOUND,
				     .pid = (uint32_t)pid,
				     .vendor = vendor };
	struct pollfd p = { .fd = IPC_FD_MONITOR, .events = POLLOUT };
	ssize_t n;

	while ((n = fd_send(IPC_FD_MONITOR, &m, sizeof(m), NULL, 0)) == -EAGAIN)
		if (poll(&p, 1, clock_left_ms(o->deadline_ns)) <= 0)
			return -ETIMEDOUT;
	return n < 0 ? (int)n : 0;
}

/*
 * Discover the processes of one vendor.  Most machines have devices of one vendor only, so it is no
 * error that a back end cannot list any.
 */
static int look(const struct worker_options *o, struct seen *seen, const struct target_ops *ops)
{
	auto_rpc_arena struct rpc_arena arena;
	struct agent_err err = { 0 };
	struct target_user *users;
	size_t n;
	int r = 0;

	rpc_arena_init(&arena, 0);
	if (!ops->users || ops->users(o, seen, &arena, &users, &n, &err) < 0)
		return 0;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = tell(o, users[i].pid, ops->vendor);
	return r;
}

/* Those that have mapped so much that it was not read to the end. */
static int tell_cut(const struct worker_options *o, const struct seen *seen)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < seen->n; i++)
		if (seen->list[i].what == SEEN_CUT)
			r = tell(o, (pid_t)seen->list[i].pid, IPC_VENDOR_ANY);
	return r;
}

int discover_run(const struct worker_options *o)
{
	struct seen seen;
	sigset_t none;
	int r;

	seen_init(&seen, o->peer_uid);
	/* The monitor blocked SIGTERM, which may end this worker: there is nothing to undo. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	r = privileges_become_tracer(o->peer_uid, o->peer_gid);
	if (r == 0)
		r = sandbox_look();
	for (size_t i = 0; r == 0 && target_list[i]; i++)
		r = look(o, &seen, target_list[i]);
	if (r == 0)
		r = tell_cut(o, &seen);
	seen_deinit(&seen);
	if (r < 0)
		log_error("look for GPU processes: %s", strerror(-r));
	if (relay_is_stuck())
		_exit(r < 0);
	return r < 0;
}
