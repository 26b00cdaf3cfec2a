/* SPDX-License-Identifier: MIT */
#include "agentd/front/given.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <sys/socket.h>

#include "agentd/front/request.h"
#include "base/cleanup.h"

/* Left unread by one user; an honest client leaves none. */
#define LEFT_MAX 4

/* With all of it read, the descriptor is received. */
static bool has_read_all(const struct conn *c)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t size = sizeof(info);

	return getsockopt(c->fd, SOL_SOCKET, SO_MEMINFO, info, &size) == 0 &&
	       info[SK_MEMINFO_WMEM_ALLOC] == 0;
}

/* Then what lay there for it is closed. */
static bool is_gone(const struct conn *c)
{
	struct pollfd p = { .fd = c->fd };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR));
}

/* @return the entry of a user, one that is free, or NULL. */
static struct front_left *left_by(struct front *f, uid_t uid)
{
	struct front_left *free_one = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(f->left); i++) {
		if (f->left[i].n && f->left[i].uid == uid)
			return &f->left[i];
		if (!f->left[i].n)
			free_one = &f->left[i];
	}
	return free_one;
}

static bool is_on_its_way(const struct conn *c)
{
	const struct request *r;

	LIST_FOREACH(r, &c->requests, in_conn)
		if (r->answer_fd >= 0)
			return true;
	return c->out_fd >= 0 || (c->fd_given && !has_read_all(c));
}

int given_check(const struct conn *c, const char *method, struct agent_err *err)
{
	const struct front_left *left = left_by(c->front, c->uid);

	if (!left || left->n >= LEFT_MAX)
		return agent_err_set(err, RPC_ERROR_BUSY, ETOOMANYREFS, method,
				     "use core.read, or let the agent be restarted",
				     "too many descriptors were sent to closed connections that did not read them");
	if (is_on_its_way(c))
		return agent_err_set(err, RPC_ERROR_BUSY, EBUSY, method, "read the answers before",
				     "another descriptor is on its way to you");
	return 0;
}

void given_sent(struct conn *c)
{
	c->fd_given = true;
}

void given_leave(const struct conn *c)
{
	struct front_left *left;

	if (!c->fd_given || has_read_all(c) || is_gone(c))
		return;
	left = left_by(c->front, c->uid);
	if (!left)
		return;
	left->uid = c->uid;
	left->n++;
}
