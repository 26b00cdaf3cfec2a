/* SPDX-License-Identifier: MIT */
#include "agentd/rules/engine/discover.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"

/* IN_ATTRIB: also that the name is gone while somebody still has it open (inotify(7)). */
#define NODE_EVENTS (IN_OPEN | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)
#define DIR_EVENTS  (IN_CREATE | IN_MOVED_TO | IN_ONLYDIR)
#define EVENTS_SIZE 8192

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int watch_directory(const struct discover *d, const char *path)
{
	size_t n = (size_t)(name_of(path) - path);
	char dir[PATH_MAX];

	if (n >= sizeof(dir))
		return -1;
	memcpy(dir, path, n);
	dir[n] = '\0';
	return inotify_add_watch(d->fd, n ? dir : ".", DIR_EVENTS);
}

static void forget_directory(struct discover *d, struct discover_node *node)
{
	int wd = node->dir_wd;

	node->dir_wd = -1;
	if (wd < 0)
		return;
	for (size_t i = 0; i < d->n; i++)
		if (d->nodes[i].dir_wd == wd)
			return;
	inotify_rm_watch(d->fd, wd);
}

/* @return whether the node is there. */
static bool watch_node(struct discover *d, struct discover_node *node)
{
	/* First the directory: a node that comes in between is seen twice, not never. */
	if (node->dir_wd < 0)
		node->dir_wd = watch_directory(d, node->path);
	node->wd = inotify_add_watch(d->fd, node->path, NODE_EVENTS);
	if (node->wd >= 0) {
		forget_directory(d, node);
		return true;
	}
	if (errno != ENOENT || node->dir_wd < 0)
		log_warning("rules: %s cannot be watched (%s): processes that open it are found when something "
			    "else makes the agent look", node->path, strerror(errno));
	return false;
}

int discover_start(struct discover *d, const char *const paths[], size_t n)
{
	discover_stop(d);
	d->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (d->fd < 0)
		return -errno;
	for (size_t i = 0; i < n && i < DISCOVER_NODES_MAX; i++)
		d->nodes[d->n++] =
			(struct discover_node){ .path = paths[i], .wd = -1, .dir_wd = -1 };
	for (size_t i = 0; i < d->n; i++)
		watch_node(d, &d->nodes[i]);
	return 0;
}

void discover_stop(struct discover *d)
{
	if (d->fd >= 0)
		close(d->fd);
	*d = (struct discover)DISCOVER_NULL;
}

static bool node_event(struct discover *d, struct discover_node *node, uint32_t mask)
{
	if (mask & IN_OPEN)
		return true;
	if (mask & IN_ATTRIB && !(mask & IN_IGNORED)) {
		/* The same node gives the same number again; another one, or none, is what counts. */
		int wd = inotify_add_watch(d->fd, node->path, NODE_EVENTS);

		if (wd == node->wd)
			return false;
		inotify_rm_watch(d->fd, node->wd);
		node->wd = wd;
	}
	return watch_node(d, node);
}

static bool take_event(struct discover *d, const struct inotify_event *e)
{
	bool opened = e->mask & IN_Q_OVERFLOW;

	for (size_t i = 0; i < d->n; i++) {
		struct discover_node *node = &d->nodes[i];

		if (e->wd == node->wd)
			opened = node_event(d, node, e->mask) || opened;
		else if (e->wd == node->dir_wd && e->len && !strcmp(e->name, name_of(node->path)))
			opened = watch_node(d, node) || opened;
	}
	return opened;
}

bool discover_read(struct discover *d)
{
	char buf[EVENTS_SIZE] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool opened = false;
	ssize_t n;

	while ((n = read(d->fd, buf, sizeof(buf))) > 0)
		for (const char *p = buf; p < buf + n;) {
			const struct inotify_event *e = (const void *)p;

			opened = take_event(d, e) || opened;
			p += sizeof(*e) + e->len;
		}
	return opened;
}
