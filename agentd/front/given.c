/* SPDX-License-Identifier: MIT */
#include "agentd/front/given.h"

#include <linux/sock_diag.h>
#include <sys/socket.h>

#include "base/cleanup.h"

/* Left unread by one user; an honest client leaves none. */
#define LEFT_MAX 4

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

bool given_may(struct front *f, uid_t uid)
{
	const struct front_left *left = left_by(f, uid);

	return left && left->n < LEFT_MAX;
}

/* With all of it read, the descriptor is received. */
bool given_is_read(int fd)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t size = sizeof(info);

	return getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &size) == 0 &&
	       info[SK_MEMINFO_WMEM_ALLOC] == 0;
}

void given_left(struct front *f, uid_t uid)
{
	struct front_left *left = left_by(f, uid);

	if (!left)
		return;
	left->uid = uid;
	left->n++;
}
