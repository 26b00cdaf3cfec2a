/* SPDX-License-Identifier: MIT */
#include "agentd/manager/front.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/ipc/child.h"
#include "agentd/ipc/monitor_judge.h"
#include "base/cleanup.h"
#include "base/fd.h"

static _Noreturn void become_front(const struct front_setup *s, int sock)
{
	static const int to[] = { IPC_FD_MONITOR };
	const struct config *c = s->config;
	char uid[12], gid[12], connections[12], per_user[12], sessions[12], idle[12], silent[12];
	const char *argv[] = { s->program, "--uid", uid, "--gid", gid, "--connections", connections,
			       "--connections-per-user", per_user, "--sessions-per-user", sessions,
			       "--idle-ms", idle, "--silent-holder-ms", silent, NULL, NULL, NULL };
	size_t n = 15;

	snprintf(uid, sizeof(uid), "%u", s->uid);
	snprintf(gid, sizeof(gid), "%u", s->gid);
	snprintf(connections, sizeof(connections), "%u", c->connections);
	snprintf(per_user, sizeof(per_user), "%u", c->connections_per_user);
	snprintf(sessions, sizeof(sessions), "%u", c->sessions_per_user);
	snprintf(idle, sizeof(idle), "%u", c->idle_exit_ms);
	snprintf(silent, sizeof(silent), "%u", c->silent_holder_ms);
	if (s->user_mode)
		argv[n++] = "--user";
	if (s->verbose)
		argv[n++] = "--verbose";
	child_place_fds(&sock, to, ARRAY_SIZE(to));
	child_exec(s->program, argv, 0);
}

static _Noreturn void become_judge(const struct front_setup *s, int manager, int front)
{
	static const int to[] = { IPC_FD_MONITOR, JUDGE_FD_FRONT, JUDGE_FD_LISTEN, JUDGE_FD_MANAGER };
	const int from[] = { s->monitor, front, s->listen_fd, manager };
	const char *argv[] = { s->judge, NULL, NULL, NULL };
	size_t n = 1;

	if (s->user_mode)
		argv[n++] = "--user";
	if (s->verbose)
		argv[n++] = "--verbose";
	child_place_fds(from, to, ARRAY_SIZE(to));
	/* Whoever is stuck in a close that this process asked for may keep the socket open behind it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	child_exec(s->judge, argv, 0);
}

int front_start(struct front *f, const struct front_setup *setup)
{
	auto_close int ours = -1, manager = -1, judge = -1, front = -1;
	int pair[2], r = fd_socketpair(SOCK_NONBLOCK, pair);

	if (r < 0)
		return r;
	ours = pair[0];
	manager = pair[1];
	r = fd_socketpair(SOCK_NONBLOCK, pair);
	if (r < 0)
		return r;
	judge = pair[0];
	front = pair[1];
	f->pid = fork();
	if (f->pid == 0)
		become_front(setup, front);
	if (f->pid < 0)
		return -errno;
	f->judge_pid = fork();
	if (f->judge_pid == 0)
		become_judge(setup, manager, judge);
	if (f->judge_pid < 0)
		return -errno;
	f->box = (struct outbox){ .sock = TAKE_FD(ours) };
	return 0;
}
