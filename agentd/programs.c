/* SPDX-License-Identifier: MIT */
#include "agentd/programs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "agentd/child.h"
#include "base/cleanup.h"

static const char *const names[PROGRAM_COUNT] = {
	[PROGRAM_MONITOR] = "monitor", [PROGRAM_HEIR] = "heir",	    [PROGRAM_FRONT] = "front",
	[PROGRAM_JUDGE] = "judge",     [PROGRAM_RULES] = "rules",   [PROGRAM_WORKER] = "worker",
	[PROGRAM_STORE] = "store",     [PROGRAM_HOOK] = "hook",	    [PROGRAM_ADAPTER] = "adapter",
	[PROGRAM_TRACER] = "tracer",   [PROGRAM_CONNECT] = "connect",
};

int programs_find(struct programs *ret)
{
	char directory[PATH_MAX];
	int r = child_find_directory(directory, sizeof(directory));

	for (size_t i = 0; r == 0 && i < PROGRAM_COUNT; i++) {
		if (asprintf(&ret->path[i], "%s/gpu-agent-%s", directory, names[i]) < 0)
			r = -ENOMEM;
		else if (access(ret->path[i], X_OK) < 0 || stat(ret->path[i], &ret->at_start[i]) < 0)
			r = -errno;
	}
	return r;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

bool programs_are_replaced(const struct programs *p)
{
	struct stat now;

	for (size_t i = 0; i < PROGRAM_COUNT; i++)
		if (stat(p->path[i], &now) < 0 || !is_same(&now, &p->at_start[i]))
			return true;
	return false;
}

int programs_watch(void)
{
	/* A package manager renames; a build writes. */
	const uint32_t events = IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CLOSE_WRITE | IN_ATTRIB;
	auto_close int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char directory[PATH_MAX];
	int r = child_find_directory(directory, sizeof(directory));

	if (r == 0 && (fd < 0 || inotify_add_watch(fd, directory, events) < 0))
		r = -errno;
	return r < 0 ? r : TAKE_FD(fd);
}

void programs_watched(int fd)
{
	char events[4096];

	while (read(fd, events, sizeof(events)) > 0)
		;
}
