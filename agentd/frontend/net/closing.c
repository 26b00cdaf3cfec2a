/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/net/closing.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/frontend/net/monitor_link.h"
#include "base/fd.h"
#include "base/log.h"

#define RETRY_S 1

struct closing {
	LIST_ENTRY(closing) link;
	int fd; /* -1: a process of the monitor has the socket alone. */
	uid_t uid;
	bool asked; /* The monitor was given the socket, and has not answered. */
};

static struct closing *find_asked(struct closings *all)
{
	struct closing *i;

	LIST_FOREACH(i, &all->list, link)
		if (i->asked)
			return i;
	return NULL;
}

/* Sockets go to the monitor one at a time, so that a flood cannot fill the socket to the monitor. */
static void ask_next(struct closings *all)
{
	struct closing *i;

	if (find_asked(all) || event_pending(all->retry, EV_TIMEOUT, NULL))
		return;
	LIST_FOREACH(i, &all->list, link)
		if (i->fd >= 0) {
			i->asked = true;
			monitor_link_drop(all->monitor, i->fd, i->uid);
			return;
		}
}

static void ask_again(int fd, short what, void *user)
{
	ask_next(user);
}

int closing_init(struct closings *all)
{
	LIST_INIT(&all->list);
	all->retry = event_new(all->base, -1, 0, ask_again, all);
	return all->retry ? 0 : -ENOMEM;
}

void closing_hand_over(struct closings *all, int take_fd, uid_t uid)
{
	struct closing *c = calloc(1, sizeof(*c));

	if (!c) {
		/* A socket that stays open for ever is bad, a process that blocks for ever is worse. */
		log_error("out of memory: a client's socket stays open");
		return;
	}
	c->fd = take_fd;
	c->uid = uid;
	LIST_INSERT_HEAD(&all->list, c, link);
	ask_next(all);
}

void closing_end(struct closings *all, int take_fd, uid_t uid)
{
	if (fd_end_stream(take_fd) == 0)
		close(take_fd);
	else
		closing_hand_over(all, take_fd, uid);
}

bool closing_is_blocked(const struct closings *all, uid_t uid)
{
	const struct closing *i;
	unsigned n = 0;

	LIST_FOREACH(i, &all->list, link)
		n += i->uid == uid;
	return n >= CLOSING_PER_USER_MAX;
}

static void ended(struct closings *all, uid_t uid)
{
	struct closing *i;

	LIST_FOREACH(i, &all->list, link)
		if (i->fd < 0 && i->uid == uid) {
			LIST_REMOVE(i, link);
			free(i);
			return;
		}
}

void closing_received(struct closings *all, const struct ipc_closer *m)
{
	const struct timeval retry = { .tv_sec = RETRY_S };
	struct closing *asked = find_asked(all);

	if (m->kind == IPC_CLOSER_ENDED) {
		ended(all, m->uid);
		return;
	}
	if (!asked)
		return;
	asked->asked = false;
	if (m->kind == IPC_CLOSER_HOLDS) {
		/*
		 * The other process still has the socket, so that this close does not block; after
		 * the note its close is the last one.
		 */
		close(asked->fd);
		asked->fd = -1;
		monitor_link_note(all->monitor, IPC_NOTE_DROPPED, 0);
	} else {
		log_warning("no process to close a client's socket: trying again");
		event_add(all->retry, &retry);
	}
	ask_next(all);
}

void closing_deinit(struct closings *all)
{
	while (!LIST_EMPTY(&all->list)) {
		struct closing *c = LIST_FIRST(&all->list);

		LIST_REMOVE(c, link);
		free(c);
	}
	if (all->retry)
		event_free(all->retry);
	all->retry = NULL;
}
