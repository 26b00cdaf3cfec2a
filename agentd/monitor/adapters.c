/* SPDX-License-Identifier: MIT */
#include "agentd/monitor/adapters.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/child.h"
#include "base/cleanup.h"

/* To become the user. */
#define START_MS 20000

struct place {
	int channel, editor, early;
};

static void adapter_exec(const struct workers *w, const void *data, int guard)
{
	static const int to[] = { IPC_FD_MONITOR, IPC_FD_FRONT, IPC_FD_EDITOR, IPC_FD_EARLY };
	const struct place *p = data;
	const int from[] = { guard, p->channel, p->editor, p->early };
	const char *argv[] = { w->setup.programs->path[PROGRAM_ADAPTER], w->setup.verbose ? "--verbose" : NULL, NULL };

	child_place_fds(from, to, ARRAY_SIZE(to));
	child_exec(w->setup.programs->path[PROGRAM_ADAPTER], argv, 0);
}

int adapters_start(struct workers *w, const struct ipc_identity *client, int *take_sock, int early_fd,
		   struct worker **ret, int *ret_channel)
{
	const struct worker like = { .kind = IPC_KIND_ADAPTER, .owner = client->uid,
				     .charge = client->charge, .by_admin = client->admin };
	auto_close int front = -1, adapter = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	front = pair[0];
	adapter = pair[1];
	r = workers_fork(w, &like, START_MS, adapter_exec,
			 &(struct place){ adapter, *take_sock, early_fd }, ret);
	if (r < 0)
		return r;
	close(TAKE_FD(*take_sock)); /* not the last one: the adapter has it */
	*ret_channel = TAKE_FD(front);
	return 0;
}
