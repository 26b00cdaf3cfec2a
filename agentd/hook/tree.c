/* SPDX-License-Identifier: MIT */
#include "agentd/hook/tree.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define CHILDREN_BYTES_MAX ((size_t)1 << 20)
#define STATUS_BYTES_MAX   ((size_t)64 << 10)
/* The file lists the children of one thread, and this program has no other. */
#define CHILDREN "/proc/thread-self/children"

static void close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

bool tree_is_known(void)
{
	return access(CHILDREN, R_OK) == 0;
}

size_t tree_signal(int sig)
{
	auto_free char *text = NULL;
	size_t size, n = 0;
	char *p, *end;

	if (fd_read_file(CHILDREN, CHILDREN_BYTES_MAX, &text, &size) < 0)
		return 0;
	for (p = text;; p = end, n++) {
		pid_t pid = (pid_t)strtol(p, &end, 10), group = getpgid(pid);

		if (end == p)
			return n;
		kill(pid, sig);
		/* Until a child has called setsid(), its process group is that of this process. */
		if (group > 0 && group != getpgrp())
			kill(-group, sig);
	}
}

/* @return how many threads the process has; 0 if its real user is not @p uid. */
static size_t threads_of(const char *pid, uid_t uid)
{
	auto_free char *text = NULL;
	char name[300];
	const char *found;
	unsigned real, threads;
	size_t size;

	snprintf(name, sizeof(name), "/proc/%s/status", pid);
	if (fd_read_file(name, STATUS_BYTES_MAX, &text, &size) < 0)
		return 0;
	found = strstr(text, "\nUid:");
	if (!found || sscanf(found, "\nUid: %u", &real) != 1 || real != uid)
		return 0;
	found = strstr(text, "\nThreads:");
	return found && sscanf(found, "\nThreads: %u", &threads) == 1 ? threads : 0;
}

size_t tree_count_user(uid_t uid)
{
	auto_call(close_dir) DIR *d = opendir("/proc");
	const struct dirent *e;
	size_t n = 0;

	while (d && (e = readdir(d)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
			n += threads_of(e->d_name, uid);
	return n;
}
