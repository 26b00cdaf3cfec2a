/* SPDX-License-Identifier: MIT */
#include "agentd/monitor/rules_service.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agentd/access.h"
#include "agentd/monitor/authorise.h"
#include "base/cleanup.h"
#include "base/fd.h"

#define CGROUP_MAX (64 * 1024)

static int look(void *ctx, uint32_t *ret_worker)
{
	const struct rules_service *s = ctx;

	return workers_look(s->workers, ret_worker);
}

static int read_process(void *ctx, pid_t pid, int pidfd, struct rules_process *ret)
{
	struct access_target facts;
	char path[64];
	size_t size;
	ssize_t n;
	int r = access_target_read(pid, &facts);

	if (r < 0)
		return r;
	ret->uid = facts.uids[0];
	ret->cgroup = NULL;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, ret->exe, sizeof(ret->exe) - 1);
	ret->exe[n > 0 ? n : 0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (fd_read_file(path, CGROUP_MAX, &ret->cgroup, &size) < 0)
		ret->cgroup = NULL;
	/* The pidfd is older than the facts: alive now means that they are about its process. */
	if (access_is_alive(pidfd))
		return 0;
	free(ret->cgroup);
	return -ESRCH;
}

static int watch(void *ctx, pid_t pid, int pidfd, const struct ipc_rule *rule, struct ipc_watch *ret)
{
	const struct rules_service *s = ctx;
	auto_close int channel = -1;
	int r = authorise_watch(s->workers, rule, pid, pidfd, ret, &channel);

	if (r == 0)
		s->tell(s->ctx, ret, channel);
	return r;
}

static void let_go(void *ctx, uint32_t worker)
{
	const struct rules_service *s = ctx;
	const struct ipc_rule none = { .type = IPC_RULE };
	const struct ipc_watch m = { .type = IPC_WATCH, .worker = worker };

	workers_tell_rule(s->workers, worker, &none);
	s->tell(s->ctx, &m, -1);
}

const struct rules_monitor rules_service = {
	.look = look, .read = read_process, .watch = watch, .let_go = let_go
};
