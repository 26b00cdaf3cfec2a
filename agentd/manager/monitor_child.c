/* SPDX-License-Identifier: MIT */
#include "agentd/manager/monitor_child.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/child.h"
#include "base/cleanup.h"
#include "base/fd.h"

static _Noreturn void become_monitor(const char *program, int manager, int judge)
{
	static const int to[] = { MONITOR_FD_MANAGER, MONITOR_FD_JUDGE };
	const int from[] = { manager, judge };
	const char *const argv[] = { program, NULL };

	child_place_fds(from, to, ARRAY_SIZE(to));
	child_exec(program, argv, 0);
}

int monitor_child_start(struct monitor_child *p, const char *program, int judge)
{
	auto_close int ours = -1, theirs = -1;
	int pair[2], r = fd_socketpair(SOCK_NONBLOCK, pair);

	if (r < 0)
		return r;
	ours = pair[0];
	theirs = pair[1];
	p->pid = fork();
	if (p->pid == 0)
		become_monitor(program, theirs, judge);
	if (p->pid < 0) {
		p->pid = 0;
		return -errno;
	}
	ipc_link_init(&p->link, TAKE_FD(ours));
	return 0;
}

int monitor_child_tell(struct monitor_child *p, uint32_t type, uint32_t number, const void *data, size_t size)
{
	const struct ipc_head head = { .type = type, .number = number, .size = size };

	return ipc_link_send(&p->link, &head, data);
}
