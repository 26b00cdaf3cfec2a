/* SPDX-License-Identifier: MIT */
#include "agentd/worker/process/facts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agentd/cgroup.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"

char *process_facts_container(struct rpc_arena *a, const char *cgroup, size_t size)
{
	struct cgroup_part name = cgroup_container(cgroup, size);

	return name.text ? rpc_arena_strndup(a, name.text, name.size) : NULL;
}

char *process_facts_exe(pid_t pid)
{
	char path[64], exe[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, exe, sizeof(exe));
	return n > 0 ? strndup(exe, (size_t)n) : NULL;
}

void process_facts_fill(struct rpc_arena *a, const struct access_target *facts,
			struct rpc_process *ret)
{
	auto_free char *cgroup = NULL, *exe = process_facts_exe(facts->pid);
	char path[64];
	size_t size;

	ret->pid = (uint32_t)facts->pid;
	ret->has_ns_pid = facts->ns_pid != facts->pid;
	ret->ns_pid = (uint32_t)facts->ns_pid;
	ret->uid = facts->uids[0];
	ret->comm = rpc_arena_strdup(a, facts->comm);
	ret->exe = rpc_arena_strdup(a, exe);
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)facts->pid);
	if (fd_read_file(path, 64 * 1024, &cgroup, &size) == 0)
		ret->container = process_facts_container(a, cgroup, size);
}

int process_facts_start(pid_t pid, uint64_t *ret)
{
	char path[64];
	auto_free char *text = NULL;
	unsigned long long start;
	const char *paren;
	size_t size;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	r = fd_read_file(path, 4096, &text, &size);
	if (r < 0)
		return r;
	/* The name in field 2 may contain anything, parentheses included: proc(5). */
	paren = strrchr(text, ')');
	if (!paren || sscanf(paren + 1,
			     " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
			     &start) != 1)
		return -EBADMSG;
	*ret = start;
	return 0;
}
