/* SPDX-License-Identifier: MIT */
#include "agentd/worker/process_facts.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"

#define CONTAINER_ID_DIGITS 64
#define COMPONENT_MAX 160

static bool has_container_id(const char *s, size_t size)
{
	size_t run = 0;

	for (size_t i = 0; i < size; i++) {
		run = isxdigit((unsigned char)s[i]) ? run + 1 : 0;
		if (run == CONTAINER_ID_DIGITS)
			return true;
	}
	return false;
}

static bool is_lxc(const char *s, size_t size)
{
	static const char prefix[] = "lxc.payload.";

	return size > sizeof(prefix) - 1 && memcmp(s, prefix, sizeof(prefix) - 1) == 0;
}

/* The innermost component of one path that names a container. */
static char *find_in_path(struct rpc_arena *a, const char *path, size_t size)
{
	while (size) {
		const char *slash = memrchr(path, '/', size);
		const char *name = slash ? slash + 1 : path;
		size_t n = (size_t)(path + size - name);

		if (n <= COMPONENT_MAX && (has_container_id(name, n) || is_lxc(name, n)))
			return rpc_arena_strndup(a, name, n);
		if (!slash)
			break;
		size = (size_t)(slash - path);
	}
	return NULL;
}

char *process_facts_container(struct rpc_arena *a, const char *cgroup, size_t size)
{
	const char *end = cgroup + size;

	/* Lines "ID:CONTROLLERS:PATH": cgroups(7). */
	while (cgroup < end) {
		const char *newline = memchr(cgroup, '\n', (size_t)(end - cgroup));
		const char *stop = newline ? newline : end;
		const char *colon = memchr(cgroup, ':', (size_t)(stop - cgroup));
		char *found;

		if (colon)
			colon = memchr(colon + 1, ':', (size_t)(stop - colon - 1));
		if (colon) {
			found = find_in_path(a, colon + 1, (size_t)(stop - colon - 1));
			if (found)
				return found;
		}
		cgroup = stop + 1;
	}
	return NULL;
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
