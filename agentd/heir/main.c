/* SPDX-License-Identifier: MIT */
/*
 * gpu-agent-heir: looks after the targets of workers that are gone.
 *
 * It is started in three ways.  One process waits for the end of the monitor, and does then what the monitor
 * can no longer do.  One does, before the monitor starts, what an earlier agent has left undone.  And the
 * monitor starts one for the target of each worker that dies.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/heir/recovery.h"
#include "agentd/ipc/child.h"
#include "agentd/privileges.h"
#include "base/argv.h"
#include "base/fd.h"
#include "base/log.h"

#define LEFTOVERS_SECONDS_MAX 3
#define POLL_PAUSE_MS	      5

static struct rescue_host host;
static struct {
	bool take_over, stuck, ended;
	uint32_t monitor, rescue, session, owner;
} opt;

static const struct argv_option options[] = {
	{ "take-over", 0, ARGV_FLAG, &opt.take_over, NULL, "do what an earlier agent left undone" },
	{ "monitor", 0, ARGV_U32, &opt.monitor, "PID", "wait for the end of that monitor" },
	{ "rescue", 0, ARGV_U32, &opt.rescue, "PID", "look after that process" },
	{ "session", 0, ARGV_U32, &opt.session, "N", "number of the dead worker's session" },
	{ "owner", 0, ARGV_U32, &opt.owner, "UID", "user for whom it worked" },
	{ "stuck", 0, ARGV_FLAG, &opt.stuck, NULL, "it had to be killed" },
	{ "ended", 0, ARGV_FLAG, &opt.ended, NULL, "it had ended its session" },
	{ "records", 0, ARGV_STRING, &host.records, "DIR", "undo records" },
	{ "kfd", 0, ARGV_STRING, &host.kfd_device, "PATH", "KFD device" },
	{ "kfd-sysfs", 0, ARGV_STRING, &host.kfd_sysfs, "DIR", "KFD topology" },
	{ "cuda-library", 0, ARGV_STRING, &host.cuda_library, "PATH", "CUDA driver library" },
	{ "verbose", 0, ARGV_FLAG, &host.verbose, NULL, "log more" },
	{ 0 },
};

/* In a child, because it may take as long as the kernel likes. */
static void release_leftovers(void)
{
	/* Nobody waits for it. */
	signal(SIGCHLD, SIG_IGN);
	if (fork() == 0) {
		signal(SIGCHLD, SIG_DFL);
		close_range(STDERR_FILENO + 1, ~0u, 0);
		alarm(LEFTOVERS_SECONDS_MAX);
		recovery_release_leftovers(&host);
		_exit(0);
	}
	/* A failed fork costs a target its wait for the next attach, no more. */
}

static int wait_for_monitor(void)
{
	struct pollfd end = { .fd = IPC_FD_TARGET, .events = POLLIN };
	bool is_root = privileges_may_become();
	int r;

	release_leftovers();
	r = is_root ? privileges_lower() : 0;
	if (r < 0)
		return r;
	while (poll(&end, 1, -1) < 0)
		if (errno != EINTR)
			poll(NULL, 0, POLL_PAUSE_MS);
	privileges_raise();
	signal(SIGCHLD, SIG_DFL);
	recovery_take_over(&host, (pid_t)opt.monitor);
	return 0;
}

static int run(void)
{
	const struct orphan o = { .target = (pid_t)opt.rescue, .pidfd = IPC_FD_TARGET, .undo_fd = IPC_FD_UNDO,
				  .session = opt.session, .owner = opt.owner, .stuck = opt.stuck,
				  .ended = opt.ended };
	int r = privileges_may_become() ? privileges_keep_attach() : 0;

	child_clean_environment();
	if (r == 0 && opt.rescue)
		rescue_run(&host, &o);
	if (r == 0 && opt.take_over)
		recovery_take_over(&host, 0);
	if (r == 0 && opt.monitor)
		r = wait_for_monitor();
	return r;
}

static int find_worker(char *ret, size_t size)
{
	static const char name[] = "/gpu-agent-worker";
	int r = child_find_directory(ret, size - sizeof(name));

	if (r == 0)
		strcat(ret, name);
	return r;
}

int main(int argc, char **argv)
{
	static const struct argv_option *const tables[] = { options, NULL };
	static char worker[PATH_MAX];
	char error[160];
	int r;

	if (fd_reserve_stdio() < 0)
		return 1;
	if (argv_parse(argc, argv, tables, error, sizeof(error)) != 0 || !host.records || !host.kfd_device ||
	    !host.kfd_sysfs || !host.cuda_library || opt.take_over + !!opt.monitor + !!opt.rescue != 1) {
		fputs("gpu-agent-heir is started by gpu-agentd\n", stderr);
		return 2;
	}
	/* To administrators this is gpu-agentd. */
	log_init("gpu-agentd", host.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	r = find_worker(worker, sizeof(worker));
	host.worker = worker;
	if (r == 0)
		r = run();
	if (r < 0)
		log_error("gpu-agent-heir: %s", strerror(-r));
	return r < 0 ? 1 : 0;
}
