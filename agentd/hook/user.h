/* SPDX-License-Identifier: MIT */
#ifndef HOOK_USER_H
#define HOOK_USER_H

/** @file user.h  As whom a hook runs. */

#include <stddef.h>
#include <sys/types.h>

#include "agentd/hook.h"

struct hook_user {
	uid_t uid;
	gid_t gid;
	gid_t *groups; /**< Supplementary ones of the user database; none for a user it lacks. */
	size_t n_groups;
	char name[HOOK_USER_MAX]; /**< "": not in the user database. */
	char home[HOOK_PATH_MAX];
};

/**
 * Ask the user database, which may take its time.
 * @param why  What is wrong.
 * @return 0, -EPERM (root without being told so, or another user without the right to become him),
 *         -ENOENT, -errno.  Release with hook_user_deinit().
 */
int hook_user_find(const struct hook_job *job, char *why, size_t why_size, struct hook_user *ret);
void hook_user_deinit(struct hook_user *u);

/** Become that user for good.  @return 0 or -errno. */
int hook_user_become(const struct hook_user *u);

#endif /* HOOK_USER_H */
