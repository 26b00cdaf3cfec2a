/* SPDX-License-Identifier: MIT */
#include "agentd/monitor/programs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "agentd/child.h"
#include "base/cleanup.h"

#define N_PROGRAMS ARRAY_SIZE(((struct programs *)0)->at_start)

static void list(const struct programs *p, const char *ret[N_PROGRAMS])
{
	const char *const all[] = { p->front, p->worker, p->store, p->rules, p->hook, p->adapter,
				   p->tracer,
				   p->connect, p->judge };

	_Static_assert(ARRAY_SIZE(all) == N_PROGRAMS, "each has its place");
	for (size_t i = 0; i < N_PROGRAMS; i++)
		ret[i] = all[i];
}

int programs_find(struct programs *ret)
{
	char self[PATH_MAX - 32];
	const char *all[N_PROGRAMS];
	int r = child_find_directory(self, sizeof(self));

	if (r < 0)
		return r;
	snprintf(ret->front, sizeof(ret->front), "%s/gpu-agent-front", self);
	snprintf(ret->worker, sizeof(ret->worker), "%s/gpu-agent-worker", self);
	snprintf(ret->store, sizeof(ret->store), "%s/gpu-agent-store", self);
	snprintf(ret->rules, sizeof(ret->rules), "%s/gpu-agent-rules", self);
	snprintf(ret->hook, sizeof(ret->hook), "%s/gpu-agent-hook", self);
	snprintf(ret->adapter, sizeof(ret->adapter), "%s/gpu-agent-adapter", self);
	snprintf(ret->tracer, sizeof(ret->tracer), "%s/gpu-agent-tracer", self);
	snprintf(ret->connect, sizeof(ret->connect), "%s/gpu-agent-connect", self);
	snprintf(ret->judge, sizeof(ret->judge), "%s/gpu-agent-judge", self);
	list(ret, all);
	for (size_t i = 0; i < N_PROGRAMS; i++)
		if (access(all[i], X_OK) < 0 || stat(all[i], &ret->at_start[i]) < 0)
			return -errno;
	return 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

bool programs_are_replaced(const struct programs *p)
{
	const char *all[N_PROGRAMS];
	struct stat now;

	list(p, all);
	for (size_t i = 0; i < N_PROGRAMS; i++)
		if (stat(all[i], &now) < 0 || !is_same(&now, &p->at_start[i]))
			return true;
	return false;
}

int programs_watch(const struct programs *p)
{
	/* A package manager renames; a build writes. */
	const uint32_t events = IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CLOSE_WRITE | IN_ATTRIB;
	auto_close int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char directory[PATH_MAX];

	if (fd < 0)
		return -errno;
	strcpy(directory, p->front);
	*strrchr(directory, '/') = '\0';
	if (inotify_add_watch(fd, directory, events) < 0)
		return -errno;
	return TAKE_FD(fd);
}

void programs_watched(int fd)
{
	char events[4096];

	while (read(fd, events, sizeof(events)) > 0)
		;
}
