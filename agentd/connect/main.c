/* SPDX-License-Identifier: MIT */
/*
 * gpu-agent-connect: makes the one connection that a CUDA worker needs.
 *
 * NVIDIA's library, inside the worker, connects to its other half in the target by a name of the
 * target's network namespace.  The worker has a network namespace without anything in it, and may not
 * connect to anybody: the kernel asks this process instead, which has the machine's network
 * namespace, and no other right.  It is started for each worker, by a service manager or the monitor.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agentd/connect/broker.h"
#include "agentd/landlock.h"
#include "agentd/privileges.h"
#include "agentd/sandbox.h"
#include "base/argv.h"
#include "base/fd.h"
#include "base/log.h"

#define NOBODY UINT32_MAX

static struct {
	uint32_t uid, gid;
	bool verbose;
} opt = { .uid = NOBODY, .gid = NOBODY };

static const struct argv_option options[] = {
	{ "uid", 0, ARGV_U32, &opt.uid, "UID", "become this user" },
	{ "gid", 0, ARGV_U32, &opt.gid, "GID", "and this group" },
	{ "verbose", 0, ARGV_FLAG, &opt.verbose, NULL, "log more" },
	{ 0 },
};

static int confine(void)
{
	int r = privileges_become(opt.uid == NOBODY ? getuid() : opt.uid, opt.gid == NOBODY ? getgid() : opt.gid);

	if (r == 0)
		r = privileges_hide();
	if (r == 0)
		r = landlock_forbid_files();
	return r < 0 ? r : sandbox_connect();
}

static int fail(const char *what, int r)
{
	log_error("%s: %s", what, strerror(-r));
	return 1;
}

static int run(struct broker *b)
{
	/* Whoever may connect to the socket's path; the monitor gives its connections away after that. */
	int r = privileges_check_peer(b->channel);

	if (r < 0)
		return fail("whoever connected", r);
	r = broker_prepare(b);
	if (r < 0)
		return fail("the kernel or its library cannot tell of system calls", r);
	/* While an administrator's capability is there, if any. */
	r = broker_meet_monitor(b);
	if (r < 0)
		return fail("the agent's first message", r);
	r = confine();
	if (r < 0)
		return fail("cannot give up rights", r);
	r = broker_meet_worker(b);
	if (r == 0)
		r = broker_serve(b);
	/* A worker that ends before it says anything is no error of ours. */
	return r < 0 && r != -EPIPE ? fail("the worker's messages", r) : 0;
}

int main(int argc, char **argv)
{
	static const struct argv_option *const tables[] = { options, NULL };
	struct broker b = BROKER_NULL;
	char error[160];
	int status;

	if (fd_reserve_stdio() < 0)
		return 1;
	b.channel = IPC_FD_CONNECT;
	if (argv_parse(argc, argv, tables, error, sizeof(error)) != 0 || fd_set_cloexec(b.channel, true) < 0) {
		fputs("gpu-agent-connect is started by gpu-agentd or its service manager\n", stderr);
		return 2;
	}
	log_init("gpu-agent-connect", opt.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	signal(SIGPIPE, SIG_IGN);
	/* A terminal's Ctrl-C goes to all processes of the agent, but the monitor decides their order. */
	signal(SIGINT, SIG_IGN);
	status = run(&b);
	broker_deinit(&b);
	/* A sanitizer's leak check could open nothing any more. */
	_exit(status);
}
