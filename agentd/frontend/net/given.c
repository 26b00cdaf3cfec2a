/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/net/given.h"

#include <linux/sock_diag.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/cleanup.h"

/* Most descriptors that one user may leave unread; an honest client leaves none. */
#define LEFT_MAX 4

/* @return the entry of a user, else a free one, else the size of the table: there is none. */
static size_t find(const struct given *g, uid_t uid)
{
	size_t free_one = ARRAY_SIZE(g->left);

	for (size_t i = 0; i < ARRAY_SIZE(g->left); i++) {
		if (g->left[i].n && g->left[i].uid == uid)
			return i;
		if (!g->left[i].n)
			free_one = i;
	}
	return free_one;
}

bool given_may(const struct given *g, uid_t uid)
{
	size_t i = find(g, uid);

	return i < ARRAY_SIZE(g->left) && g->left[i].n < LEFT_MAX;
}

bool given_is_read(int fd)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t size = sizeof(info);

	return getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &size) == 0 &&
	       info[SK_MEMINFO_WMEM_ALLOC] == 0;
}

void given_left(struct given *g, uid_t uid)
{
	size_t i = find(g, uid);

	if (i == ARRAY_SIZE(g->left))
		return;
	g->left[i].uid = uid;
	g->left[i].n++;
}
